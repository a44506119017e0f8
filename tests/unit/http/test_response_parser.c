/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/http/response_pieces.h"

#include "unit/test.h"

static void expect(const char *text, unsigned status, const char *body, bool keep_alive)
{
    struct outcome o = read_all(text, false);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_int_equal(o.status, status);
    assert_str(mk_str_of(o.body, o.len), body);
    assert_int_equal(o.keep_alive, keep_alive);
    assert_int_equal(o.rest, 0);
}

static void response_parser_body_with_content_length(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true);
    expect("HTTP/1.1 404 \r\ncontent-length:0\r\nX: \xff\r\n\r\n", 404, "", true);
    expect("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\n!", 200, "!", false);
    expect("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, "!", false);
    expect("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n!", 200, "!", true);
}

static void response_parser_chunked_body(void **state)
{
    (void)state;
    expect(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nT: x\r\n\r\n",
        200, "hello!T: x\r\n", true);
}

static void response_parser_statuses_without_body(void **state)
{
    (void)state;
    expect("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true);
    expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", true);
    expect(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 \r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
        "2\r\n\r\nhi",
        200, "103 Link: x|100|hi", true);
}

static void response_parser_body_ends_with_connection(void **state)
{
    (void)state;
    struct outcome o = read_all("HTTP/1.0 200 OK\r\n\r\nhello", true);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_str(mk_str_of(o.body, o.len), "hello");
    assert_false(o.keep_alive);
}

static void response_parser_head_response_has_no_body(void **state)
{
    (void)state;
    request.head = true;
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, "", true);
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", true);
    expect("HTTP/1.1 200 OK\r\n\r\n", 200, "", true);
    request.head = false;
}

static void response_parser_upgrade_leaves_protocol_data(void **state)
{
    (void)state;
    request.upgrade = true;
    struct outcome o =
        read_all("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81", false);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_int_equal(o.status, 101);
    assert_int_equal(o.rest, 1);
    assert_string_equal(read_all("HTTP/1.1 101 X\r\n\r\n", false).problem, "101 without a requested Upgrade");
    /* the server need not accept the upgrade */
    expect("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, "!", true);
    request.upgrade = false;
}

static void response_parser_keeps_headers(void **state)
{
    static const mk_str head =
        MK_STR_INIT("HTTP/1.1 200 Very well\r\nSet-Cookie: a\r\nset-cookie: b\r\nX:  y \r\n\r\n");
    struct mk_header_field fields[3];
    struct mk_response_head h = {.fields.at = fields};
    unsigned at = 0;
    mk_str value;
    (void)state;
    assert_null(mk_response_head_parse(&h, head, 3, request));
    assert_str(h.reason, "Very well");
    assert_int_equal(h.fields.n, 3);
    assert_str(mk_headers_find(&h.fields, MK_STR("x")), "y");
    assert_true(mk_headers_next(&h.fields, MK_HEADER_SET_COOKIE, &at, &value));
    assert_true(mk_headers_next(&h.fields, MK_HEADER_SET_COOKIE, &at, &value));
    assert_str(value, "b");
    assert_string_equal(mk_response_head_parse(&h, head, 2, request), "the head has too many headers");
    assert_null(mk_response_head_parse(&h, head, 0, request));
    assert_int_equal(h.fields.n, 0);
}

static void response_parser_reason_is_optional(void **state)
{
    static const char *const heads[] = {"HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 200\r\n\r\n"};
    struct mk_header_field fields[1];
    struct mk_response_head h = {.fields.at = fields};
    (void)state;
    for (size_t i = 0; i < MK_LEN(heads); i++) {
        assert_null(mk_response_head_parse(&h, mk_str_from_c(heads[i]), 1, request));
        assert_int_equal(h.status, 200);
        assert_str(h.reason, "");
    }
}

static void response_parser_leaves_following_bytes(void **state)
{
    (void)state;
    struct outcome o = read_all("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!HTTP", false);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_int_equal(o.rest, 4);
}

static uint64_t left_of(const char *text)
{
    struct mk_response_parser r;
    mk_str in = mk_str_from_c(text), data;
    mk_response_parser_init(&r, request, NULL, 0);
    while (goes_on(mk_response_parser_next(&r, &in, &data)) && in.len)
        continue;
    uint64_t left = mk_response_parser_body_left(&r);
    bool is_over = mk_response_parser_has_all_body(&r);
    assert_int_equal(is_over, mk_response_parser_next(&r, &in, &data) == MK_RESPONSE_PARSER_END);
    mk_response_parser_fini(&r);
    return left;
}

static void response_parser_reports_remaining_body(void **state)
{
    (void)state;
    assert_int_equal(left_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 5);
    assert_int_equal(left_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), 2);
    assert_int_equal(left_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), UINT64_MAX);
    assert_int_equal(left_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), UINT64_MAX);
    assert_int_equal(left_of("HTTP/1.1 200 OK\r\n\r\nhel"), UINT64_MAX);
    assert_int_equal(left_of("HTTP/1.1 103 \r\n\r\n"), UINT64_MAX);
    assert_int_equal(left_of("HTTP/1.1 204 \r\n\r\n"), UINT64_MAX);
}

