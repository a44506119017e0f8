/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 interface. HTTP/2 is a loadable object (src/http2), which the master opens when a configuration
 * can use it, so a server that speaks only HTTP/1 does not carry it. The object calls what is marked MK_INNER
 * here and in the layers below. In a program around the server it may come with the first client that needs
 * it (mk_service_wait_for_http2). */
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

/* ---- The object ---- */

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
    const struct mk_http2_client_ops *client;
};

/* Loads the object once; NULL: unavailable, and *why (may be NULL) says so. */
const struct mk_http2_module *mk_http2_load(const char **why);

/* Writes nothing before. */
void mk_http2_pack_head_if_loaded(struct mk_buf *out, const struct mk_field_block *whole, uint64_t size);

#endif
