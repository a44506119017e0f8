/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of a connection on which nothing but TLS is understood, until it is agreed upon; then HTTP
 * takes over. */
#ifndef MK_PROTO_HANDSHAKE_H
#define MK_PROTO_HANDSHAKE_H

#include "proto/conn.h"

extern const struct mk_conn_ops mk_handshake_ops;

/* ops->advance for a connection that was entered already; leaves it. */
void mk_handshake_serve(struct mk_conn *c);

#endif
