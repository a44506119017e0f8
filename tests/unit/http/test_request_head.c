/* SPDX-License-Identifier: Apache-2.0 */
/* Covers details that the wire tests do not show: the memory that strings point to, exact limits, `seen`, and
 * the cost of slow senders. */
#include "http/request_head.h"

#include "unit/test.h"

static struct mk_header_field buffer[MK_HEADERS_MAX];
static const struct mk_request_head_limits wide = {
    .head_max = 65536, .target_max = 8192, .fields_max = MK_HEADERS_MAX};

static int parse(struct mk_request_head *h, const char *text, const struct mk_request_head_limits *limits)
{
    *h = (struct mk_request_head){.fields = {.at = buffer}};
    return mk_request_head_parse(h, mk_str_from_c(text), 0, limits);
}

static void request_head_text_points_into_input(void **state)
{
    (void)state;
    const char *text = "\r\nPUT /x HTTP/1.0\r\nHost:  a \r\n\r\nbody";
    struct mk_request_head h;
    int len = parse(&h, text, &wide);
    assert_int_equal(len, strlen(text) - 4);
    assert_int_equal(h.len, len);
    assert_int_equal(h.method, MK_METHOD_PUT);
    assert_int_equal(h.minor, 0);
    assert_ptr_equal(h.method_text.p, text + 2);
    assert_ptr_equal(h.target.p, text + 6);
    assert_str(h.target, "/x");
    assert_int_equal(h.fields.n, 1);
    assert_ptr_equal(h.fields.at[0].name.p, strstr(text, "Host"));
    assert_ptr_equal(h.fields.at[0].value.p, strstr(text, "a "));
    assert_str(h.fields.at[0].value, "a");
    assert_int_equal(h.fields.at[0].id, MK_HEADER_HOST);
}

static void request_head_can_be_reused(void **state)
{
    (void)state;
    struct mk_request_head h;
    assert_true(parse(&h, "GET / HTTP/1.1\r\nHost: a\r\nRange: b\r\n\r\n", &wide) > 0);
    mk_str in = MK_STR("GET / HTTP/1.1\r\nAccept: c\r\n\r\n");
    assert_true(mk_request_head_parse(&h, in, 0, &wide) > 0);
    assert_int_equal(h.fields.n, 1);
    assert_false(mk_headers_has(&h.fields, MK_HEADER_HOST));
    assert_str(mk_headers_get(&h.fields, MK_HEADER_ACCEPT), "c");
}

static void request_head_size_limit_is_exact(void **state)
{
    (void)state;
    const char *text = "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore";
    size_t len = strlen(text) - 4;
    struct mk_request_head_limits limits = wide;
    struct mk_request_head h;
    limits.head_max = len;
    assert_int_equal(parse(&h, text, &limits), len);
    limits.head_max = len - 1;
    assert_int_equal(parse(&h, text, &limits), -431);
    limits.head_max = 0;
    assert_int_equal(parse(&h, text, &limits), -431);
}

static void request_head_target_and_field_limits_are_exact(void **state)
{
    (void)state;
    struct mk_request_head_limits limits = wide;
    struct mk_request_head h;
    limits.target_max = 3;
    assert_true(parse(&h, "GET /ab HTTP/1.1\r\n\r\n", &limits) > 0);
    assert_int_equal(parse(&h, "GET /abc HTTP/1.1\r\n\r\n", &limits), -414);
    assert_int_equal(parse(&h, "GET /abc", &limits), -414);
    limits.fields_max = 1;
    assert_true(parse(&h, "GET / HTTP/1.1\r\na: b\r\n\r\n", &limits) > 0);
    assert_int_equal(parse(&h, "GET / HTTP/1.1\r\na: b\r\nc", &limits), -431);
    limits.fields_max = 0;
    assert_true(parse(&h, "GET / HTTP/1.1\r\n\r\n", &limits) > 0);
    assert_int_equal(parse(&h, "GET / HTTP/1.1\r\na: b\r\n\r\n", &limits), -431);
}

static void request_head_empty_input_is_incomplete(void **state)
{
    (void)state;
    struct mk_request_head h = {.fields = {.at = buffer}};
    assert_int_equal(mk_request_head_parse(&h, MK_STR_NULL, 0, &wide), 0);
    assert_int_equal(mk_request_head_parse(&h, MK_STR("\r\n"), 0, &wide), 0);
    assert_int_equal(mk_request_head_parse(&h, MK_STR("\r"), 0, &wide), 0);
}

