/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "unit/test.h"

static struct mk_route route(const char *pattern)
{
    mk_str p = mk_str_from_c(pattern);
    return (struct mk_route){.pattern = p, .kind = mk_route_kind_of(p)};
}

static void patterns_have_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        enum mk_route_kind kind;
    } cases[] = {
        {"*", MK_ROUTE_ALL},         {"/*", MK_ROUTE_ALL},        {"/", MK_ROUTE_EXACT},
        {"/a", MK_ROUTE_EXACT},      {"/a/", MK_ROUTE_EXACT},     {"/a.b/c", MK_ROUTE_EXACT},
        {"/a/*", MK_ROUTE_PREFIX},   {"/a/b/*", MK_ROUTE_PREFIX}, {"*.php", MK_ROUTE_SUFFIX},
        {"*/x", MK_ROUTE_SUFFIX},    {"/a*", MK_ROUTE_GLOB},      {"/a?", MK_ROUTE_GLOB},
        {"/a/*.php", MK_ROUTE_GLOB}, {"/*/b/*", MK_ROUTE_GLOB},   {"/?/*", MK_ROUTE_GLOB},
        {"*.php*", MK_ROUTE_GLOB},   {"*?", MK_ROUTE_GLOB},       {"**", MK_ROUTE_GLOB},
        {"/a/**", MK_ROUTE_GLOB},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (mk_route_kind_of(mk_str_from_c(cases[i].pattern)) != cases[i].kind)
            fail_msg("%s is of kind %d", cases[i].pattern, mk_route_kind_of(mk_str_from_c(cases[i].pattern)));
}

static void patterns_begin_with_a_slash_or_a_star(void **state)
{
    (void)state;
    assert_true(mk_route_is_pattern(MK_STR("/a")));
    assert_true(mk_route_is_pattern(MK_STR("*.b")));
    assert_false(mk_route_is_pattern(MK_STR("a")));
    assert_false(mk_route_is_pattern(MK_STR("?a")));
    assert_false(mk_route_is_pattern(MK_STR("")));
}

static void patterns_match(void **state)
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
        struct mk_route r = route(cases[i].pattern);
        for (size_t j = 0; j < 4 && cases[i].yes[j]; j++)
            if (!mk_route_matches(&r, mk_str_from_c(cases[i].yes[j])))
                fail_msg("%s does not match %s", cases[i].pattern, cases[i].yes[j]);
        for (size_t j = 0; j < 7 && cases[i].no[j]; j++)
            if (mk_route_matches(&r, mk_str_from_c(cases[i].no[j])))
                fail_msg("%s matches %s", cases[i].pattern, cases[i].no[j]);
    }
}

static void regular_expressions_match_anywhere(void **state)
{
    (void)state;
    regex_t regex;
    assert_int_equal(regcomp(&regex, "cgi-bin/.*\\.pl$", REG_EXTENDED | REG_ICASE | REG_NOSUB), 0);
    struct mk_route r = {.kind = MK_ROUTE_REGEX, .regex = &regex};
    assert_true(mk_route_matches(&r, MK_STR("/cgi-bin/a.pl")));
    assert_true(mk_route_matches(&r, MK_STR("/x/CGI-BIN/b/a.PL")));
    assert_false(mk_route_matches(&r, MK_STR("/cgi-bin/a.plx")));
    assert_false(mk_route_matches(&r, MK_STR("/")));
    regfree(&regex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_have_kinds),
        cmocka_unit_test(patterns_begin_with_a_slash_or_a_star),
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(regular_expressions_match_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
