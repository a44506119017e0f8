/* SPDX-License-Identifier: Apache-2.0 */
/* The first protocol of a connection where plugins have accept hooks: they look at the peer and its first
 * bytes, and admit the connection to HTTP or refuse it. Public: monkey/connection.h. */
#ifndef MK_PROTO_ACCEPT_HOOKS_H
#define MK_PROTO_ACCEPT_HOOKS_H

#include "proto/conn.h"

/* For services that have accept hooks. */
extern const struct mk_conn_ops mk_accept_hooks_ops;

/* Does a connection that is not served get that status, 429 or 503? Else it is reset. */
bool mk_accept_hooks_sends_rejection(const struct mk_conn_manager *s, unsigned status);

#endif
