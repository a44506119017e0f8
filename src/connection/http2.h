/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 interface for layers that do not depend on nghttp2. The implementation is src/http2, a build option
 * (MK_HTTP2). */
#ifndef MK_CONNECTION_HTTP2_H
#define MK_CONNECTION_HTTP2_H

#include "connection/conn.h"

/* Client preface (RFC 9113, section 3.4). */
#define MK_H2_PREFACE MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

struct mk_http2_module {
    const char *vendor;            /* name and version of the library */
    const struct mk_conn_ops *ops; /* for connections that start with HTTP/2 */
    /* Takes over a connection for which mk_conn_begin_serving() was called, and calls mk_conn_end_serving().
     * The connection must be in MK_CONN_IDLE or MK_CONN_HEAD, and its input must start with the preface or a
     * prefix of it. */
    void (*serve)(struct mk_conn *c);
    mk_h2_head_writer *pack_head;
    /* HPACK-encodes the common headers, which must be initialized. */
    void (*encode_common_headers)(struct mk_common_headers *stamp);
};

/* Returns the implementation of HTTP/2; NULL: built without HTTP/2. */
const struct mk_http2_module *mk_conn_manager_get_http2_module(void);

#endif
