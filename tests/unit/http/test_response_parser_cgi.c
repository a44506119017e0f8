/* SPDX-License-Identifier: Apache-2.0 */
/* Responses in CGI format. */
#include "unit/http/response_pieces.h"

static void expect(const char *text, unsigned status, const char *body)
{
    struct outcome o = read_all(text, true);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_int_equal(o.status, status);
    assert_str(mk_str_of(o.body, o.len), body);
    assert_false(o.keep_alive);
}

static void cgi_response_status_is_optional(void **state)
{
    (void)state;
    expect("Content-Type: text/plain\n\nhello", 200, "hello");
    expect("Content-Type: text/plain\r\n\r\nhello", 200, "hello");
    expect("X: y\n\r\nhello", 200, "hello");
    expect("X: y\r\n\nhello", 200, "hello");
    expect("Location: https://example.org/\n\n", 302, "");
    expect("Status: 404\nX: y\n\nno", 404, "no");
    expect("X: y\nStatus: 201 Created there\n\n", 201, "");
    expect("Location: /x\nStatus: 303 See Other\n\n", 303, "");
}

static void cgi_response_may_begin_with_status_line(void **state)
{
    (void)state;
    expect("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>", 200, "<p>");
    expect("HTTP/1.0 404\n\n", 404, "");
    expect("HTTP/2 410 Gone\nX: y\n\n", 410, "");
}

static void cgi_response_content_length_bounds_body(void **state)
{
    (void)state;
    expect("Content-Length: 5\n\nhello", 200, "hello");
    struct outcome o = read_all("Content-Length: 5\n\nhello and more", false);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_END);
    assert_int_equal(o.rest, 9);
    o = read_all("Content-Length: 5\n\nhell", true);
    assert_int_equal(o.step, MK_RESPONSE_PARSER_ERROR);
    assert_string_equal(o.problem, "the response is incomplete");
    assert_int_equal(read_all("Content-Length: 0\n\n", false).step, MK_RESPONSE_PARSER_END);
}

static void cgi_response_statuses_without_body(void **state)
{
    (void)state;
    assert_int_equal(read_all("Status: 304\n\nx", false).rest, 1);
    assert_int_equal(read_all("Status: 204\n\n", false).step, MK_RESPONSE_PARSER_END);
    request.head = true;
    assert_int_equal(read_all("Content-Length: 7\n\nhello", false).rest, 5);
    request.head = false;
}

static void cgi_response_rejects_malformed_head(void **state)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"\n", "no header before the empty line"},
        {"\r\nX: y\n\n", "no header before the empty line"},
        {"hello\n\n", "without a colon"},
        {"X : y\n\n", "field name"},
        {" X: y\n\n", "field name"},
        {"X: y\n folded\n\n", "without a colon"},
        {"X: \x01\n\n", "control"},
        {"X: y\r\r\n\n", "control"},
        {"Status: 99\n\n", "200 to 599"},
        {"Status: 101\n\n", "200 to 599"},
        {"Status: 600\n\n", "200 to 599"},
        {"Status: 2000\n\n", "200 to 599"},
        {"Status: OK\n\n", "200 to 599"},
        {"Status: 200\nStatus: 200\n\n", "a second status"},
        {"HTTP/1.1 200 OK\nStatus: 200\n\n", "a second status"},
        {"HTTP/1.1 100 Continue\n\n", "an invalid status line"},
        {"HTTP/x 200 OK\n\n", "an invalid status line"},
        {"HTTP/1.1\n\n", "an invalid status line"},
        {"HTTP/1.1 200 \x01\n\n", "an invalid status line"},
        {"Location:\n\n", "an empty Location"},
        {"Location: a\nLocation: a\n\n", "a second Location"},
        {"Content-Type: a\nContent-Type: a\n\n", "a second Content-Type"},
        {"Content-Length: 1\nContent-Length: 1\n\n", "a second Content-Length"},
        {"Content-Length: x\n\n", "number"},
        {"Content-Length: 9223372036854775808\n\n", "number"},
        {"Transfer-Encoding: chunked\n\n", "only the server"},
        {"A: b\nA: b\nA: b\nA: b\nA: b\n\n", "too many headers"},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct outcome o = read_all(cases[i].text, false);
        assert_int_equal(o.step, MK_RESPONSE_PARSER_ERROR);
        assert_contains(mk_str_from_c(o.problem), cases[i].problem);
    }
    assert_string_equal(read_all("X: y\n", true).problem, "the response is incomplete");
    assert_string_equal(read_all("", true).problem, "the connection was closed without a response");
}

static const char *parse(struct mk_response_head *h, const char *text)
{
    static struct mk_header_field fields[FIELDS_MAX];
    *h = (struct mk_response_head){.fields.at = fields};
    return mk_response_head_parse(h, mk_str_from_c(text), FIELDS_MAX, request);
}

static void cgi_response_error_names_line(void **state)
{
    struct mk_response_head h;
    (void)state;
    assert_non_null(parse(&h, "A: b\r\nC d\r\nE: f\r\n\r\n"));
    assert_str(h.where, "C d");
    assert_false(h.is_too_long);
    assert_non_null(parse(&h, "\n"));
    assert_null(h.where.p);
    assert_non_null(parse(&h, "A:\nA:\nA:\nA:\nA: 5\n\n"));
    assert_true(h.is_too_long);
    assert_null(parse(&h, "A: b\n\n"));
    assert_null(h.where.p);
}

static void cgi_response_local_redirect_is_recognized(void **state)
{
    struct mk_response_head h;
    (void)state;
    assert_null(parse(&h, "Location: /x?y\nContent-Type: text/html\nDate: x\n\n"));
    assert_true(mk_response_head_is_local_redirect(&h));
    assert_int_equal(h.status, 302);
    assert_false(h.has_status);
    static const char *const others[] = {"Location: //x/y\n\n", "Location: http://x/y\n\n",
                                         "Location: /x\nStatus: 302\n\n", "Location: /x\nSet-Cookie: a=b\n\n",
                                         "X: /y\n\n"};
    for (size_t i = 0; i < MK_LEN(others); i++) {
        assert_null(parse(&h, others[i]));
        assert_false(mk_response_head_is_local_redirect(&h));
    }
}

static void cgi_response_head_is_bounded(void **state)
{
    static char text[2 * MK_RESPONSE_PARSER_HEAD_MAX];
    (void)state;
    memset(text, 'a', sizeof text);
    assert_string_equal(read_in_pieces(mk_str_of(text, sizeof text), sizeof text, false).problem,
                        "the response head is longer than 32 KB");
    assert_string_equal(read_in_pieces(mk_str_of(text, sizeof text), 1000, false).problem,
                        "the response head is longer than 32 KB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cgi_response_status_is_optional),
        cmocka_unit_test(cgi_response_may_begin_with_status_line),
        cmocka_unit_test(cgi_response_content_length_bounds_body),
        cmocka_unit_test(cgi_response_statuses_without_body),
        cmocka_unit_test(cgi_response_rejects_malformed_head),
        cmocka_unit_test(cgi_response_error_names_line),
        cmocka_unit_test(cgi_response_local_redirect_is_recognized),
        cmocka_unit_test(cgi_response_head_is_bounded),
    };
    request.cgi = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
