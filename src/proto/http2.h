/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 interface. HTTP/2 is a loadable object (src/http2), which the master opens when a configuration
 * can use it, so a server that speaks only HTTP/1 does not carry it. The object calls what is marked MK_INNER
 * here and in the layers below. */
#ifndef MK_PROTO_HTTP2_H
#define MK_PROTO_HTTP2_H

#include "proto/conn.h"

/* The first bytes of a client (RFC 9113, section 3.4). */
#define MK_H2_PREFACE MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

/* What the loaded object offers. */
struct mk_http2_module {
    unsigned build; /* MK_BUILD_ID: it shares structs with the program, so both must be of the same build */
    const char *vendor;            /* its library and version */
    const struct mk_conn_ops *ops; /* of a connection that speaks HTTP/2 from its first byte */
    /* Takes over a connection that was entered already, and leaves it. Its state is IDLE or HEAD, and the
     * next input is the preface or its first bytes. */
    void (*serve)(struct mk_conn *c);
    mk_pack_head *pack_head;
    /* Makes the packed form of a stamp that is initialised. */
    void (*pack_stamp)(struct mk_stamp *stamp);
};

/* Loads the object once; NULL: unavailable, and *why (may be NULL) says so. */
const struct mk_http2_module *mk_http2_load(const char **why);

#endif
