/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 codec. Rejects anything that could be parsed as another request or as the end of this one (request
 * smuggling). */
#include "http/header.h"
#include "http/method.h"
#include "http/scan.h"
#include "http/serialize.h"
#include "http/upgrade.h"
#include "upstream/codec.h"

enum { CHUNK_HEAD = 6, CHUNK_END = 2 }; /* "ffff\r\n", "\r\n" */

/* ---- Shared by several protocols ---- */

const struct mk_codec_body_framing mk_codec_plain_frame = {0};

enum mk_response_parser_event mk_codec_fail(struct mk_codec_response_state *input, int error,
                                            const char *problem)
{
    input->error = error;
    input->problem = problem;
    return MK_RESPONSE_PARSER_ERROR;
}

enum mk_response_parser_event mk_codec_fail_parse(struct mk_codec_response_state *input)
{
    const struct mk_response_parser *r = &input->reply;
    return mk_codec_fail(input, r->text.failed ? -ENOMEM : -EPROTO, r->problem);
}

enum mk_response_parser_event mk_codec_read_response(struct mk_codec_response_state *input, mk_str *in,
                                                     mk_str *data)
{
    enum mk_response_parser_event step = mk_response_parser_next(&input->reply, in, data);
    return step == MK_RESPONSE_PARSER_ERROR ? mk_codec_fail_parse(input) : step;
}

enum mk_response_parser_event mk_codec_read_eof(struct mk_codec_response_state *input)
{
    enum mk_response_parser_event step = mk_response_parser_eof(&input->reply);
    return step == MK_RESPONSE_PARSER_ERROR ? mk_codec_fail(input, -ECONNRESET, input->reply.problem) : step;
}

bool mk_codec_awaits_continue(const struct mk_upstream_request_options *options)
{
    return options->expects_continue && options->protocol == MK_UPSTREAM_PROTOCOL_HTTP && options->length &&
           !options->body.p && !options->upgrade.len;
}

bool mk_codec_method_has_body(mk_str method)
{
    enum mk_method m = mk_method_find(method);
    return m == MK_METHOD_POST || m == MK_METHOD_PUT || m == MK_METHOD_PATCH;
}

/* ---- The head of the request ---- */

struct head_writer {
    struct mk_buf *out;
    const struct mk_upstream_request_options *options;
    unsigned n_hosts;
    bool wants_trailers;
};

/* Is the first line Host, and does no line end the head or continue the previous line? */
static bool are_header_lines(mk_str lines)
{
    const char *at = lines.p, *end = lines.p + lines.len;
    if (!mk_str_starts(lines, MK_STR("Host: ")))
        return false;
    while (at < end) {
        const char *stop = mk_scan_is(*at, MK_SCAN_TOKEN) ? mk_scan_value(at, end) : at;
        if (stop == at || end - stop < 2 || stop[0] != '\r' || stop[1] != '\n')
            return false;
        at = stop + 2;
    }
    return true;
}

static bool write_raw_header_lines(struct head_writer *w)
{
    mk_str lines = w->options->raw_headers;
    if (!lines.p)
        return true;
    if (!are_header_lines(lines))
        return false;
    w->n_hosts++;
    mk_buf_add(w->out, lines);
    return true;
}

static bool write_request_line(struct head_writer *w)
{
    const struct mk_upstream_request_options *options = w->options;
    if (!mk_is_token(options->method) || mk_str_eq(options->method, MK_STR("CONNECT")) ||
        !mk_codec_is_valid_target(options->target))
        return false;
    mk_buf_put(w->out, options->method);
    mk_buf_put(w->out, MK_STR(" "));
    mk_buf_put(w->out, options->target);
    mk_buf_put(w->out, MK_STR(" HTTP/1.1\r\n"));
    return true;
}

/* Is it a connection or framing header, which only the codec writes? Expect is one of them: the caller sets
 * options->expects_continue instead. */
static bool is_managed_header(enum mk_header_id id)
{
    return mk_header_is_hop_by_hop(id) || id == MK_HEADER_EXPECT || id == MK_HEADER_HTTP2_SETTINGS;
}

static bool write_header(struct head_writer *w, const struct mk_header *field)
{
    enum mk_header_id id = mk_header_find_id(field->name);
    bool is_name = id != MK_HEADER_OTHER || mk_is_token(field->name);
    if (!is_name || !mk_is_header_value(field->value))
        return false;
    w->n_hosts += id == MK_HEADER_HOST;
    w->wants_trailers |= id == MK_HEADER_TE && mk_header_list_has(field->value, MK_STR("trailers"));
    if (!is_managed_header(id))
        mk_serialize_header(w->out, field->name, mk_str_trim(field->value));
    return true;
}

static bool write_headers(struct head_writer *w)
{
    for (size_t i = 0; i < w->options->n_headers; i++)
        if (!write_header(w, &w->options->headers[i]))
            return false;
    return w->n_hosts == 1;
}

/* "websocket", "example/2" */
static bool is_upgrade_protocol(mk_str s)
{
    mk_str rest = s, name = mk_str_cut(&rest, '/');
    return mk_is_token(name) && (!rest.p || mk_is_token(rest));
}

