/* SPDX-License-Identifier: Apache-2.0 */
/* In-memory HTTP/2 client that makes one request at a time. */
#ifndef MK_TEST_CLIENT_H2_CLIENT_H
#define MK_TEST_CLIENT_H2_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

struct mk_http2_client;
struct mk_header;

struct mk_http2_client_request {
    mk_str method, target;
    const struct mk_header *fields; /* a Host header becomes the authority */
    size_t n;
    mk_str content; /* kept by the caller until the response is complete */
};

struct mk_http2_client_response {
    unsigned status;
    struct mk_buf *head, *content; /* received headers and body */
};

/* Functions of a client, which has one connection, with one request at a time. */
struct mk_http2_client_ops {
    struct mk_http2_client *(*create)(void);
    void (*free)(struct mk_http2_client *c);
    /* Writes data for the server to `out`. */
    mk_err (*ask)(struct mk_http2_client *c, const struct mk_http2_client_request *q, struct mk_buf *out);
    /* Processes data from the server. Returns 1 if the response is complete; 0 if it is not; -ECONNRESET if
     * the server aborted the request; -EBADMSG; or -ENOMEM. */
    int (*hear)(struct mk_http2_client *c, mk_str *in, struct mk_buf *out,
                struct mk_http2_client_response *answer);
};

/* Absent in a build without HTTP/2. */
extern const struct mk_http2_client_ops mk_h2_client_ops __attribute__((weak));

#endif