static void response_parser_truncated_is_an_error(void **state)
{
    static const char *const texts[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        struct outcome o = read_all(texts[i], true);
        assert_int_equal(o.step, MK_RESPONSE_PARSER_ERROR);
        assert_string_equal(o.problem, "the response is incomplete");
    }
    assert_string_equal(read_all("", true).problem, "the connection was closed without a response");
}

static void response_parser_rejects_malformed(void **state)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"SSH-2.0-OpenSSH", "HTTP/1."},
        {"\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1."},
        {"HTTP/1.2 200 OK\r\n\r\n", "version"},
        {"HTTP/1.1 200OK\r\n\r\n", "status line"},
        {"HTTP/1.1 20\r\n\r\n", "status line"},
        {"HTTP/1.1 20 OK\r\n\r\n", "status line"},
        {"HTTP/1.1 099 OK\r\n\r\n", "status"},
        {"HTTP/1.1 600 OK\r\n\r\n", "status"},
        {"HTTP/1.1 101 Switching\r\n\r\n", "101"},
        {"HTTP/1.1 200 O\x01K\r\n\r\n", "reason"},
        {"HTTP/1.1 200 OK\n\n", "CRLF"},
        {"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "CRLF"},
        {"HTTP/1.1 200 OK\r\nA b\r\n\r\n", "colon"},
        {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "an invalid field name"},
        {"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "an invalid field name"},
        {"HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n", "control"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "a second Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "number"},
        {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "number"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "number"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         "other than chunked"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "both"},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunked coding"},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct outcome o = read_all(cases[i].text, false);
        assert_int_equal(o.step, MK_RESPONSE_PARSER_ERROR);
        assert_contains(mk_str_from_c(o.problem), cases[i].problem);
    }
}

static void response_parser_heads_and_interim_responses_are_bounded(void **state)
{
    static const char interim[] = "HTTP/1.1 100 \r\n\r\n";
    static char text[2 * MK_RESPONSE_PARSER_HEAD_MAX];
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    struct outcome o = read_in_pieces(mk_str_of(text, sizeof text), 1000, false);
    assert_string_equal(o.problem, "the response head is longer than 32 KB");
    assert_string_equal(read_in_pieces(mk_str_of(text, sizeof text), sizeof text, false).problem, o.problem);
    for (size_t i = 0; i <= MK_RESPONSE_PARSER_1XX_MAX; i++)
        memcpy(text + i * (sizeof interim - 1), interim, sizeof interim);
    assert_string_equal(read_all(text, false).problem, "too many interim responses");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(response_parser_body_with_content_length),
        cmocka_unit_test(response_parser_chunked_body),
        cmocka_unit_test(response_parser_statuses_without_body),
        cmocka_unit_test(response_parser_body_ends_with_connection),
        cmocka_unit_test(response_parser_head_response_has_no_body),
        cmocka_unit_test(response_parser_upgrade_leaves_protocol_data),
        cmocka_unit_test(response_parser_keeps_headers),
        cmocka_unit_test(response_parser_reason_is_optional),
        cmocka_unit_test(response_parser_leaves_following_bytes),
        cmocka_unit_test(response_parser_reports_remaining_body),
        cmocka_unit_test(response_parser_truncated_is_an_error),
        cmocka_unit_test(response_parser_rejects_malformed),
        cmocka_unit_test(response_parser_heads_and_interim_responses_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
