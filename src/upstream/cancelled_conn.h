/* SPDX-License-Identifier: Apache-2.0 */
/* Connections whose request was cancelled while the server works on it: they count against MaxConnections and
 * the share of their client until the server closes them. Otherwise a client that sends and cancels requests in
 * a loop would occupy all processes of a server. */
#ifndef MK_UPSTREAM_CANCELLED_CONN_H
#define MK_UPSTREAM_CANCELLED_CONN_H

#include "upstream/pool_type.h"

enum {
    MK_CANCELLED_CONN_MS = 60 * 1000, /* if the request has no timeout */
    MK_CANCELLED_CONN_BYTES =
        64 * 1024, /* of the response; a server that sends more notices the closed connection */
};

/* Half-closes the connection and discards what arrives. False: the server has closed it, or is in the middle of
 * sending a long response: the caller closes the connection. `streams`: the response has no end, so the next
 * bytes of it close the connection, which is how the server learns that the client has gone. */
bool mk_cancelled_conn_start(struct mk_upstream_conn *c, uint32_t ms, bool streams) MK_MUST_USE;
/* An event. False: it is time to close the connection. */
bool mk_cancelled_conn_discard_input(struct mk_upstream_conn *c) MK_MUST_USE;
/* One whose time is up; NULL: none. */
struct mk_upstream_conn *mk_cancelled_conn_find_expired(const struct mk_backend *o);

/* When the next one is due; UINT64_MAX: there is none. */
uint64_t mk_cancelled_conn_next_expiry_ms(const struct mk_backend *o);

#endif
