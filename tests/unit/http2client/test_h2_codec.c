/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 codec: heads of requests, and records of responses that arrive in pieces of any size. */
#include "http2client/h2_codec.h"

#include <errno.h>

#include "http2client/h2_session_stream.h"
#include "unit/test.h"

static bool is_tls;

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return is_tls;
}

/* ---- Requests ---- */

static char decoded[8192];
static struct mk_buf lines;

static int on_header(void *ctx, mk_str name, mk_str value)
{
    (void)ctx;
    mk_header_append(&lines, name, value);
    return 0;
}

/* Encodes the head, and decodes it again: "name: value" in lines. */
static mk_str encode(const struct mk_upstream_request_options *options, unsigned *flags)
{
    static char text[256 * 1024], block[256 * 1024];
    const char *problem = NULL;
    struct mk_buf out = mk_buf_fixed(text, sizeof text), joined = mk_buf_fixed(block, sizeof block);
    struct mk_hpack_decoder *h = mk_hpack_decoder_new();
    lines = mk_buf_fixed(decoded, sizeof decoded);
    if (mk_h2_codec.write_head(&out, options, &problem)) {
        mk_hpack_decoder_free(h);
        return mk_str_from_c(problem);
    }
    *flags = 0;
    for (mk_str rest = mk_buf_str(&out); rest.len;) {
        struct mk_h2_frame f = mk_h2_frame_parse(rest);
        assert_int_equal(f.type, joined.len ? MK_H2_CONTINUATION : MK_H2_HEADERS);
        assert_int_equal(f.stream, 0);
        assert_true(f.length <= MK_H2_FRAME_MAX);
        *flags |= f.flags;
        mk_buf_add(&joined, mk_str_first(mk_str_skip(rest, MK_H2_FRAME_HEAD), f.length));
        rest = mk_str_skip(rest, MK_H2_FRAME_HEAD + f.length);
    }
    assert_int_equal(mk_hpack_decode(h, mk_buf_str(&joined), on_header, NULL), 0);
    mk_hpack_decoder_free(h);
    return mk_buf_str(&lines);
}

static void codec_head_has_pseudo_headers_first(void **state)
{
    struct mk_header te = {MK_STR("TE"), MK_STR("trailers")};
    struct mk_upstream_request_options options = {
        .method = MK_STR("POST"),
        .target = MK_STR("/a?b"),
        .raw_headers = MK_STR("Host: example.org\r\nX-A: 1\r\nConnection: close\r\nCookie: c\r\n"),
        .headers = &te,
        .n_headers = 1,
        .length = 5};
    unsigned flags;
    (void)state;
    assert_str(encode(&options, &flags),
               ":method: POST\r\n:scheme: http\r\n:path: /a?b\r\n:authority: example.org\r\n"
               "x-a: 1\r\ncookie: c\r\ncontent-length: 5\r\nte: trailers\r\n");
    assert_int_equal(flags, MK_H2_END_HEADERS);
    options.length = 0;
    options.method = MK_STR("GET");
    is_tls = true;
    (void)encode(&options, &flags);
    is_tls = false;
    assert_int_equal(flags, MK_H2_END_HEADERS | MK_H2_END_STREAM);
}

static void codec_websocket_is_an_extended_connect(void **state)
{
    struct mk_upstream_request_options options = {
        .method = MK_STR("GET"),
        .target = MK_STR("/ws"),
        .raw_headers =
            MK_STR("Host: a\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"),
        .upgrade = MK_STR("websocket")};
    unsigned flags;
    (void)state;
    assert_str(encode(&options, &flags),
               ":method: CONNECT\r\n:scheme: http\r\n:path: /ws\r\n:authority: a\r\n"
               ":protocol: websocket\r\nsec-websocket-version: 13\r\n");
    assert_int_equal(flags, MK_H2_END_HEADERS | MK_H2_SESSION_STREAM_CONNECT);
}

static void codec_long_head_continues_in_further_frames(void **state)
{
    static char value[40 * 1024];
    struct mk_header header[] = {{MK_STR("Host"), MK_STR("a")},
                                 {MK_STR("x"), mk_str_of(value, sizeof value)}};
    struct mk_upstream_request_options options = {
        .method = MK_STR("GET"), .target = MK_STR("/"), .headers = header, .n_headers = 2};
    unsigned flags;
    (void)state;
    memset(value, 'v', sizeof value);
    (void)encode(&options, &flags);
    assert_int_equal(flags, MK_H2_END_HEADERS | MK_H2_END_STREAM);
}

