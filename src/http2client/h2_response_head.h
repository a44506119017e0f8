/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the headers of an HTTP/2 response into the text of an HTTP/1 head, for http/response_parser.h. Rejects
 * what HTTP/2 forbids (RFC 9113, section 8.2), and all bytes that could end a line. */
#ifndef MK_HTTP2CLIENT_H2_RESPONSE_HEAD_H
#define MK_HTTP2CLIENT_H2_RESPONSE_HEAD_H

#include "base/buf.h"
#include "http2frame/hpack.h"

struct mk_h2_response_head {
    struct mk_buf text;  /* the lines, and an empty line for a head */
    unsigned status;     /* 0: none yet */
    bool is_trailers;    /* no :status, and no empty line */
    bool is_connect;     /* a 2xx response to extended CONNECT becomes a 101 with Upgrade */
    const char *problem; /* NULL: valid so far; static */
};

/* `buf` receives the text. */
void mk_h2_response_head_init(struct mk_h2_response_head *h, char *buf, size_t cap, bool is_trailers,
                              bool is_connect);
/* Implements mk_hpack_on_header; the context is the head. */
int mk_h2_response_head_on_header(void *head, mk_str name, mk_str value);
/* Call it after the last header. False: h->problem is the reason. */
bool mk_h2_response_head_finish(struct mk_h2_response_head *h) MK_MUST_USE;

#endif