static bool write_connection_header(struct head_writer *w)
{
    if (w->options->upgrade.len) {
        bool is_streamed =
            w->options->length && !w->options->body.p; /* invalid: the source provides tunnel data, after the
                                                        * 101 */
        if (!is_upgrade_protocol(w->options->upgrade) || is_streamed)
            return false;
        mk_serialize_header(w->out, MK_STR("Upgrade"), w->options->upgrade);
        mk_buf_add(w->out, w->wants_trailers ? MK_STR("Connection: Upgrade, TE\r\n")
                                             : MK_STR("Connection: Upgrade\r\n"));
    } else if (w->wants_trailers) {
        mk_buf_add(w->out, MK_STR("Connection: TE\r\n"));
    }
    if (w->wants_trailers)
        mk_buf_add(w->out, MK_STR("TE: trailers\r\n"));
    return true;
}

/* If the body is empty, sends Content-Length: 0 only for methods that usually have a body (RFC 9110, section
 * 8.6). */
static void write_framing_headers(struct head_writer *w)
{
    const struct mk_upstream_request_options *options = w->options;
    if (options->length == MK_LENGTH_UNKNOWN)
        mk_buf_add(w->out, MK_STR("Transfer-Encoding: chunked\r\n"));
    else if (options->length > 0 || mk_codec_method_has_body(options->method))
        mk_serialize_header_num(w->out, MK_STR("Content-Length"), (uint64_t)options->length);
    if (mk_codec_awaits_continue(options))
        mk_buf_add(w->out, MK_STR("Expect: 100-continue\r\n"));
}

static mk_err http_write_head(struct mk_buf *out, const struct mk_upstream_request_options *options,
                              const char **problem)
{
    struct head_writer w = {.out = out, .options = options};
    *problem = "the request line is invalid";
    if (!write_request_line(&w))
        return -EINVAL;
    *problem = "a field is invalid, or there is not exactly one Host";
    if (!write_raw_header_lines(&w) || !write_headers(&w))
        return -EINVAL;
    *problem = "the upgrade is invalid";
    if (!write_connection_header(&w))
        return -EINVAL;
    write_framing_headers(&w);
    mk_serialize_head_end(out);
    return 0;
}

/* ---- The body of the request ---- */

/* Leading zeros are valid (RFC 9112, section 7.1) and pad the chunk size to the reserved length. */
static void write_chunk_frame(char *piece, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char *at = piece - CHUNK_HEAD;
    for (unsigned shift = 16; shift;)
        *at++ = digits[len >> (shift -= 4) & 0xf];
    *at++ = '\r';
    *at = '\n';
    piece[len] = '\r';
    piece[len + 1] = '\n';
}

static void write_last_chunk(struct mk_buf *out, const struct mk_upstream_request_body *source, void *ctx)
{
    mk_str name, value;
    mk_buf_add(out, MK_STR("0\r\n"));
    for (size_t i = 0; source && source->trailer_at && source->trailer_at(ctx, i, &name, &value); i++)
        if (mk_trailer_is_allowed(name) && mk_is_header_value(value))
            mk_serialize_header(out, name, mk_str_trim(value));
    mk_serialize_head_end(out);
}

static const struct mk_codec_body_framing chunked = {
    .before = CHUNK_HEAD, .behind = CHUNK_END, .wrap = write_chunk_frame, .end = write_last_chunk};

static const struct mk_codec_body_framing *
http_body_framing(const struct mk_upstream_request_options *options)
{
    return options->length == MK_LENGTH_UNKNOWN ? &chunked : &mk_codec_plain_frame;
}

const struct mk_codec_ops mk_codec_http = {
    .keeps = true,
    .write_head = http_write_head,
    .frame = http_body_framing,
};

/* ---- The WebSocket handshake (RFC 6455, section 4.1) ---- */

static const mk_str key_name = MK_STR_INIT("Sec-WebSocket-Key");

/* Finds the key in header lines that the caller has serialized (options->raw_headers). */
static mk_str find_key_in_lines(mk_str lines)
{
    while (lines.len) {
        mk_str line = mk_str_cut(&lines, '\n'), name = mk_str_cut(&line, ':');
        if (mk_str_eq_nocase(name, key_name))
            return mk_str_trim(mk_str_first(line, mk_str_find(line, '\r')));
    }
    return MK_STR_NULL;
}

static mk_str find_websocket_key(const struct mk_upstream_request_options *options)
{
    for (size_t i = 0; i < options->n_headers; i++)
        if (mk_str_eq_nocase(options->headers[i].name, key_name))
            return mk_str_trim(options->headers[i].value);
    return find_key_in_lines(options->raw_headers);
}

size_t mk_codec_http_accept_key(const struct mk_upstream_request_options *options, char *buf)
{
    struct mk_buf accept = mk_buf_fixed(buf, MK_UPGRADE_ACCEPT_LEN);
    mk_str key =
        mk_str_eq_nocase(options->upgrade, MK_UPGRADE_WEBSOCKET) ? find_websocket_key(options) : MK_STR_NULL;
    if (!key.p || key.len > MK_UPGRADE_KEY_LEN)
        return 0;
    mk_upgrade_websocket_accept_key(key, &accept);
    return accept.failed ? 0 : accept.len;
}

bool mk_codec_http_has_accept_key(const struct mk_headers *fields, mk_str key)
{
    mk_str value, more;
    unsigned at = 0;
    return mk_headers_next(fields, MK_HEADER_SEC_WEBSOCKET_ACCEPT, &at, &value) && mk_str_eq(value, key) &&
           !mk_headers_next(fields, MK_HEADER_SEC_WEBSOCKET_ACCEPT, &at, &more);
}
