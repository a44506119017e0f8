/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of a request: host, hooks, route, handler, response hooks. Runs as many steps as possible, stops
 * while a plugin waits, and resumes there. Independent of sockets and protocols, so tests can drive it
 * alone. */
#ifndef MK_WEB_DISPATCH_H
#define MK_WEB_DISPATCH_H

#include "web/exchange.h"

/* Returns the effective limits: those set for the request itself, else those of the host and the path
 * originally requested, else those of the server, depending on which parts of the target are known. */
const struct mk_request_limits *mk_dispatch_limits(struct mk_exchange *x);

/* May a handler with its own body limit read the body? False if `MaxBodySize`, which applies until the
 * handler decides, is smaller. */
bool mk_dispatch_may_read_body(struct mk_exchange *x);

/* Continues until the response is ready (true) or a plugin waits (false). */
bool mk_dispatch_run(struct mk_exchange *x);

/* Responds with an error immediately, for requests that no handler will see. Not after the response was
 * sealed. */
void mk_dispatch_error(struct mk_exchange *x, unsigned status);

/* Replaces an unsent response: with an error page, for which the response hooks run again, or, if the
 * response was an error page already, with a bare head. */
void mk_dispatch_replace_with_error(struct mk_exchange *x, unsigned status) MK_COLD;

/* The request has ended: calls on_abort and on_done hooks and writes the access-log entry. The caller frees
 * the exchange next. */
void mk_dispatch_end(struct mk_exchange *x, enum mk_outcome outcome, uint64_t content_sent, uint64_t now_ms);

#endif
