/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/url.h"

#include "unit/test.h"

static void expect(const char *text, const char *authority, const char *host, const char *port,
                   const char *target)
{
    struct pace_url u;
    assert_null(pace_url_parse(mk_str_from_c(text), &u));
    assert_str(u.authority, authority);
    assert_string_equal(u.host, host);
    assert_string_equal(u.port, port);
    assert_str(u.target, target);
}

static void a_url_has_host_port_and_target(void **state)
{
    (void)state;
    expect("http://a.example", "a.example", "a.example", "80", "/");
    expect("http://a.example:8080/x/y?z=http://b", "a.example:8080", "a.example", "8080", "/x/y?z=http://b");
    expect("http://[::1]:65535/", "[::1]:65535", "::1", "65535", "/");
    expect("http://[::1]", "[::1]", "::1", "80", "/");
}

static void anything_else_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "a.example",
                                        "https://a/",
                                        "http://",
                                        "http:///x",
                                        "http://a:0/",
                                        "http://a:65536/",
                                        "http://a:x/",
                                        "http://a:/",
                                        "http://[::1/",
                                        "http://[]/",
                                        "http://[::1]8/",
                                        "http://u:p@a/",
                                        "http://u@a/",
                                        "http://a/ b",
                                        "http://a/#b",
                                        "http://a?b",
                                        "http://a/\x7f",
                                        "http://a/\r\nX: y"};
    struct pace_url u;
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++)
        if (!pace_url_parse(mk_str_from_c(texts[i]), &u))
            fail_msg("%s was taken", texts[i]);
}

static void addresses_need_no_resolver(void **state)
{
    struct mk_addr at[PACE_URL_ADDRESSES_MAX];
    struct pace_url u;
    const char *why;
    (void)state;
    assert_null(pace_url_parse(MK_STR("http://127.0.0.1:8080/"), &u));
    assert_int_equal(pace_url_resolve(&u, at, &why), 1);
    assert_int_equal(mk_addr_port(&at[0]), 8080);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_host_port_and_target),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(addresses_need_no_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
