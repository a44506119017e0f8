/* SPDX-License-Identifier: Apache-2.0 */
/* First protocol of connections if plugins have accept hooks: the hooks inspect the peer and its first bytes,
 * and admit the connection to HTTP or refuse it. Public API: monkey/connection.h. */
#ifndef MK_CONNECTION_ACCEPT_HOOKS_H
#define MK_CONNECTION_ACCEPT_HOOKS_H

#include "connection/conn.h"

/* For services with accept hooks. */
extern const struct mk_conn_ops mk_accept_hooks_ops;

/* Is a rejected connection sent that status, 429 or 503? Otherwise it is reset. */
bool mk_accept_hooks_sends_rejection(const struct mk_conn_manager *s, unsigned status);

#endif
