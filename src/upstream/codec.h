/* SPDX-License-Identifier: Apache-2.0 */
/* How a request is written and read: a table of functions for each protocol. They know no connection. */
#ifndef MK_UPSTREAM_CODEC_H
#define MK_UPSTREAM_CODEC_H

#include <monkey/upstream.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/fcgi.h"
#include "http/response_parser.h"

/* How a piece of the request's content is written: with so much room before it and behind it. */
struct mk_codec_body_framing {
    uint8_t before, behind;
    void (*wrap)(char *piece, size_t len); /* fills that room; NULL: there is none */
    /* What follows the last piece; NULL: nothing. `source` is NULL unless it has trailers. */
    void (*end)(struct mk_buf *out, const struct mk_upstream_request_body *source, void *ctx);
};

enum { MK_CODEC_PIECE_MAX = 0xffff }; /* no frame holds more content */

/* What is known of the response while it is being read. */
struct mk_codec_response_state {
    struct mk_response_parser reply;
    struct mk_fcgi fcgi;
    void (*on_error_text)(void *ctx, mk_str text);
    void *ctx;
    int error; /* once a step was MK_RESPONSE_PARSER_ERROR: what mk_upstream_request_head() answers */
    const char *problem; /* and why: static */
};

struct mk_codec_ops {
    bool keeps;  /* a connection may be used again */
    bool is_cgi; /* the response is what a CGI program writes */
    /* Writes the head of the request; memory that runs out shows in `out`. 0, or -EINVAL or -E2BIG with
     * *problem (static). */
    mk_err (*write_head)(struct mk_buf *out, const struct mk_upstream_request_options *options,
                         const char **problem);
    const struct mk_codec_body_framing *(*frame)(const struct mk_upstream_request_options *options);
    /* As mk_response_parser_next() and mk_response_parser_eof(); MK_RESPONSE_PARSER_ERROR sets input->error. */
    enum mk_response_parser_event (*read)(struct mk_codec_response_state *input, mk_str *in, mk_str *data);
    enum mk_response_parser_event (*read_end)(struct mk_codec_response_state *input);
};

extern const struct mk_codec_ops mk_codec_http, mk_codec_fastcgi, mk_codec_scgi, mk_codec_uwsgi;

/* ---- What several protocols share ---- */

/* Content as it is. */
extern const struct mk_codec_body_framing mk_codec_plain_frame;

/* The response is nothing but its bytes. */
enum mk_response_parser_event mk_codec_read_response(struct mk_codec_response_state *input, mk_str *in,
                                                     mk_str *data);
enum mk_response_parser_event mk_codec_read_eof(struct mk_codec_response_state *input);
/* MK_RESPONSE_PARSER_ERROR, for this reason, or for that of input->reply. */
enum mk_response_parser_event mk_codec_fail(struct mk_codec_response_state *input, int error,
                                            const char *problem);
enum mk_response_parser_event mk_codec_fail_parse(struct mk_codec_response_state *input);

/* Is its content sent when the server has asked for it? */
bool mk_codec_awaits_continue(const struct mk_upstream_request_options *options);
/* Does a request of that method say so when it has no content? */
bool mk_codec_method_has_body(mk_str method);

#endif
