/* SPDX-License-Identifier: Apache-2.0 */
/* Accept hooks of plugins: they inspect the peer and its first bytes, and admit the connection to HTTP or
 * reject it. Public API: monkey/connection.h. */
#ifndef MK_CONNECTION_ACCEPT_HOOKS_H
#define MK_CONNECTION_ACCEPT_HOOKS_H

#include "connection/conn.h"

/* Protocol callbacks of a connection until its accept hooks have admitted it. */
extern const struct mk_conn_ops mk_accept_hooks_ops;

/* Should a rejected client be sent `status` (429 or 503)? Otherwise its connection is reset. */
bool mk_accept_hooks_sends_rejection(const struct mk_conn_manager *s, unsigned status);

#endif
