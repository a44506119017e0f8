/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 on a connection (RFC 9113): concurrent requests, each in a stream (h2_stream.h). */
#ifndef MK_HTTP2_H2_H
#define MK_HTTP2_H2_H

#include "connection/http2.h"

extern const struct mk_conn_ops mk_h2_ops;

/* Takes over a connection for which mk_conn_begin_serving() was called, and calls mk_conn_end_serving(). The
 * connection must be in MK_CONN_IDLE or MK_CONN_HEAD, and its input must start with the client's preface or a
 * prefix of it. */
void mk_h2_serve(struct mk_conn *c);

extern const struct mk_http2_module mk_h2_module;

#endif
