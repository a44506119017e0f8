/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "unit/test.h"

static void patterns_decide(void **state)
{
    (void)state;
    struct mk_route r = {.pattern = {.text = MK_STR("*.php"), .kind = MK_PATTERN_SUFFIX}};
    assert_true(mk_route_matches(&r, MK_STR("/a.php")));
    assert_false(mk_route_matches(&r, MK_STR("/a.html")));
}

static void only_a_lone_star_takes_all(void **state)
{
    (void)state;
    regex_t regex;
    struct mk_route all = {.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}},
                    some = {.pattern = {.text = MK_STR("/a"), .kind = MK_PATTERN_EXACT}},
                    odd = {.pattern = {.text = MK_STR(".*")}, .regex = &regex};
    assert_true(mk_route_is_catch_all(&all));
    assert_false(mk_route_is_catch_all(&some));
    assert_false(mk_route_is_catch_all(&odd));
}

static void regular_expressions_match_anywhere(void **state)
{
    (void)state;
    regex_t regex;
    assert_int_equal(regcomp(&regex, "cgi-bin/.*\\.pl$", REG_EXTENDED | REG_ICASE | REG_NOSUB), 0);
    struct mk_route r = {.pattern = {.text = MK_STR("*")}, .regex = &regex};
    assert_true(mk_route_matches(&r, MK_STR("/cgi-bin/a.pl")));
    assert_true(mk_route_matches(&r, MK_STR("/x/CGI-BIN/b/a.PL")));
    assert_false(mk_route_matches(&r, MK_STR("/cgi-bin/a.plx")));
    assert_false(mk_route_matches(&r, MK_STR("/")));
    regfree(&regex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_decide),
        cmocka_unit_test(only_a_lone_star_takes_all),
        cmocka_unit_test(regular_expressions_match_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
