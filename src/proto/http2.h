/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 interface, for the layers that do without nghttp2. The implementation is src/http2, a build option
 * (MK_HTTP2). */
#ifndef MK_PROTO_HTTP2_H
#define MK_PROTO_HTTP2_H

#include "proto/conn.h"

/* The first bytes of a client (RFC 9113, section 3.4). */
#define MK_H2_PREFACE MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

struct mk_http2_module {
    const char *vendor;            /* its library and version */
    const struct mk_conn_ops *ops; /* of a connection that speaks HTTP/2 from its first byte */
    /* Takes over a connection that was entered already, and leaves it. Its state is IDLE or HEAD, and the
     * next input is the preface or its first bytes. */
    void (*serve)(struct mk_conn *c);
    mk_h2_head_writer *pack_head;
    /* Makes the packed form of a stamp that is initialised. */
    void (*encode_common_headers)(struct mk_common_headers *stamp);
};

/* NULL: Monkey was built without HTTP/2. */
const struct mk_http2_module *mk_http2_get_module(void);

#endif
