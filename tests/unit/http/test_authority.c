/* SPDX-License-Identifier: Apache-2.0 */
#include "http/authority.h"

#include "unit/test.h"

struct good {
    const char *text, *host;
    uint32_t port;
};

static void authority_host_and_port_are_parsed(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"a", "a", MK_PORT_NONE},
        {"Example.org:0", "Example.org", 0},
        {"example.org:", "example.org", MK_PORT_NONE},
        {"example.org.", "example.org.", MK_PORT_NONE},
        {"example.org.:443", "example.org.", 443},
        {"1.2.3.4:65535", "1.2.3.4", 65535},
        {"a:000080", "a", 80},
        {"_x-1", "_x-1", MK_PORT_NONE},
        {"[::1]", "[::1]", MK_PORT_NONE},
        {"[2001:DB8:0:0:8:800:200C:417A]:8080", "[2001:DB8:0:0:8:800:200C:417A]", 8080},
        {"[0000:0000:0000:0000:0000:ffff:255.255.255.255]", "[0000:0000:0000:0000:0000:ffff:255.255.255.255]",
         MK_PORT_NONE},
        {"[::ffff:255.255.255.255]:", "[::ffff:255.255.255.255]", MK_PORT_NONE},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str host;
        uint32_t port = 7;
        if (mk_authority_parse(mk_str_from_c(cases[i].text), &host, &port) != 0)
            fail_msg("%s", cases[i].text);
        assert_str(host, cases[i].host);
        assert_int_equal(port, cases[i].port);
    }
}

static void authority_rejects_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        ":",
        ":80",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        "a:65536",
        "a:-1",
        "a:1 ",
        "a: 1",
        "a:99999999999999999999",
        "a:1:2",
        "a b",
        "a/b",
        "a\\b",
        "a%41",
        "user@a",
        "a,b",
        "\xc3\xa4",
        "a\t",
        "*",
        "a?",
        "[",
        "[]",
        "[:]",
        "[::1",
        "::1",
        "[::1]]",
        "[::1]80",
        "[::g]",
        "[1.2.3.4]",
        "[::1%25lo]",
        "[v1.a]",
        "[::1]:x",
        "[[::1]]",
        "a]",
        "a[",
        "[12345::]",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]",
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str host;
        uint32_t port;
        if (mk_authority_parse(mk_str_from_c(cases[i]), &host, &port) != 400)
            fail_msg("%s", cases[i]);
    }
}

static void authority_rejects_nul(void **state)
{
    (void)state;
    mk_str host;
    uint32_t port;
    assert_int_equal(mk_authority_parse(MK_STR("a\0b"), &host, &port), 400);
    assert_int_equal(mk_authority_parse(MK_STR("[::1\0]"), &host, &port), 400);
    assert_int_equal(mk_authority_parse(MK_STR("a:80\0"), &host, &port), 400);
    assert_int_equal(mk_authority_parse(MK_STR_NULL, &host, &port), 400);
}

/* Cached results must not affect later calls, whatever their order. */
static void authority_result_is_independent_of_earlier_calls(void **state)
{
    (void)state;
    static const char *const row[] = {
        "a.example:80",
        "a.example:80",
        "a.example",
        "a.example:8",
        "a..example",
        "a.example:80",
        "[::1]:1",
        "[::1]:1",
        "",
        "an-authority-that-is-longer-than-what-is-kept-between-two-requests.example:8080",
        "an-authority-that-is-longer-than-what-is-kept-between-two-requests.example:8080",
        "b:70000",
        "b",
        "",
    };
    struct mk_authority_cache last = {0};
    for (size_t i = 0; i < MK_LEN(row); i++) {
        mk_str text = mk_str_from_c(row[i]), host = MK_STR_NULL, alone = MK_STR_NULL;
        uint32_t port = 0, port_alone = 0;
        int status = mk_authority_parse(text, &alone, &port_alone);
        assert_int_equal(mk_authority_parse_cached(&last, text, &host, &port), status);
        if (status == 0)
            assert_true(host.p == text.p && host.len == alone.len && port == port_alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(authority_host_and_port_are_parsed),
        cmocka_unit_test(authority_rejects_malformed),
        cmocka_unit_test(authority_rejects_nul),
        cmocka_unit_test(authority_result_is_independent_of_earlier_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
