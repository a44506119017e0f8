/* SPDX-License-Identifier: Apache-2.0 */
#include <http/address.h>
#include <http/allow.h>
#include <http/url.h>

#include "unit/test.h"

/* ---- URLs ---- */

static void http_url_is_parsed(void **state)
{
    struct http_url url;
    (void)state;
    assert_null(http_url_parse(MK_STR("HTTPS://API.Example.org.:8443/a/b?c=/d#e"), &url));
    assert_true(url.is_https);
    assert_string_equal(url.host, "api.example.org");
    assert_string_equal(url.authority, "api.example.org:8443");
    assert_int_equal(url.port, 8443);
    assert_str(url.path, "/a/b");
    assert_str(url.target, "/a/b?c=/d");
    assert_null(http_url_parse(MK_STR("http://[::1]?q"), &url));
    assert_string_equal(url.host, "::1");
    assert_string_equal(url.authority, "[::1]");
    assert_int_equal(url.port, 80);
    assert_str(url.target, "?q");
    assert_null(http_url_parse(MK_STR("https://a:443"), &url));
    assert_string_equal(url.authority, "a");
    assert_null(http_url_parse(MK_STR("http://[::ffff:127.0.0.1]/"), &url));
    assert_string_equal(url.host, "127.0.0.1");
}

static void http_url_rejects_invalid_and_ambiguous_urls(void **state)
{
    static const char *const bad[] = {"",
                                      "http:/a",
                                      "ftp://a/",
                                      "http://",
                                      "http:///x",
                                      "http://user@a/",
                                      "http://a@b@c/",
                                      "http://a\\@b/",
                                      "http://a:0/",
                                      "http://a:65536/",
                                      "http://a:8x/",
                                      "http://a:80:90/",
                                      "http://[::1/",
                                      "http://[1.2.3.4]x/",
                                      "http://a b/",
                                      "http://a/\x7f",
                                      "http://a/\xc3\xa9",
                                      "http://a\n/",
                                      "http://..a/",
                                      "http://a..b/",
                                      "http://.a/",
                                      "http://a%2eb/",
                                      "http://127.1/",
                                      "http://2130706433/",
                                      "http://0x7f.1/",
                                      "http://0177.0.0.1/",
                                      "http://1.2.3.256/",
                                      "http://a.0x7f/",
                                      "http://[fe80::1%25lo]/",
                                      "http://%61/",
                                      "//a/",
                                      "/a",
                                      "javascript:x"};
    struct http_url url;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!http_url_parse(mk_str_from_c(bad[i]), &url))
            fail_msg("accepted: %s", bad[i]);
    char longest[HTTP_URL_HOST_MAX + 20] = "http://";
    memset(longest + 7, 'a', HTTP_URL_HOST_MAX + 1);
    assert_non_null(http_url_parse(mk_str_from_c(longest), &url));
}

/* RFC 3986, section 5.4, with http URLs. */
static void http_url_references_are_resolved(void **state)
{
    static const char *const cases[][2] = {
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {";x", "http://a/b/c/;x"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"https://h/x/../y?z", "https://h/y?z"},
        {"//h?q", "http://h?q"},
        {" /s\t", "http://a/s"},
        {"/a b\xc3\xa9", "http://a/a%20b%C3%A9"},
        {"%2e%2E/g", "http://a/b/g"},
        {"HTTP://h", "http://h"},
        {"/g//h", "http://a/g//h"},
        {"//h:81/", "http://h:81/"},
    };
    struct http_url base;
    (void)state;
    assert_null(http_url_parse(MK_STR("http://a/b/c/d;p?q"), &base));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mk_buf out = mk_buf_growing(1000);
        assert_null(http_url_resolve(&base, mk_str_from_c(cases[i][0]), &out));
        assert_str(mk_buf_str(&out), cases[i][1]);
        mk_buf_free(&out);
    }
}

static void http_url_references_to_other_schemes_are_rejected(void **state)
{
    static const char *const bad[] = {
        "ftp://x/", "javascript:alert(1)", "mailto:a@b", "file:///etc/passwd", "http:/x", "http:g", "/a\x01",
        "/a\x7f"};
    struct http_url base;
    (void)state;
    assert_null(http_url_parse(MK_STR("https://a/"), &base));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mk_buf out = mk_buf_growing(1000);
        if (!http_url_resolve(&base, mk_str_from_c(bad[i]), &out))
            fail_msg("resolved: %s", bad[i]);
        mk_buf_free(&out);
    }
}

static void http_url_origins_are_compared(void **state)
{
    static const char *const others[] = {"http://a.test/", "https://a.test:444/", "https://b.test/",
                                         "https://x.a.test/"};
    struct http_url url, other;
    (void)state;
    assert_null(http_url_parse(MK_STR("https://a.test/x"), &url));
    assert_null(http_url_parse(MK_STR("https://A.TEST:443/y"), &other));
    assert_true(http_url_has_same_origin(&url, &other));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_null(http_url_parse(mk_str_from_c(others[i]), &other));
        assert_false(http_url_has_same_origin(&url, &other));
    }
}

/* ---- AllowHosts ---- */

