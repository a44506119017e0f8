/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path.h"

#include <monkey/text.h>

#include "unit/test.h"

/* The buffer has exactly the documented size, so that the sanitizer detects any overrun. */
static void check(const char *raw, int status, const char *expected, unsigned expected_flags)
{
    char *out = test_malloc(strlen(raw) + 1);
    mk_str path;
    unsigned flags = 77;
    if (mk_path_decode(mk_str_from_c(raw), out, &path, &flags) != status)
        fail_msg("%s", raw);
    if (mk_path_is_plain(mk_str_from_c(raw)))
        assert_true(status == 0 && flags == 0 && mk_str_eq(path, mk_str_from_c(raw)));
    if (status == 0) {
        assert_str(path, expected);
        assert_ptr_equal(path.p, out);
        assert_int_equal(path.p[path.len], 0);
        assert_int_equal(flags, expected_flags);
    }
    test_free(out);
}

static void path_is_normalized(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/", "/"},
        {"/a", "/a"},
        {"/a/", "/a/"},
        {"/a/b.c", "/a/b.c"},
        {"//", "/"},
        {"//a///b//", "/a/b/"},
        {"/.", "/"},
        {"/./", "/"},
        {"/a/.", "/a/"},
        {"/a/..", "/"},
        {"/a/../", "/"},
        {"/a/b/../../c", "/c"},
        {"/a/b/c/../..", "/a/"},
        {"/a//..", "/"},
        {"/a/./../b/./", "/b/"},
        {"/...", "/..."},
        {"/.a/..b/c./d..", "/.a/..b/c./d.."},
        {"/%2e", "/"},
        {"/a/%2E%2e/b", "/b"},
        {"/a/.%2e", "/"},
        {"/%2e%2e%2e", "/..."},
        {"/%61%2D%7e%20", "/a-~ "},
        {"/%252e%252E", "/%2e%2E"},
        {"/%25", "/%"},
        {"/%ff%80", "/\xff\x80"},
        {"/a\\..\\b", "/a\\..\\b"},
        {"/a%5c..", "/a\\.."},
        {"/%01%0a", "/\x01\n"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i][0], 0, cases[i][1], strstr(cases[i][1], "/.") ? MK_PATH_DOT_PART : 0);
}

/* The fast path for plain paths checks eight bytes at once: it must find a special character at every
 * offset. */
static void path_special_characters_are_found_at_any_offset(void **state)
{
    (void)state;
    for (size_t at = 2; at < 30; at++) {
        char raw[40];
        memset(raw, 'z', sizeof raw);
        raw[0] = '/';
        raw[32] = '\0';
        check(raw, 0, raw, 0);
        memcpy(raw + at, "/.", 2);
        check(raw, 0, raw, MK_PATH_DOT_PART);
        raw[at] = 'z';
        raw[at + 1] = '%';
        check(raw, 400, NULL, 0);
    }
}

static void path_encoded_slash_is_kept_and_flagged(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/a%2Fb", "/a%2Fb"},     {"/a%2fb", "/a%2Fb"},     {"/%2f", "/%2F"},
        {"/%2f%2F/", "/%2F%2F/"}, {"/a%2Fb/../c", "/c"},    {"/a/.%2f.../b", NULL},
        {"/a%2f..b", "/a%2F..b"}, {"/a..%2fb", "/a..%2Fb"}, {"/a%2f...", "/a%2F..."},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i][0], cases[i][1] ? 0 : 400, cases[i][1], MK_PATH_ENCODED_SLASH);
    check("/a%252Fb", 0, "/a%2Fb", 0);
}

static void path_rejects_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",        "a",          "a/b",         "%2fa",        "/..",           "/../",
        "/../a",   "//..",       "/./..",       "/a/../..",    "/a/../../b",    "/%2e%2e",
        "/.%2e/a", "/a/%2e./..", "/%",          "/%4",         "/%zz",          "/%4z",
        "/%z4",    "/a%",        "/%u0041",     "/% 41",       "/%00",          "/a%00b",
        "/..%2f",  "/..%2fa",    "/%2e%2e%2fa", "/a%2f..",     "/a%2f%2e%2e",   "/a%2f.",
        "/.%2fa",  "/a%2f../b",  "/a%2f..%2fb", "/%2f..%2f..", "/..%2f..%2f..",
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i], 400, NULL, 0);
}

static void path_rejects_nul(void **state)
{
    (void)state;
    char out[8];
    mk_str path;
    unsigned flags;
    assert_int_equal(mk_path_decode(MK_STR("/a\0b"), out, &path, &flags), 400);
    assert_int_equal(mk_path_decode(MK_STR_NULL, out, &path, &flags), 400);
}

static void path_of_acme_challenge_has_token(void **state)
{
    static const char *const others[] = {"/",
                                         "/.well-known/acme-challenge/",
                                         "/.well-known/acme-challenge",
                                         "/.well-known/acme-challenge/a/b",
                                         "/.well-known/acme-challenge/a.b",
                                         "/.well-known/acme-challenge/a%41",
                                         "/x/.well-known/acme-challenge/a"};
    (void)state;
    assert_str(mk_acme_token(MK_STR("/.well-known/acme-challenge/aZ09-_")), "aZ09-_");
    for (size_t i = 0; i < MK_LEN(others); i++)
        assert_null(mk_acme_token(mk_str_from_c(others[i])).p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_is_normalized),
        cmocka_unit_test(path_special_characters_are_found_at_any_offset),
        cmocka_unit_test(path_encoded_slash_is_kept_and_flagged),
        cmocka_unit_test(path_rejects_malformed),
        cmocka_unit_test(path_rejects_nul),
        cmocka_unit_test(path_of_acme_challenge_has_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
