/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_codec.h"

#include "http/header.h"
#include "http/method.h"
#include "http/scan.h"
#include "http/upgrade.h"
#include "http2client/h2_session_stream.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"

/* ---- The head of the request ---- */

struct head_writer {
    struct mk_buf *out;
    const struct mk_upstream_request_options *options;
    mk_str host;
    unsigned n_hosts;
    bool wants_trailers;
};

void mk_h2_codec_end_block(struct mk_buf *out, size_t from, unsigned flags)
{
    size_t first = from + MK_H2_FRAME_HEAD;
    if (out->failed)
        return;
    size_t len = mk_min(out->len - first, (size_t)MK_H2_FRAME_MAX), at = first + len;
    bool is_whole = at == out->len;
    mk_h2_frame_write_head(out->p + from, (uint32_t)len, MK_H2_HEADERS,
                           flags | (is_whole ? MK_H2_END_HEADERS : 0), 0);
    while (at < out->len) {
        size_t rest = out->len - at, n = mk_min(rest, (size_t)MK_H2_FRAME_MAX);
        if (!mk_buf_reserve(out, MK_H2_FRAME_HEAD))
            return;
        memmove(out->p + at + MK_H2_FRAME_HEAD, out->p + at, rest);
        out->len += MK_H2_FRAME_HEAD;
        mk_h2_frame_write_head(out->p + at, (uint32_t)n, MK_H2_CONTINUATION,
                               n == rest ? MK_H2_END_HEADERS : 0, 0);
        at += MK_H2_FRAME_HEAD + n;
    }
}

static void begin_block(struct mk_buf *out)
{
    static const char space[MK_H2_FRAME_HEAD];
    mk_buf_add(out, mk_str_of(space, sizeof space));
}

/* Headers that HTTP/2 forbids, and headers that this codec writes itself. WebSocket has no key over HTTP/2 (RFC
 * 8441, section 5). */
static bool is_managed_header(const struct head_writer *w, enum mk_header_id id)
{
    return mk_header_is_hop_by_hop(id) || id == MK_HEADER_HOST || id == MK_HEADER_EXPECT ||
           id == MK_HEADER_HTTP2_SETTINGS || (id == MK_HEADER_SEC_WEBSOCKET_KEY && w->options->upgrade.len);
}

/* Credentials are never to be indexed by another proxy (RFC 7541, section 7.1.3). */
static bool is_secret(enum mk_header_id id)
{
    return id == MK_HEADER_AUTHORIZATION || id == MK_HEADER_COOKIE || id == MK_HEADER_PROXY_AUTHORIZATION;
}

static void write_header(struct head_writer *w, mk_str name, mk_str value)
{
    enum mk_header_id id = mk_header_find_id(name);
    w->wants_trailers |= id == MK_HEADER_TE && mk_header_list_has(value, MK_STR("trailers"));
    if (MK_UNLIKELY(is_managed_header(w, id)))
        return;
    if (MK_UNLIKELY(is_secret(id)))
        mk_hpack_encode_never_indexed(w->out, name, value);
    else
        mk_hpack_encode(w->out, name, value);
}

/* Splits a preformatted line into name and value. False: the line could end the head or continue another
 * one. */
static bool next_line(const char **at, const char *end, mk_str *name, mk_str *value)
{
    const char *from = *at, *colon = mk_scan_skip(from, end, MK_SCAN_TOKEN);
    if (colon == from || end - colon < 2 || colon[0] != ':')
        return false;
    const char *stop = mk_scan_value(colon + 1, end);
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n')
        return false;
    *name = mk_str_of(from, (size_t)(colon - from));
    *value = mk_scan_trim(colon + 1, stop);
    *at = stop + 2;
    return true;
}

/* The first line is Host; see mk_upstream_request_options.raw_headers. */
static bool find_host(struct head_writer *w)
{
    const struct mk_upstream_request_options *options = w->options;
    const char *at = options->raw_headers.p, *end = at ? at + options->raw_headers.len : NULL;
    mk_str name;
    if (at && (!next_line(&at, end, &name, &w->host) || !mk_str_eq_nocase(name, MK_STR("Host"))))
        return false;
    w->n_hosts = at != NULL;
    for (size_t i = 0; i < options->n_headers; i++)
        if (mk_header_find_id(options->headers[i].name) == MK_HEADER_HOST) {
            w->host = mk_str_trim(options->headers[i].value);
            w->n_hosts++;
        }
    return w->n_hosts == 1;
}

