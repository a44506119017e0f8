/* SPDX-License-Identifier: Apache-2.0 */
/* Connections whose request was cancelled while the server was working on it. They count against
 * MaxConnections and their client's share until the server closes them or their time limit expires. Otherwise
 * a client that sends and cancels requests in a loop could occupy all processes of a server. */
#ifndef MK_UPSTREAM_CANCELLED_CONN_H
#define MK_UPSTREAM_CANCELLED_CONN_H

#include "upstream/pool_type.h"

enum {
    MK_CANCELLED_CONN_BYTES = 64 * 1024 /* maximum response bytes to discard before closing the connection */
};

/* Half-closes the connection and discards further input, for at most c->cancelled_ms. False: the server has
 * closed it or is sending a long response; the caller closes the connection. If the response may be endless
 * (c->streams), the next bytes close the connection, which tells the server that the client has gone. */
bool mk_cancelled_conn_start(struct mk_upstream_conn *c) MK_MUST_USE;
/* Discards the input that an event has reported. False: the server has closed the connection or has sent too
 * much; the caller closes the connection. */
bool mk_cancelled_conn_discard_input(struct mk_upstream_conn *c) MK_MUST_USE;
/* Returns a cancelled connection whose time limit has expired, or NULL. */
struct mk_upstream_conn *mk_cancelled_conn_find_expired(const struct mk_backend *o);

/* The time at which the next cancelled connection expires; UINT64_MAX: there is none. */
uint64_t mk_cancelled_conn_next_expiry_ms(const struct mk_backend *o);

#endif
