/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of a connection that accepts only TLS, until the handshake is complete; then HTTP takes over.
 */
#ifndef MK_PROTO_TLS_HANDSHAKE_H
#define MK_PROTO_TLS_HANDSHAKE_H

#include "proto/conn.h"

extern const struct mk_conn_ops mk_tls_handshake_ops;

/* Does ops->advance for a connection that was entered already, and leaves it. */
void mk_tls_handshake_serve(struct mk_conn *c);

#endif
