/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "unit/test.h"

static void route_matches_by_pattern(void **state)
{
    (void)state;
    struct mk_route r = {.pattern = {.text = MK_STR("*.php"), .kind = MK_PATTERN_SUFFIX}};
    assert_true(mk_route_matches(&r, MK_STR("/a.php")));
    assert_false(mk_route_matches(&r, MK_STR("/a.html")));
}

static void route_only_catch_all_matches_all(void **state)
{
    (void)state;
    struct mk_regex regex = {0};
    struct mk_route all = {.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}},
                    some = {.pattern = {.text = MK_STR("/a"), .kind = MK_PATTERN_EXACT}},
                    odd = {.pattern = {.text = MK_STR(".*")}, .regex = &regex};
    assert_true(mk_route_is_catch_all(&all));
    assert_false(mk_route_is_catch_all(&some));
    assert_false(mk_route_is_catch_all(&odd));
}

static enum mk_regex_result match_text(const struct mk_regex *r, mk_str text, struct mk_regex_captures *out)
{
    (void)r, (void)out;
    return mk_str_eq(text, MK_STR("/yes"))    ? MK_REGEX_MATCH
           : mk_str_eq(text, MK_STR("/long")) ? MK_REGEX_LIMIT
                                              : MK_REGEX_NO_MATCH;
}

static void route_regex_replaces_pattern(void **state)
{
    (void)state;
    static const struct mk_regex_ops ops = {.match = match_text};
    struct mk_regex regex = {&ops};
    struct mk_route r = {.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .regex = &regex};
    assert_int_equal(mk_route_matches(&r, MK_STR("/yes")), MK_REGEX_MATCH);
    assert_int_equal(mk_route_matches(&r, MK_STR("/no")), MK_REGEX_NO_MATCH);
    assert_int_equal(mk_route_matches(&r, MK_STR("/long")), MK_REGEX_LIMIT);
    assert_true(mk_route_matches(&r, MK_STR("/long"))); /* later routes are not tried */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(route_matches_by_pattern),
        cmocka_unit_test(route_only_catch_all_matches_all),
        cmocka_unit_test(route_regex_replaces_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