static void request_head_invalid_prefixes_are_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {"\n",
                                      "\rX",
                                      " ",
                                      "\x16",
                                      "GET\r",
                                      "GET /\r",
                                      "GET / X",
                                      "GET / HTTP/1.1\n",
                                      "GET / HTTP/1.1\r\n ",
                                      "GET / HTTP/1.1\r\nA B",
                                      "GET / HTTP/1.1\r\nA:\x01",
                                      "GET / HTTP/1.1\r\n\rX",
                                      "GET / HTTP/1.1\r\nA: b\rX"};
    struct mk_request_head h;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (parse(&h, bad[i], &wide) != -400)
            fail_msg("prefix %zu", i);
}

static void request_head_split_at_any_offset_gives_same_result(void **state)
{
    (void)state;
    mk_str text =
        MK_STR("\r\nGET /a/rather/long/target/that/is/longer/than/a/method?q HTTP/1.1\r\nHost: a\r\n"
               "User-Agent: x\r\nAccept: */*\r\n\r\nGET");
    for (size_t cut = 1; cut < text.len; cut++) {
        struct mk_request_head h = {.fields = {.at = buffer}};
        int first = mk_request_head_parse(&h, mk_str_first(text, cut), 0, &wide);
        assert_int_equal(first, cut >= text.len - 3 ? text.len - 3 : 0);
        if (first == 0)
            assert_int_equal(mk_request_head_parse(&h, text, cut, &wide), text.len - 3);
        assert_int_equal(h.fields.n, 3);
    }
}

/* The parser does not read seen bytes again until the head is complete: their content may even have
 * changed. */
static void request_head_seen_bytes_are_not_parsed_again(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    struct mk_request_head_limits limits = {.head_max = 8192, .target_max = 8192, .fields_max = 10};
    struct mk_request_head h = {.fields = {.at = buffer}};
    for (size_t len = 100; len < sizeof text; len++)
        assert_int_equal(mk_request_head_parse(&h, mk_str_of(text, len), len - 1, &limits), 0);
    assert_int_equal(mk_request_head_parse(&h, mk_str_of(text, sizeof text), 0, &limits), -501);
}

static void request_head_invalid_bytes_are_rejected_at_once(void **state)
{
    (void)state;
    char text[] = "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a name that is long enough ....";
    struct mk_request_head h = {.fields = {.at = buffer}};
    size_t len = sizeof text - 1;
    static const struct {
        const char *tail;
        int answer;
    } cases[] = {{"....", 0},      {"..\r\n", 0},   {"...\r", 0},      {"..\0.", -400},
                 {"...\n", -400},  {"..\r.", -400}, {".\r\r\n", -400}, {"\r\n\r\n", (int)sizeof text - 1},
                 {"\r\n\n.", -400}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        memcpy(text + len - 4, cases[i].tail, 4);
        assert_int_equal(mk_request_head_parse(&h, mk_str_of(text, len), len - 4, &wide), cases[i].answer);
    }
    /* The CR arrived in the previous piece; the byte that should be its LF arrives now. */
    memcpy(text + len - 4, "..\r.", 4);
    assert_int_equal(mk_request_head_parse(&h, mk_str_of(text, len), len - 1, &wide), -400);
}

static void request_head_versions(void **state)
{
    (void)state;
    struct mk_request_head h;
    assert_true(parse(&h, "GET / HTTP/1.9\r\n\r\n", &wide) > 0);
    assert_int_equal(h.minor, 9);
    assert_int_equal(parse(&h, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &wide), -505);
    assert_int_equal(parse(&h, "GET / HTTP/2.0", &wide), -505);
    assert_int_equal(parse(&h, "GET / HTTP/2.", &wide), 0);
    assert_int_equal(parse(&h, "GET / HTTP/1.1", &wide), 0);
    assert_int_equal(parse(&h, "GET / HTTP/1.1\r", &wide), 0);
    assert_int_equal(parse(&h, "GET / HTTP/1.1\n", &wide), -400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_head_text_points_into_input),
        cmocka_unit_test(request_head_can_be_reused),
        cmocka_unit_test(request_head_size_limit_is_exact),
        cmocka_unit_test(request_head_target_and_field_limits_are_exact),
        cmocka_unit_test(request_head_empty_input_is_incomplete),
        cmocka_unit_test(request_head_invalid_prefixes_are_rejected),
        cmocka_unit_test(request_head_split_at_any_offset_gives_same_result),
        cmocka_unit_test(request_head_seen_bytes_are_not_parsed_again),
        cmocka_unit_test(request_head_invalid_bytes_are_rejected_at_once),
        cmocka_unit_test(request_head_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
