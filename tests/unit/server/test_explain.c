/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

#include "unit/setup/fixture.h"

static struct config_fixture c;
static char output[65536];

static void setup(void)
{
    config_setup(&c);
    folder_add_folder(&c.folder, "site/dir");
    folder_add_link(&c.folder, "site/link", "index.html");
    config_expect(
        &c, "[SERVER]\n    Listen 127.0.0.1:8080\n    Listen [::1]:81\n"
            "[HOST]\n    ServerName one.example\n    DocumentRoot site\n"
            "[ROUTES]\n    /old/* redirect 302 https://example.org\n    *.php status 403\n    /* static\n"
            "[HOST]\n    ServerName *.two.example\n    DocumentRoot site\n    Fallback index.html\n");
}

static mk_str explain(const char *method, const char *url)
{
    struct mk_buf out = mk_buf_fixed(output, sizeof output);
    mk_err e = mk_explain(c.g, &(struct mk_explain_request){.method = method, .url = url}, &out);
    if (e)
        fail_msg("%s %s: %s", method, url, mk_err_text(e));
    return mk_buf_str(&out);
}

/* Returns the text after the label `what`, or an absent string. */
static mk_str line(mk_str text, const char *what)
{
    while (text.len) {
        mk_str one = mk_str_cut(&text, '\n');
        if (mk_str_eq(mk_str_trim(mk_str_first(one, 10)), mk_str_from_c(what)))
            return mk_str_skip(one, 10);
    }
    return MK_STR_NULL;
}

static void explain_shows_every_step(void **state)
{
    (void)state;
    mk_str text = explain("GET", "http://one.example:8080/index.html");
    assert_str(line(text, "listener"), "127.0.0.1:8080");
    assert_contains(line(text, "host"), "one.example (");
    assert_contains(line(text, "host"), "monkey.conf:4), by its name");
    assert_str(line(text, "route"), "/*  static");
    assert_contains(line(text, "file"), "/site/index.html, 5 bytes");
    assert_str(line(text, "type"), "text/html; charset=utf-8");
    assert_str(line(text, "answer"), "200 OK");
    assert_contains(text, "ETag: ");
}

static void explain_gives_reason_for_vhost(void **state)
{
    (void)state;
    assert_contains(line(explain("GET", "/"), "host"), "the request names no host");
    assert_contains(line(explain("GET", "http://x.two.example/"), "host"), "by a name with a wildcard");
    assert_contains(line(explain("GET", "http://other/"), "host"), "no host has this name");
    assert_contains(line(explain("GET", "http://other:99/"), "listener"), "no listener on port 99");
}

static void explain_names_route(void **state)
{
    (void)state;
    mk_str text = explain("GET", "/old/x");
    assert_str(line(text, "route"), "/old/*  redirect 302 https://example.org");
    assert_null(line(text, "file").p);
    assert_str(line(text, "answer"), "302 Found");
    assert_contains(text, "Location: https://example.org/old/x");
    text = explain("GET", "/x.php");
    assert_str(line(text, "route"), "*.php  status 403");
    assert_str(line(text, "answer"), "403 Forbidden");
}

static void explain_describes_file_errors(void **state)
{
    (void)state;
    assert_contains(line(explain("GET", "/nothing"), "file"), "nothing there beneath");
    assert_contains(line(explain("GET", "/.hidden"), "file"), "begins with a dot");
    assert_contains(line(explain("GET", "/dir"), "file"), "redirected to its name with a slash");
    assert_contains(line(explain("GET", "/dir/"), "file"), "without any of the index files");
    assert_contains(line(explain("GET", "/link"), "file"),
                    "a symbolic link that FollowSymlinks does not allow");
    assert_contains(line(explain("GET", "http://x.two.example/route"), "file"), "(the Fallback)");
}

static void explain_describes_response_to_other_methods(void **state)
{
    (void)state;
    mk_str text = explain("POST", "/index.html");
    assert_str(line(text, "answer"), "405 Method Not Allowed");
    assert_contains(text, "Allow: GET, HEAD, OPTIONS");
    assert_str(line(explain("OPTIONS", "*"), "answer"), "200 OK");
    assert_str(line(explain("BREW", "/"), "answer"), "501 Not Implemented");
}

static void explain_describes_rejected_path(void **state)
{
    (void)state;
    static const char *const bad[] = {"/%zz", "/../x", "/%00", "http://one.example/.."};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        mk_str text = explain("GET", bad[i]);
        assert_contains(line(text, "path"), "refused: ");
        assert_str(line(text, "answer"), "400 Bad Request");
        assert_false(line(text, "route").p);
    }
}

static void explain_rejects_malformed_request(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"GET", ""}, {"GET", "x"}, {"GET", "ftp://a/"},
                                         {"", "/"},   {"G T", "/"}, {"GET\r\n", "/"}};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        struct mk_buf out = mk_buf_fixed(output, sizeof output);
        const struct mk_explain_request request = {.method = bad[i][0], .url = bad[i][1]};
        if (mk_explain(c.g, &request, &out) != -EINVAL)
            fail_msg("%s %s is explained", bad[i][0], bad[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(explain_shows_every_step, setup),
        fixture_test(explain_gives_reason_for_vhost, setup),
        fixture_test(explain_names_route, setup),
        fixture_test(explain_describes_file_errors, setup),
        fixture_test(explain_describes_response_to_other_methods, setup),
        fixture_test(explain_describes_rejected_path, setup),
        fixture_test(explain_rejects_malformed_request, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
