/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path_pattern.h"

#include "unit/test.h"

static struct mk_pattern pattern_of(const char *text)
{
    struct mk_pattern p;
    assert_true(mk_pattern_set(&p, mk_str_from_c(text)));
    return p;
}

static void pattern_kind_is_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        enum mk_pattern_kind kind;
    } cases[] = {
        {"*", MK_PATTERN_ALL},         {"/*", MK_PATTERN_ALL},        {"/", MK_PATTERN_EXACT},
        {"/a", MK_PATTERN_EXACT},      {"/a/", MK_PATTERN_EXACT},     {"/a.b/c", MK_PATTERN_EXACT},
        {"/a/*", MK_PATTERN_PREFIX},   {"/a/b/*", MK_PATTERN_PREFIX}, {"*.php", MK_PATTERN_SUFFIX},
        {"*/x", MK_PATTERN_SUFFIX},    {"/a*", MK_PATTERN_GLOB},      {"/a?", MK_PATTERN_GLOB},
        {"/a/*.php", MK_PATTERN_GLOB}, {"/*/b/*", MK_PATTERN_GLOB},   {"/?/*", MK_PATTERN_GLOB},
        {"*.php*", MK_PATTERN_GLOB},   {"*?", MK_PATTERN_GLOB},       {"**", MK_PATTERN_GLOB},
        {"/a/**", MK_PATTERN_GLOB},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (pattern_of(cases[i].pattern).kind != cases[i].kind)
            fail_msg("%s is of kind %u", cases[i].pattern, pattern_of(cases[i].pattern).kind);
}

static void pattern_must_begin_with_slash_or_star(void **state)
{
    (void)state;
    static const char *const yes[] = {"/a", "*.b"}, *const no[] = {"a", "?a", "", " /a"};
    struct mk_pattern p;
    for (size_t i = 0; i < MK_LEN(yes); i++) {
        assert_true(mk_pattern_set(&p, mk_str_from_c(yes[i])));
        assert_str(p.text, yes[i]);
    }
    for (size_t i = 0; i < MK_LEN(no); i++)
        assert_false(mk_pattern_set(&p, mk_str_from_c(no[i])));
    assert_false(mk_pattern_set(&p, MK_STR_NULL));
}

static void pattern_matches_paths(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *yes[4], *no[7];
    } cases[] = {
        {"*", {"/", "/a", "", "*"}, {NULL}},
        {"/*", {"/", "/a/b", ""}, {NULL}},
        {"/about", {"/about"}, {"/about/", "/about/x", "/", "/abou", "/aboutt", "/ABOUT"}},
        {"/", {"/"}, {"/a", "", "//"}},
        {"/a/*", {"/a/", "/a", "/a/b", "/a/b/c"}, {"/", "/ab", "/b/a/", "/A/", ""}},
        {"/a/b/*", {"/a/b", "/a/b/", "/a/b/c"}, {"/a/", "/a", "/a/bc"}},
        {"*.php", {"/x.php", ".php", "/a/b.php"}, {"/x.php/", "/x.php5", "/x.PHP", "php"}},
        {"/a*", {"/a", "/ab", "/a/b"}, {"/b", "/", "/ba"}},
        {"/a/*.php", {"/a/.php", "/a/b.php", "/a/b/c.php"}, {"/a.php", "/a/b.phpx", "/b/a/c.php"}},
        {"/?/x", {"/a/x", "///x"}, {"/ab/x", "//x", "/a/xx"}},
        {"/*/b/*", {"/a/b/", "/a/c/b/d", "//b/"}, {"/b/", "/a/b", "/a/bc/"}},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_pattern p = pattern_of(cases[i].pattern);
        for (size_t j = 0; j < 4 && cases[i].yes[j]; j++)
            if (!mk_pattern_matches(&p, mk_str_from_c(cases[i].yes[j])))
                fail_msg("%s does not match %s", cases[i].pattern, cases[i].yes[j]);
        for (size_t j = 0; j < 7 && cases[i].no[j]; j++)
            if (mk_pattern_matches(&p, mk_str_from_c(cases[i].no[j])))
                fail_msg("%s matches %s", cases[i].pattern, cases[i].no[j]);
    }
}

static void pattern_extension_follows_the_last_star(void **state)
{
    static const struct {
        const char *pattern, *extension;
    } cases[] = {
        {"*.php", ".php"},     {"/blog/*.php/*", ".php"},
        {"/*.x1", ".x1"},      {"/a.b/*.py", ".py"},
        {"/a.php", NULL},      {"*.", NULL},
        {"*", NULL},           {"/*", NULL},
        {".php", NULL},        {"/a*b.php", NULL},
        {"*.p*", NULL},        {"*.p-p", NULL},
        {"/*.php/info", NULL}, {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str extension = mk_path_pattern_extension(mk_str_from_c(cases[i].pattern));
        if (!mk_str_eq(extension, mk_str_from_c(cases[i].extension)) ||
            (extension.p == NULL) != (cases[i].extension == NULL))
            fail_msg("%s: %.*s", cases[i].pattern, MK_STR_ARG(extension));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_kind_is_recognized),
        cmocka_unit_test(pattern_must_begin_with_slash_or_star),
        cmocka_unit_test(pattern_matches_paths),
        cmocka_unit_test(pattern_extension_follows_the_last_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
