/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of a request: host, hooks, route, handler, response hooks. Runs as many steps as possible, stops
 * while a plugin waits, and resumes there. Does not depend on sockets and protocols, so that tests can drive
 * it alone. */
#ifndef MK_WEB_DISPATCH_H
#define MK_WEB_DISPATCH_H

#include "web/exchange.h"

/* Returns the effective limits: those set for the request itself, else those of the location or host of the
 * path originally requested, else those of the server. */
const struct mk_request_limits *mk_dispatch_limits(struct mk_exchange *x);

/* May the body be read now? Until a handler with its own body limit has set that limit, `MaxBodySize`
 * applies. False: the body is longer. */
bool mk_dispatch_may_read_body(struct mk_exchange *x);

/* Continues until the response is ready (true) or a plugin waits (false). */
bool mk_dispatch_run(struct mk_exchange *x);

/* Responds with an error immediately, for requests that no handler will see. Must not be called after the
 * response was sealed. */
void mk_dispatch_error(struct mk_exchange *x, unsigned status);

/* Replaces an unsent response with an error page, for which the response hooks run again. If the response was
 * replaced before, only a head with the status remains. */
void mk_dispatch_replace_with_error(struct mk_exchange *x, unsigned status) MK_COLD;

/* Ends the request: calls the on_abort and on_done hooks, and writes the access-log entry. The caller frees
 * the exchange next. `content_received` and `content_sent`: bytes of the bodies. */
void mk_dispatch_end(struct mk_exchange *x, enum mk_outcome outcome, uint64_t content_received,
                     uint64_t content_sent, uint64_t now_ms);

#endif
