/* SPDX-License-Identifier: Apache-2.0 */
/* The flow: host, hooks, route, handler, response hooks. It moves a request as far as it can go, stops where
 * a plugin waits, and goes on from there. It owns no socket and knows no protocol; tests drive it alone.
 */
#ifndef MK_WEB_DISPATCH_H
#define MK_WEB_DISPATCH_H

#include "web/exchange.h"

/* The limits of the request: its own, or by its host and the path that the client asked for, or those of the
 * server. What is known of the target by now decides. */
const struct mk_request_limits *mk_dispatch_limits(struct mk_exchange *x);

/* Where the handler decides how long the content may be: false if `MaxBodySize`, which holds until then, allows
 * less. */
bool mk_dispatch_may_read_body(struct mk_exchange *x);

/* Goes on until the response is ready (true) or a plugin waits (false). */
bool mk_dispatch_run(struct mk_exchange *x);

/* Ready at once, with an error. For requests that no handler will see; not after the response was sealed. */
void mk_dispatch_error(struct mk_exchange *x, unsigned status);

/* Puts an error in the place of a response of which nothing was sent: a page, for which the hooks are called
 * again, or, if that was the response, a head alone. */
void mk_dispatch_replace_with_error(struct mk_exchange *x, unsigned status) MK_COLD;

/* The request is over: calls on_abort and on_done hooks and makes the record. The exchange is to be freed
 * next. */
void mk_dispatch_end(struct mk_exchange *x, enum mk_outcome ending, uint64_t content_sent, uint64_t now_ms);

#endif