static void codec_invalid_heads_are_refused(void **state)
{
    static const mk_str raw[] = {MK_STR_INIT("X: 1\r\nHost: a\r\n"),  MK_STR_INIT("Host: a\r\nx y: 1\r\n"),
                                 MK_STR_INIT("Host: a\r\nX: 1\n"),    MK_STR_INIT("Host: a\r\n\r\n"),
                                 MK_STR_INIT("Host: a\r\nX: \1\r\n"), MK_STR_INIT("Host: a")};
    unsigned flags;
    (void)state;
    for (size_t i = 0; i < MK_LEN(raw); i++) {
        struct mk_upstream_request_options options = {
            .method = MK_STR("GET"), .target = MK_STR("/"), .raw_headers = raw[i]};
        assert_str(encode(&options, &flags), "a field is invalid, or there is not exactly one Host");
    }
    struct mk_upstream_request_options bad = {
        .method = MK_STR("CONNECT"), .target = MK_STR("/"), .raw_headers = MK_STR("Host: a\r\n")};
    assert_str(encode(&bad, &flags), "the request line is invalid");
    bad.method = MK_STR("GET");
    bad.target = MK_STR("/ a");
    assert_str(encode(&bad, &flags), "the request line is invalid");
}

/* ---- Responses ---- */

static void add_record(struct mk_buf *out, enum mk_h2_type type, unsigned flags, mk_str payload)
{
    mk_h2_frame_emit_head(out, (uint32_t)payload.len, type, flags, 0);
    mk_buf_add(out, payload);
}

/* Describes the events of a response: "H200 Dhello T... E". */
static void describe(mk_str records, size_t piece, bool head, struct mk_buf *out)
{
    struct mk_header_field fields[100];
    struct mk_codec_response_state input = {0};
    mk_response_parser_init(&input.reply, (struct mk_response_parser_options){.head = head, .upgrade = true},
                            fields, MK_LEN(fields));
    for (bool is_over = false; !is_over && records.len;) {
        mk_str in = mk_str_first(records, piece), data = MK_STR_NULL;
        records = mk_str_skip(records, in.len);
        for (enum mk_response_parser_event step = MK_RESPONSE_PARSER_HEAD;
             step != MK_RESPONSE_PARSER_MORE && !is_over;) {
            step = mk_h2_codec.read(&input, &in, &data);
            is_over = step == MK_RESPONSE_PARSER_END || step == MK_RESPONSE_PARSER_ERROR;
            if (step == MK_RESPONSE_PARSER_HEAD)
                mk_buf_addf(out, "H%u ", input.reply.head.status);
            else if (step == MK_RESPONSE_PARSER_DATA || step == MK_RESPONSE_PARSER_TRAILERS)
                mk_buf_add(out, data);
            else if (is_over)
                mk_buf_addf(out, step == MK_RESPONSE_PARSER_END ? " E" : " %s", input.problem);
        }
    }
    mk_response_parser_fini(&input.reply);
}

static void check_events(mk_str records, bool head, const char *expected)
{
    for (size_t piece = 1; piece <= records.len; piece++) {
        char text[512];
        struct mk_buf out = mk_buf_fixed(text, sizeof text);
        describe(records, piece, head, &out);
        assert_str(mk_buf_str(&out), expected);
    }
}

static void codec_records_arrive_in_pieces_of_any_size(void **state)
{
    char text[512];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    (void)state;
    add_record(&out, MK_H2_HEADERS, 0, MK_STR("HTTP/1.1 103 \r\nlink: x\r\n\r\n"));
    add_record(&out, MK_H2_HEADERS, 0, MK_STR("HTTP/1.1 200 \r\na: b\r\n\r\n"));
    add_record(&out, MK_H2_DATA, 0, MK_STR("hello "));
    add_record(&out, MK_H2_DATA, 0, MK_STR(""));
    add_record(&out, MK_H2_DATA, 0, MK_STR("you"));
    add_record(&out, MK_H2_HEADERS, MK_H2_END_STREAM | MK_H2_SESSION_STREAM_TRAILERS, MK_STR("x: y\r\n"));
    check_events(mk_buf_str(&out), false, "H103 H200 hello youx: y\r\n E");
}

static void codec_length_must_match(void **state)
{
    char text[512];
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    (void)state;
    add_record(&out, MK_H2_HEADERS, 0, MK_STR("HTTP/1.1 200 \r\ncontent-length: 3\r\n\r\n"));
    size_t head = out.len;
    add_record(&out, MK_H2_DATA, MK_H2_END_STREAM, MK_STR("abc"));
    check_events(mk_buf_str(&out), false, "H200 abc E");
    out.len = head;
    add_record(&out, MK_H2_DATA, MK_H2_END_STREAM, MK_STR("ab"));
    check_events(mk_buf_str(&out), false, "H200 ab the response is incomplete");
    out.len = head;
    add_record(&out, MK_H2_DATA, MK_H2_END_STREAM, MK_STR("abcd"));
    check_events(mk_buf_str(&out), false, "H200 abc the response is longer than its Content-Length");
    out.len = head;
    add_record(&out, MK_H2_DATA, MK_H2_END_STREAM, MK_STR(""));
    check_events(mk_buf_str(&out), true, "H200  E");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec_head_has_pseudo_headers_first),
        cmocka_unit_test(codec_websocket_is_an_extended_connect),
        cmocka_unit_test(codec_long_head_continues_in_further_frames),
        cmocka_unit_test(codec_invalid_heads_are_refused),
        cmocka_unit_test(codec_records_arrive_in_pieces_of_any_size),
        cmocka_unit_test(codec_length_must_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
