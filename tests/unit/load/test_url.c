/* SPDX-License-Identifier: Apache-2.0 */
#include "load/url.h"

#include "unit/test.h"

static void expect(const char *text, const char *authority, const char *host, unsigned port,
                   const char *target)
{
    struct load_url u;
    assert_null(load_url_parse(mk_str_from_c(text), &u));
    assert_str(u.whole, text);
    assert_str(u.authority, authority);
    assert_string_equal(u.host, host);
    assert_int_equal(u.port, port);
    assert_str(u.target, target);
    assert_int_equal(u.tls, text[4] == 's');
}

static void url_has_host_port_and_target(void **state)
{
    (void)state;
    expect("http://a.example", "a.example", "a.example", 80, "/");
    expect("http://a.example:8080/x/y?z=http://b", "a.example:8080", "a.example", 8080, "/x/y?z=http://b");
    expect("http://[::1]:65535/", "[::1]:65535", "::1", 65535, "/");
    expect("http://[::1]", "[::1]", "::1", 80, "/");
    expect("https://[::1]", "[::1]", "::1", 443, "/");
    expect("https://a:1/", "a:1", "a", 1, "/");
}

static void url_fragment_is_not_requested(void **state)
{
    (void)state;
    expect("http://a/b?c#d", "a", "a", 80, "/b?c");
    expect("http://a/#b", "a", "a", 80, "/");
    expect("http://a#b/c", "a", "a", 80, "/");
}

static void url_invalid_is_rejected(void **state)
{
    static const char *const texts[] = {"",
                                        "a.example",
                                        "ftp://a/",
                                        "https:/a/",
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
                                        "http://#a",
                                        "http://a/\xc3\xbc",
                                        "http://a:8080x/",
                                        "http://[::1]x:80/",
                                        "http://a:80@b/",
                                        "http://a?b",
                                        "http://a/\x7f",
                                        "http://a/\r\nX: y"};
    struct load_url u;
    (void)state;
    for (size_t i = 0; i < MK_LEN(texts); i++)
        if (!load_url_parse(mk_str_from_c(texts[i]), &u))
            fail_msg("%s was accepted", texts[i]);
}

static void url_addresses_need_no_resolver(void **state)
{
    struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX];
    struct load_url u;
    const char *why;
    (void)state;
    assert_null(load_url_parse(MK_STR("http://127.0.0.1:8080/"), &u));
    assert_int_equal(load_url_resolve(&u, at, &why), 1);
    assert_int_equal(mk_sockaddr_port(&at[0]), 8080);
}

static void url_host_has_at_most_255_bytes(void **state)
{
    char text[300];
    struct load_url u;
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    assert_null(load_url_parse(mk_str_of(text, 7 + LOAD_URL_HOST_MAX), &u));
    assert_int_equal(strlen(u.host), LOAD_URL_HOST_MAX);
    assert_non_null(load_url_parse(mk_str_of(text, 8 + LOAD_URL_HOST_MAX), &u));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(url_has_host_port_and_target),   cmocka_unit_test(url_fragment_is_not_requested),
        cmocka_unit_test(url_invalid_is_rejected),        cmocka_unit_test(url_host_has_at_most_255_bytes),
        cmocka_unit_test(url_addresses_need_no_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
