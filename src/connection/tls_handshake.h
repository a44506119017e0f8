/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol of a connection that requires TLS, until the handshake is complete; then HTTP takes over. */
#ifndef MK_CONNECTION_TLS_HANDSHAKE_H
#define MK_CONNECTION_TLS_HANDSHAKE_H

#include "connection/conn.h"

extern const struct mk_conn_ops mk_tls_handshake_ops;

/* The ops->advance of a connection for which mk_conn_begin_serving() was called; calls
 * mk_conn_end_serving(). */
void mk_tls_handshake_serve(struct mk_conn *c);

#endif
