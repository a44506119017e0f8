/* SPDX-License-Identifier: Apache-2.0 */
/* A codec serializes requests and parses responses: one function table per protocol. The codec does not read
 * or write the connection itself. */
#ifndef MK_UPSTREAM_CODEC_H
#define MK_UPSTREAM_CODEC_H

#include <monkey/upstream.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/fcgi.h"
#include "http/response_parser.h"
#include "http/scan.h"

/* Framing of a piece of request body: bytes reserved before and after it. */
struct mk_codec_body_framing {
    uint8_t before, behind;
    void (*wrap)(char *piece, size_t len); /* fills the reserved bytes; NULL: no framing */
    /* Appends the terminator after the last piece; NULL: none. `source` provides the trailers; NULL: there
     * are none. */
    void (*end)(struct mk_buf *out, const struct mk_upstream_request_body *source, void *ctx);
};

enum { MK_CODEC_PIECE_MAX = 0xffff }; /* the largest body piece that fits in a frame */

/* Parser of the records of an HTTP/2 stream: see src/http2client/h2_codec.h. */
struct mk_codec_record {
    char head[9];
    uint8_t n; /* bytes of `head` */
    bool is_open;
    uint8_t type, flags;
    uint32_t left; /* bytes of the record still to be read */
};

/* State of the response parser. */
struct mk_codec_response_state {
    struct mk_response_parser reply;
    union { /* of the protocols that frame the response */
        struct mk_fcgi fcgi;
        struct mk_codec_record record;
    };
    void (*on_error_text)(void *ctx, mk_str text);
    void *ctx;
    int error;           /* after MK_RESPONSE_PARSER_ERROR: return value of mk_upstream_request_head() */
    const char *problem; /* reason for the error (static string) */
};

struct mk_codec_ops {
    bool keeps;  /* keep-alive: the connection may be reused */
    bool is_cgi; /* the response has CGI syntax */
    /* Serializes the request head; if memory runs out, out->failed is set. Returns 0, or -EINVAL or -E2BIG
     * with *problem (static). */
    mk_err (*write_head)(struct mk_buf *out, const struct mk_upstream_request_options *options,
                         const char **problem);
    const struct mk_codec_body_framing *(*frame)(const struct mk_upstream_request_options *options);
    /* Called in place of mk_codec_read_response() and mk_codec_read_eof() if the protocol frames the
     * response; NULL: it does not. */
    enum mk_response_parser_event (*read)(struct mk_codec_response_state *input, mk_str *in, mk_str *data);
    enum mk_response_parser_event (*read_end)(struct mk_codec_response_state *input);
};

extern const struct mk_codec_ops mk_codec_http, mk_codec_fastcgi, mk_codec_scgi, mk_codec_uwsgi;

/* ---- HTTP ---- */

/* Writes the Sec-WebSocket-Accept expected for the request. Returns MK_UPGRADE_ACCEPT_LEN, or 0 if the
 * request is not a handshake with a key. */
size_t mk_codec_http_accept_key(const struct mk_upstream_request_options *options, char *buf);
/* Does the response have exactly one Sec-WebSocket-Accept, with this key? */
bool mk_codec_http_has_accept_key(const struct mk_headers *fields, mk_str key);

/* ---- Shared by several protocols ---- */

/* Body without framing. */
extern const struct mk_codec_body_framing mk_codec_plain_frame;

/* Parse a response without framing, like mk_response_parser_next() and mk_response_parser_eof();
 * MK_RESPONSE_PARSER_ERROR sets input->error. */
enum mk_response_parser_event mk_codec_read_response(struct mk_codec_response_state *input, mk_str *in,
                                                     mk_str *data);
enum mk_response_parser_event mk_codec_read_eof(struct mk_codec_response_state *input);
/* Both return MK_RESPONSE_PARSER_ERROR. The reason in `input` is `problem`, or the parser's reason in
 * input->reply. */
enum mk_response_parser_event mk_codec_fail(struct mk_codec_response_state *input, int error,
                                            const char *problem);
enum mk_response_parser_event mk_codec_fail_parse(struct mk_codec_response_state *input);

/* Is the body held back until the server sends 100 Continue? */
bool mk_codec_awaits_continue(const struct mk_upstream_request_options *options);
/* Does a request with this method send Content-Length: 0 when its body is empty? */
bool mk_codec_method_has_body(mk_str method);
/* Is the target visible ASCII without `#`, as our own parser requires? */
static inline bool mk_codec_is_valid_target(mk_str target)
{
    const char *end = target.p + target.len, *path;
    return target.len > 0 && mk_scan_target(target.p, end, &path) == end;
}

#endif