static bool write_raw_headers(struct head_writer *w)
{
    mk_str lines = w->options->raw_headers, name, value;
    if (!lines.len)
        return true;
    for (const char *at = lines.p, *end = at + lines.len; at < end;) {
        if (!next_line(&at, end, &name, &value))
            return false;
        write_header(w, name, value);
    }
    return true;
}

static bool write_headers(struct head_writer *w)
{
    for (size_t i = 0; i < w->options->n_headers; i++) {
        const struct mk_header *f = &w->options->headers[i];
        if (!mk_is_token(f->name) || !mk_is_header_value(f->value))
            return false;
        write_header(w, f->name, mk_str_trim(f->value));
    }
    return true;
}

static bool write_pseudo_headers(struct head_writer *w)
{
    const struct mk_upstream_request_options *options = w->options;
    bool is_connect = options->upgrade.len > 0;
    if (!mk_is_token(options->method) || mk_str_eq(options->method, MK_STR("CONNECT")) ||
        !mk_codec_is_valid_target(options->target) || (is_connect && !mk_is_token(options->upgrade)))
        return false;
    mk_hpack_encode(w->out, MK_STR(":method"), is_connect ? MK_STR("CONNECT") : options->method);
    mk_hpack_encode(w->out, MK_STR(":scheme"),
                    mk_upstream_is_tls(options->upstream) ? MK_STR("https") : MK_STR("http"));
    mk_hpack_encode(w->out, MK_STR(":path"), options->target);
    if (w->host.len) /* RFC 9113, section 8.3.1: an empty authority is omitted */
        mk_hpack_encode(w->out, MK_STR(":authority"), w->host);
    if (is_connect)
        mk_hpack_encode(w->out, MK_STR(":protocol"), options->upgrade);
    return true;
}

static void write_framing_headers(struct head_writer *w)
{
    const struct mk_upstream_request_options *options = w->options;
    bool has_length =
        options->length > 0 || (options->length == 0 && mk_codec_method_has_body(options->method));
    if (has_length && !options->upgrade.len)
        mk_hpack_encode_num(w->out, MK_STR("content-length"), (uint64_t)options->length);
    if (mk_codec_awaits_continue(options))
        mk_hpack_encode(w->out, MK_STR("expect"), MK_STR("100-continue"));
    if (w->wants_trailers)
        mk_hpack_encode(w->out, MK_STR("te"), MK_STR("trailers"));
}

static mk_err h2_write_head(struct mk_buf *out, const struct mk_upstream_request_options *options,
                            const char **problem)
{
    struct head_writer w = {.out = out, .options = options};
    bool is_connect = options->upgrade.len > 0;
    begin_block(out);
    *problem = "a field is invalid, or there is not exactly one Host";
    if (!find_host(&w))
        return -EINVAL;
    *problem = "the request line is invalid";
    if (!write_pseudo_headers(&w))
        return -EINVAL;
    *problem = "a field is invalid, or there is not exactly one Host";
    if (!write_raw_headers(&w) || !write_headers(&w))
        return -EINVAL;
    *problem = "the upgrade is invalid";
    if (is_connect && options->length)
        return -EINVAL;
    write_framing_headers(&w);
    mk_h2_codec_end_block(out, 0,
                          is_connect             ? MK_H2_SESSION_STREAM_CONNECT
                          : options->length == 0 ? MK_H2_END_STREAM
                                                 : 0);
    return 0;
}

/* ---- The body of the request ---- */

static void write_data_head(char *piece, size_t len)
{
    mk_h2_frame_write_head(piece - MK_H2_FRAME_HEAD, (uint32_t)len, MK_H2_DATA, 0, 0);
}

/* Ends the stream: with trailers, or with an empty DATA frame, which the stream joins with the last piece. */
static void write_body_end(struct mk_buf *out, const struct mk_upstream_request_body *source, void *ctx)
{
    mk_str name, value;
    size_t from = out->len, n = 0;
    begin_block(out);
    for (size_t i = 0; source && source->trailer_at && source->trailer_at(ctx, i, &name, &value); i++)
        if (mk_trailer_is_allowed(name) && mk_is_header_value(value)) {
            mk_hpack_encode(out, name, mk_str_trim(value));
            n++;
        }
    if (n)
        mk_h2_codec_end_block(out, from, MK_H2_END_STREAM);
    else if (!out->failed)
        mk_h2_frame_write_head(out->p + from, 0, MK_H2_DATA, MK_H2_END_STREAM, 0);
}

static const struct mk_codec_body_framing data_frames = {
    .before = MK_H2_FRAME_HEAD, .wrap = write_data_head, .end = write_body_end};

