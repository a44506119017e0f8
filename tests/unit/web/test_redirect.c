/* SPDX-License-Identifier: Apache-2.0 */
#include "web/redirect.h"

#include "unit/web/site_case.h"

static void expect_folder(const char *target, const char *location)
{
    struct mk_exchange *x = site_get(&site, target, "");
    assert_true(mk_redirect_to_folder(&x->request, &x->response, 301));
    assert_int_equal(x->response.status, 301);
    assert_str(site_field(x, "Location"), location);
    assert_true(mk_is_header_value(site_field(x, "Location")));
    assert_str(site_field(x, "Content-Type"), "text/html; charset=utf-8");
    assert_true(site_content(x).len > 0);
    mk_exchange_free(x);
}

static void redirect_path_keeps_encoding(void **state)
{
    (void)state;
    expect_folder("/a/b", "/a/b/");
    expect_folder("/a%20b", "/a%20b/");
    expect_folder("/a%252Fb", "/a%252Fb/");
    expect_folder("/a%2fb%25", "/a%2Fb%25/");
    expect_folder("/%22%3C%3E\\%5E`%7B|%7D", "/%22%3C%3E%5C%5E%60%7B%7C%7D/");
    expect_folder("/a%3Fb%23c[d]", "/a%3Fb%23c%5Bd%5D/");
    expect_folder("/%0D%0ASet-Cookie:%20x%09", "/%0D%0ASet-Cookie:%20x%09/");
    expect_folder("/%C3%A4%ff%7F%01", "/%C3%A4%FF%7F%01/");
    expect_folder("/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@/");
    expect_folder("/%2D%2e%5F%7e%61%31", "/-._~a1/");
    expect_folder("/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40;", "/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40;/");
    expect_folder("//a;b/./c/../%3b", "/a;b/%3B/");
}

static void redirect_query_is_unchanged(void **state)
{
    (void)state;
    expect_folder("/a?x=%20&y=/?", "/a/?x=%20&y=/?");
    expect_folder("/a?", "/a/?");
}

static void expect_url(unsigned status, const char *url, const char *target, const char *location)
{
    struct mk_redirect to = {.status = status, .url = mk_str_from_c(url)};
    struct mk_exchange *x = site_get(&site, target, "");
    assert_int_equal(mk_redirect.handle(&x->request, &x->response, &to), MK_DONE);
    assert_int_equal(x->response.status, status);
    assert_str(site_field(x, "Location"), location);
    mk_exchange_free(x);
}

static void redirect_origin_gets_path_and_query(void **state)
{
    (void)state;
    expect_url(301, "https://example.org", "/", "https://example.org/");
    expect_url(302, "https://example.org", "/a%20b/?c=%20", "https://example.org/a%20b/?c=%20");
    expect_url(307, "https://example.org:8443", "/a?", "https://example.org:8443/a?");
    expect_url(308, "https://[::1]", "/a", "https://[::1]/a");
    expect_url(301, "https://example.org", "http://other/x?y", "https://example.org/x?y");
}

/* Browsers drop some control characters anywhere in a URL. */
static void redirect_escapes_control_characters(void **state)
{
    (void)state;
    for (unsigned byte = 1; byte <= 0x7f; byte = byte == ' ' ? 0x7f : byte + 1) {
        char target[32], folder[32], url[64];
        (void)snprintf(target, sizeof target, "/%%%02x/a%%%02X", byte, byte);
        (void)snprintf(folder, sizeof folder, "/%%%02X/a%%%02X/", byte, byte);
        (void)snprintf(url, sizeof url, "https://example.org%s", target);
        expect_folder(target, folder);
        expect_url(301, "https://example.org", target, url);
    }
}

static void redirect_complete_url_is_unchanged(void **state)
{
    (void)state;
    expect_url(301, "https://example.org/", "/a?b", "https://example.org/");
    expect_url(301, "https://example.org/x", "/a?b", "https://example.org/x");
    expect_url(301, "/elsewhere", "/a?b", "/elsewhere");
    expect_url(301, "//example.org", "/a", "//example.org");
    expect_url(301, "mailto:a@example.org", "/a", "mailto:a@example.org");
}

static void redirect_handles_every_method(void **state)
{
    (void)state;
    assert_int_equal(mk_redirect.methods, 0);
    assert_string_equal(mk_redirect.name, "redirect");
}

static void redirect_target_must_be_absolute_url_or_path(void **state)
{
    (void)state;
    static const char *const good[] = {"/",           "/a?b#c",       "http://x", "HTTPS://x.org:8/a?b",
                                       "a+b-c.1://x", "http://[::1]/"};
    static const char *const bad[] = {"",      "x",       "x.org",       "//x",        "/\\x",
                                      "http:", "http:/x", "http://",     "http:///x",  "http://?x",
                                      "://x",  "1a://x",  "a b://x",     "http://a b", "/a b",
                                      "/a\tb", "/a\n",    "http://x\x7f"};
    for (size_t i = 0; i < MK_LEN(good); i++)
        if (!mk_redirect_is_valid_url(mk_str_from_c(good[i])))
            fail_msg("`%s` is a target", good[i]);
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_redirect_is_valid_url(mk_str_from_c(bad[i])))
            fail_msg("`%s` is not a target", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(redirect_path_keeps_encoding, setup),
        fixture_test(redirect_query_is_unchanged, setup),
        fixture_test(redirect_origin_gets_path_and_query, setup),
        fixture_test(redirect_escapes_control_characters, setup),
        fixture_test(redirect_complete_url_is_unchanged, setup),
        fixture_test(redirect_handles_every_method, setup),
        cmocka_unit_test(redirect_target_must_be_absolute_url_or_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
