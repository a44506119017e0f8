/* SPDX-License-Identifier: Apache-2.0 */
/* Accept hooks of plugins: they inspect the peer and its first bytes, and admit the connection to HTTP or
 * reject it. Public API: monkey/connection.h. */
#ifndef MK_CONNECTION_ACCEPT_HOOKS_H
#define MK_CONNECTION_ACCEPT_HOOKS_H

#include "connection/conn.h"

/* The first protocol of connections if plugins have accept hooks. */
extern const struct mk_conn_ops mk_accept_hooks_ops;

/* Does a rejected connection receive that status, 429 or 503? Otherwise the connection is reset. */
bool mk_accept_hooks_sends_rejection(const struct mk_conn_manager *s, unsigned status);

#endif
