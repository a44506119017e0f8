/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/upstream.h>

#include "unit/test.h"

static void url_is_split(void **state)
{
    static const struct {
        const char *url;
        bool tls;
        const char *server, *authority, *target;
    } cases[] = {
        {"http://a", false, "a", "a", "/"},
        {"https://a:8443", true, "a:8443", "a:8443", "/"},
        {"http://[::1]:80/check?x=1", false, "[::1]:80", "[::1]:80", "/check?x=1"},
        {"http://a/", false, "a", "a", "/"},
        {"http://unix:/run/a.sock", false, "unix:/run/a.sock", "localhost", "/"},
        {"https://unix:/run/a.sock:/check", true, "unix:/run/a.sock", "localhost", "/check"},
        {"http://unix:/run/a.sock:", false, "unix:/run/a.sock", "localhost", "/"},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_upstream_url url;
        assert_int_equal(mk_upstream_parse_url(mk_str_from_c(cases[i].url), &url), 0);
        assert_int_equal(url.tls, cases[i].tls);
        assert_str(url.server, cases[i].server);
        assert_str(url.authority, cases[i].authority);
        assert_str(url.target, cases[i].target);
    }
}

static void url_of_other_scheme_is_rejected(void **state)
{
    static const char *const cases[] = {"", "a", "ftp://a", "http:/a", "HTTP://a", "127.0.0.1:1"};
    struct mk_upstream_url url;
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(mk_upstream_parse_url(mk_str_from_c(cases[i]), &url), -EPROTONOSUPPORT);
}

static void url_without_server_or_with_invalid_path_is_rejected(void **state)
{
    static const char *const cases[] = {"http://",      "https:///a",  "http://a/b c",
                                        "http://a/b#c", "http://a/\"", "http://unix:/a:check"};
    struct mk_upstream_url url;
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        assert_int_equal(mk_upstream_parse_url(mk_str_from_c(cases[i]), &url), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(url_is_split),
        cmocka_unit_test(url_of_other_scheme_is_rejected),
        cmocka_unit_test(url_without_server_or_with_invalid_path_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