static bool allows(const char *entry, const char *text)
{
    char host[HTTP_URL_HOST_MAX + 1];
    struct http_allow allow;
    struct http_url url;
    assert_true(http_allow_parse(mk_str_from_c(entry), host, &allow));
    assert_null(http_url_parse(mk_str_from_c(text), &url));
    return http_allow_matches(&allow, &url);
}

static void http_allow_matches_scheme_host_and_port(void **state)
{
    (void)state;
    assert_true(allows("API.example.org", "https://api.example.org/x"));
    assert_true(allows("api.example.org", "http://api.example.org/x"));
    assert_false(allows("api.example.org", "http://api.example.org:8080/"));
    assert_false(allows("api.example.org", "https://api.example.org:80/"));
    assert_false(allows("api.example.org", "https://x.api.example.org/"));
    assert_false(allows("api.example.org", "https://api.example.org.evil.test/"));
    assert_true(allows("api.example.org:8080", "http://api.example.org:8080/"));
    assert_false(allows("api.example.org:8080", "http://api.example.org/"));
    assert_true(allows("https://api.example.org", "https://api.example.org/"));
    assert_false(allows("https://api.example.org", "http://api.example.org/"));
    assert_false(allows("http://api.example.org", "https://api.example.org/"));
    assert_true(allows("*.example.net", "https://a.b.example.net/"));
    assert_false(allows("*.example.net", "https://example.net/"));
    assert_false(allows("*.example.net", "https://evilexample.net/"));
    assert_true(allows("*", "https://anything.test/"));
    assert_false(allows("*", "https://anything.test:22/"));
    assert_true(allows("https://*:8443", "https://anything.test:8443/"));
    assert_true(allows("[::1]:81", "http://[0:0::1]:81/"));
    assert_true(allows("127.0.0.1", "http://127.0.0.1/"));
}

static void http_allow_rejects_invalid_hosts(void **state)
{
    static const char *const bad[] = {"",        "*x",  "*:0", "*:x",   "a/b", "a?b", "a#b",
                                      "ftp://a", "a b", "*.",  "*.*.a", "a.*", "u@a", "127.1"};
    char host[HTTP_URL_HOST_MAX + 1];
    struct http_allow allow;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (http_allow_parse(mk_str_from_c(bad[i]), host, &allow))
            fail_msg("accepted: %s", bad[i]);
}

/* ---- Addresses ---- */

static bool is_public(const char *text)
{
    struct mk_addr addr;
    assert_true(mk_addr_parse(mk_str_from_c(text), &addr));
    return http_address_is_public(&addr);
}

static void http_address_only_public_addresses_are_public(void **state)
{
    static const char *const public[] = {
        "1.1.1.1",     "8.8.8.8",         "9.255.255.255",   "11.0.0.0",        "100.63.255.255",
        "100.128.0.0", "126.255.255.255", "128.0.0.1",       "169.253.1.1",     "172.15.0.1",
        "172.32.0.1",  "192.0.1.1",       "192.167.0.1",     "192.169.0.1",     "198.17.0.1",
        "198.20.0.1",  "203.0.112.1",     "223.255.255.255", "2606:4700::1111", "2a00:1450::1",
        "2001:200::1", "2001:db7::1",     "::ffff:8.8.8.8",  "168.63.129.17"};
    static const char *const others[] = {"0.0.0.0",
                                         "0.1.2.3",
                                         "10.0.0.1",
                                         "10.255.255.255",
                                         "100.64.0.1",
                                         "100.100.100.200",
                                         "127.0.0.1",
                                         "127.255.255.254",
                                         "169.254.169.254",
                                         "169.254.0.1",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.0.0.192",
                                         "192.0.2.1",
                                         "192.88.99.1",
                                         "192.168.1.1",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "198.51.100.1",
                                         "203.0.113.1",
                                         "224.0.0.1",
                                         "239.1.1.1",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "168.63.129.16",
                                         "::",
                                         "::1",
                                         "::127.0.0.1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:169.254.169.254",
                                         "64:ff9b::8.8.8.8",
                                         "64:ff9b::7f00:1",
                                         "64:ff9b:1::1",
                                         "100::1",
                                         "2001::1",
                                         "2001:0:7f00:1::1",
                                         "2001:20::1",
                                         "2001:db8::1",
                                         "2002:7f00:1::1",
                                         "3fff::1",
                                         "4000::1",
                                         "5f00::1",
                                         "fc00::1",
                                         "fd00:ec2::254",
                                         "fe80::1",
                                         "fec0::1",
                                         "ff02::1"};
    const struct mk_addr local = {.is_unix = 1};
    (void)state;
    for (size_t i = 0; i < sizeof public / sizeof *public; i++)
        if (!is_public(public[i]))
            fail_msg("not public: %s", public[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_public(others[i]))
            fail_msg("public: %s", others[i]);
    assert_false(http_address_is_public(&local));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(http_url_is_parsed),
        cmocka_unit_test(http_url_rejects_invalid_and_ambiguous_urls),
        cmocka_unit_test(http_url_references_are_resolved),
        cmocka_unit_test(http_url_references_to_other_schemes_are_rejected),
        cmocka_unit_test(http_url_origins_are_compared),
        cmocka_unit_test(http_allow_matches_scheme_host_and_port),
        cmocka_unit_test(http_allow_rejects_invalid_hosts),
        cmocka_unit_test(http_address_only_public_addresses_are_public),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
