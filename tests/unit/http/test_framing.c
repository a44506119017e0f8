/* SPDX-License-Identifier: Apache-2.0 */
/* tests/wire/framing.txt covers the rejected messages; these tests cover what a wire test cannot show. */
#include "http/framing.h"

#include <stdio.h>

#include "http/authority.h"
#include "unit/test.h"

static struct mk_header_field buffer[MK_HEADERS_MAX];
static const struct mk_request_head_limits limits = {
    .head_max = 65536, .target_max = 8192, .fields_max = MK_HEADERS_MAX};

static int framing(const char *text, struct mk_framing *f)
{
    struct mk_request_head h = {.fields = {.at = buffer}};
    assert_true(mk_request_head_parse(&h, mk_str_from_c(text), 0, &limits) > 0);
    return mk_framing_parse(&h, &(struct mk_authority_cache){0}, f);
}

static void framing_plain_request(void **state)
{
    (void)state;
    struct mk_framing f;
    assert_int_equal(framing("GET / HTTP/1.1\r\nHost: a:81\r\n\r\n", &f), 0);
    assert_int_equal(f.body, MK_BODY_NONE);
    assert_int_equal(f.length, 0);
    assert_true(f.keep_alive);
    assert_false(f.expect_continue);
    assert_str(f.host, "a");
    assert_int_equal(f.port, 81);
}

static void framing_http10_needs_no_host(void **state)
{
    (void)state;
    struct mk_framing f;
    assert_int_equal(framing("GET / HTTP/1.0\r\n\r\n", &f), 0);
    assert_null(f.host.p);
    assert_int_equal(f.port, MK_PORT_NONE);
    assert_false(f.keep_alive);
}

static void framing_connection(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        bool keep_alive, keep_alive_10;
    } cases[] = {
        {"Connection: keep-alive\r\n", true, true},
        {"connection: Keep-Alive \r\n", true, true},
        {"Connection: keep-alive\r\nConnection: close\r\n", false, false},
        {"Connection: close\r\nConnection: keep-alive\r\n", false, false},
        {"Connection: keep-alive, close\r\n", false, false},
        {"Connection: keep-aliveX\r\nConnection: CLOSE\r\n", false, false},
        {"Connection: keep_alive\r\n", true, false},
        {"Connection: te, keep-alive\r\n", true, true},
        {"Connection: \r\n", true, false},
    };
    char text[200];
    struct mk_framing f;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        for (int minor = 0; minor < 2; minor++) {
            (void)snprintf(text, sizeof text, "GET / HTTP/1.%d\r\nHost: a\r\n%s\r\n", minor, cases[i].lines);
            assert_int_equal(framing(text, &f), 0);
            if (f.keep_alive != (minor ? cases[i].keep_alive : cases[i].keep_alive_10))
                fail_msg("HTTP/1.%d: %s", minor, cases[i].lines);
        }
}

static void framing_content_length(void **state)
{
    (void)state;
    struct mk_framing f;
    const char *most = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n";
    assert_int_equal(framing(most, &f), 0);
    assert_int_equal(f.body, MK_BODY_LENGTH);
    assert_true(f.length == UINT64_MAX);
    assert_int_equal(framing("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &f), 0);
    assert_int_equal(f.body, MK_BODY_NONE);
    assert_int_equal(framing("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", &f), 0);
    assert_int_equal(f.body, MK_BODY_CHUNKED);
    assert_int_equal(f.length, 0);
}

static void framing_without_length_has_no_body(void **state)
{
    (void)state;
    struct mk_framing f;
    const char *heads[] = {"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\n\r\n",
                           "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.0\r\n\r\n",
                           "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"};
    for (size_t i = 0; i < MK_LEN(heads); i++) {
        assert_int_equal(framing(heads[i], &f), 0);
        assert_int_equal(f.body, MK_BODY_NONE);
        assert_int_equal(f.length, 0);
        assert_false(f.expect_continue);
    }
}

static void framing_host_is_checked_first(void **state)
{
    (void)state;
    struct mk_framing f;
    assert_int_equal(framing("POST / HTTP/1.1\r\nExpect: x\r\n\r\n", &f), 400);
    assert_int_equal(framing("POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", &f), 417);
    assert_int_equal(framing("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", &f), 417);
}

static void framing_expect_100_continue(void **state)
{
    (void)state;
    struct mk_framing f;
    const char *chunked =
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-CONTINUE\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_int_equal(framing(chunked, &f), 0);
    assert_true(f.expect_continue);
    const char *old = "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
    assert_int_equal(framing(old, &f), 0);
    assert_false(f.expect_continue);
    const char *empty = "PUT / HTTP/1.1\r\nHost: a\r\nExpect:\r\nContent-Length: 1\r\n\r\n";
    assert_int_equal(framing(empty, &f), 0);
    assert_false(f.expect_continue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framing_plain_request),
        cmocka_unit_test(framing_http10_needs_no_host),
        cmocka_unit_test(framing_connection),
        cmocka_unit_test(framing_content_length),
        cmocka_unit_test(framing_without_length_has_no_body),
        cmocka_unit_test(framing_host_is_checked_first),
        cmocka_unit_test(framing_expect_100_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