static const struct mk_codec_body_framing *h2_body_framing(const struct mk_upstream_request_options *options)
{
    return options->length && !options->upgrade.len ? &data_frames : &mk_codec_plain_frame;
}

/* ---- The response ---- */

/* Completes the header of the next record. False: bytes are missing. */
static bool read_record_head(struct mk_codec_record *r, mk_str *in)
{
    size_t n = mk_min(in->len, sizeof r->head - r->n);
    memcpy(r->head + r->n, in->p, n);
    *in = mk_str_skip(*in, n);
    r->n += (uint8_t)n;
    if (r->n < sizeof r->head)
        return false;
    struct mk_h2_frame f = mk_h2_frame_parse(mk_str_of(r->head, sizeof r->head));
    r->left = f.length;
    r->type = f.type;
    r->flags = f.flags;
    r->n = 0;
    r->is_open = true;
    return true;
}

static void skip_record_bytes(struct mk_codec_record *r, mk_str *in, size_t n)
{
    *in = mk_str_skip(*in, n);
    r->left -= (uint32_t)n;
}

/* A response that ends with its head has no body: its length is known. */
static void set_length_of_empty_body(struct mk_codec_response_state *input)
{
    struct mk_response_head *head = &input->reply.head;
    if (!input->record.left && input->record.flags & MK_H2_END_STREAM && !head->has_length &&
        !input->reply.request.head && head->body == MK_RESPONSE_BODY_UNTIL_CLOSE)
        head->has_length = true;
}

/* Parses bytes of a head or of the body. */
static enum mk_response_parser_event read_message(struct mk_codec_response_state *input, mk_str *in,
                                                  mk_str *data)
{
    struct mk_codec_record *r = &input->record;
    mk_str piece = mk_str_first(*in, r->left);
    size_t len = piece.len;
    enum mk_response_parser_event step = mk_codec_read_response(input, &piece, data);
    skip_record_bytes(r, in, len - piece.len);
    if (step == MK_RESPONSE_PARSER_HEAD)
        set_length_of_empty_body(input);
    if (step == MK_RESPONSE_PARSER_END)
        return mk_codec_fail(input, -EPROTO, "the response is longer than its Content-Length");
    return step;
}

static enum mk_response_parser_event read_trailers(struct mk_codec_response_state *input, mk_str *in,
                                                   mk_str *data)
{
    *data = mk_str_first(*in, input->record.left);
    skip_record_bytes(&input->record, in, data->len);
    return data->len ? MK_RESPONSE_PARSER_TRAILERS : MK_RESPONSE_PARSER_MORE;
}

/* Reads the next bytes of a record, or ends it. */
static enum mk_response_parser_event read_record(struct mk_codec_response_state *input, mk_str *in,
                                                 mk_str *data)
{
    struct mk_codec_record *r = &input->record;
    bool has_trailers = r->type == MK_H2_HEADERS && r->flags & MK_H2_SESSION_STREAM_TRAILERS;
    if (r->left && in->len)
        return has_trailers ? read_trailers(input, in, data) : read_message(input, in, data);
    if (r->left)
        return MK_RESPONSE_PARSER_MORE;
    r->is_open = false;
    return r->flags & MK_H2_END_STREAM ? mk_codec_read_eof(input) : MK_RESPONSE_PARSER_MORE;
}

static enum mk_response_parser_event h2_read(struct mk_codec_response_state *input, mk_str *in, mk_str *data)
{
    struct mk_codec_record *r = &input->record;
    enum mk_response_parser_event step = MK_RESPONSE_PARSER_MORE;
    if (input->error)
        return MK_RESPONSE_PARSER_ERROR;
    if (input->reply.head.status == 101) /* a tunnel, whose bytes are in no records */
        return MK_RESPONSE_PARSER_END;
    while (step == MK_RESPONSE_PARSER_MORE) {
        if (!r->is_open && !read_record_head(r, in))
            return MK_RESPONSE_PARSER_MORE;
        if (r->left && !in->len)
            return MK_RESPONSE_PARSER_MORE;
        step = read_record(input, in, data);
    }
    return step;
}

static enum mk_response_parser_event h2_read_eof(struct mk_codec_response_state *input)
{
    if (input->error)
        return MK_RESPONSE_PARSER_ERROR;
    return mk_codec_fail(input, -ECONNRESET, "the response is incomplete");
}

const struct mk_codec_ops mk_h2_codec = {
    .write_head = h2_write_head, .frame = h2_body_framing, .read = h2_read, .read_end = h2_read_eof};
