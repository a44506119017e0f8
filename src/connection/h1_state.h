/* SPDX-License-Identifier: Apache-2.0 */
/* State helpers of an HTTP/1 exchange, used by several files. */
#ifndef MK_CONNECTION_H1_STATE_H
#define MK_CONNECTION_H1_STATE_H

#include "connection/h1_types.h"

/* Closes the connection after the response: no other request follows. */
static inline void mk_h1_state_close_after_response(struct mk_h1 *h)
{
    if (h->persistence == MK_H1_PERSISTENT)
        h->persistence = MK_H1_CLOSED_BY_SERVER;
}

/* Can there be unread bytes or an unread EOF from the client? */
static inline bool mk_h1_state_has_input(const struct mk_conn *c)
{
    return mk_stream_is_readable(&c->stream) || mk_conn_input(c).len > 0;
}

/* May the request hooks, the handler or the body source be called now? A call that waits for body data is
 * allowed as soon as there is input. */
static inline bool mk_h1_state_may_call_handler(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    struct mk_conn *c = d->conn;
    if (d->awaits == MK_AWAITS_BODY && mk_h1_state_has_input(c))
        mk_http_stream_allow_call(d);
    if (d->awaits != MK_AWAITS_NOTHING)
        return false;
    if (c->timeout == MK_TIMEOUT_HANDLER)
        mk_conn_stop_timeout(c); /* the next wait gets the full timeout */
    return true;
}

#endif
