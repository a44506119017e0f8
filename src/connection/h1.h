/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.0 and HTTP/1.1 on a connection (RFC 9112). */
#ifndef MK_CONNECTION_H1_H
#define MK_CONNECTION_H1_H

#include "connection/conn.h"

extern const struct mk_conn_ops mk_h1_ops;

/* The ops->advance of a connection for which mk_conn_begin_serving() was called; calls
 * mk_conn_end_serving(). */
void mk_h1_serve(struct mk_conn *c);

#endif
