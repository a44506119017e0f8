/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 interface, for the layers that do without nghttp2. The implementation is src/http2, a build option
 * (MK_HTTP2). */
#ifndef MK_PROTO_HTTP2_H
#define MK_PROTO_HTTP2_H

#include "proto/conn.h"

/* The first bytes of a client (RFC 9113, section 3.4). */
#define MK_H2_PREFACE MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

/* ---- Clients in memory (mk_probe_ask) ---- */

struct mk_http2_client;
struct mk_field_line;

struct mk_http2_question {
    mk_str method, target;
    const struct mk_field_line *fields; /* a Host among them is the authority */
    size_t n;
    mk_str content; /* kept by the caller until the answer is whole */
};

struct mk_http2_answer {
    unsigned status;
    struct mk_buf *head, *content; /* field lines; what came */
};

/* One connection, which makes a request at a time. */
struct mk_http2_client_ops {
    struct mk_http2_client *(*create)(void);
    void (*free)(struct mk_http2_client *c);
    /* What the server has to read goes to `out`. */
    mk_err (*ask)(struct mk_http2_client *c, const struct mk_http2_question *q, struct mk_buf *out);
    /* Uses what the server has written, as far as it is whole. 1: so is the answer; 0: not yet; -ECONNRESET:
     * the server has given the request up; -EBADMSG; -ENOMEM. */
    int (*hear)(struct mk_http2_client *c, mk_str *in, struct mk_buf *out, struct mk_http2_answer *answer);
};

/* ---- The implementation ---- */

struct mk_http2_module {
    const char *vendor;            /* its library and version */
    const struct mk_conn_ops *ops; /* of a connection that speaks HTTP/2 from its first byte */
    /* Takes over a connection that was entered already, and leaves it. Its state is IDLE or HEAD, and the
     * next input is the preface or its first bytes. */
    void (*serve)(struct mk_conn *c);
    mk_pack_head *pack_head;
    /* Makes the packed form of a stamp that is initialised. */
    void (*pack_stamp)(struct mk_stamp *stamp);
};

/* NULL: Monkey was built without HTTP/2. */
const struct mk_http2_module *mk_http2_get(void);

/* Absent where mk_http2_get() is NULL. Only libmonkey names it, so that the program does not contain it. */
extern const struct mk_http2_client_ops mk_h2_client_ops __attribute__((weak));

#endif
