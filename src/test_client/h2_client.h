/* SPDX-License-Identifier: Apache-2.0 */
/* A client in memory that speaks HTTP/2 and makes one request at a time. */
#ifndef MK_TEST_CLIENT_H2_CLIENT_H
#define MK_TEST_CLIENT_H2_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

struct mk_http2_client;
struct mk_header;

struct mk_http2_client_request {
    mk_str method, target;
    const struct mk_header *fields; /* a Host among them is the authority */
    size_t n;
    mk_str content; /* kept by the caller until the answer is whole */
};

struct mk_http2_client_response {
    unsigned status;
    struct mk_buf *head, *content; /* field lines; what came */
};

/* One connection, which makes a request at a time. */
struct mk_http2_client_ops {
    struct mk_http2_client *(*create)(void);
    void (*free)(struct mk_http2_client *c);
    /* What the server has to read goes to `out`. */
    mk_err (*ask)(struct mk_http2_client *c, const struct mk_http2_client_request *q, struct mk_buf *out);
    /* Uses what the server has written, as far as it is whole. 1: so is the answer; 0: not yet; -ECONNRESET:
     * the server has given the request up; -EBADMSG; -ENOMEM. */
    int (*hear)(struct mk_http2_client *c, mk_str *in, struct mk_buf *out,
                struct mk_http2_client_response *answer);
};

/* Absent in a build without HTTP/2. */
extern const struct mk_http2_client_ops mk_h2_client_ops __attribute__((weak));

#endif
