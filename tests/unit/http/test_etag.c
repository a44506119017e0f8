/* SPDX-License-Identifier: Apache-2.0 */
#include "http/etag.h"

#include "unit/test.h"

static void etag_is_formatted(void **state)
{
    (void)state;
    char out[MK_ETAG_MAX];
    assert_str(mk_str_of(out, mk_etag_write(out, 0, 0)), "\"0-0\"");
    assert_str(mk_str_of(out, mk_etag_write(out, 0x1234abcd, 255)), "\"1234abcd-ff\"");
    mk_str longest = mk_str_of(out, mk_etag_write(out, -1, UINT64_MAX));
    assert_str(longest, "\"ffffffffffffffff-ffffffffffffffff\"");
    assert_int_equal(longest.len, MK_ETAG_MAX);
    assert_true(mk_etag_is_valid(longest));
}

static void etag_syntax_is_validated(void **state)
{
    (void)state;
    static const char *const good[] = {"\"\"", "\"a\"", "W/\"a\"", "\"a,b\\\"", "\"\xe4\"", "\"W/\""};
    static const char *const bad[] = {"",        "a",        "\"",       "\"a",        "a\"",
                                      "w/\"a\"", "W/",       "W/a",      "\"a\"b",     "\"a b\"",
                                      " \"a\"",  "\"a\" ",   "W /\"a\"", "\"a\"\"",    "W\"a\"",
                                      "*",       "\"\x7f\"", "\"\t\"",   "\"a\",\"b\""};
    for (size_t i = 0; i < MK_LEN(good); i++)
        assert_true(mk_etag_is_valid(mk_str_from_c(good[i])));
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_etag_is_valid(mk_str_from_c(bad[i])))
            fail_msg("%s", bad[i]);
}

/* The table of RFC 9110, section 8.8.3.2. */
static void etag_strong_and_weak_comparison(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool strong, weak;
    } cases[] = {
        {"W/\"1\"", "W/\"1\"", false, true}, {"W/\"1\"", "W/\"2\"", false, false},
        {"W/\"1\"", "\"1\"", false, true},   {"\"1\"", "\"1\"", true, true},
        {"\"1\"", "\"12\"", false, false},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str a = mk_str_from_c(cases[i].a), b = mk_str_from_c(cases[i].b);
        assert_true(mk_etag_matches(a, b, false) == cases[i].strong);
        assert_true(mk_etag_matches(b, a, false) == cases[i].strong);
        assert_true(mk_etag_matches(a, b, true) == cases[i].weak);
        assert_true(mk_etag_matches(b, a, true) == cases[i].weak);
    }
    mk_str absent = {NULL, 0};
    assert_false(mk_etag_matches(absent, absent, true));
}

static void etag_is_found_in_list(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool strong, weak;
    } cases[] = {
        {"\"x\"", true, true},
        {"\"a\", \"x\"", true, true},
        {"\"a\"\t,,\"x\" ,\"b\"", true, true},
        {",\"x\"", true, true},
        {"W/\"x\"", false, true},
        {"W/\"x\", \"x\"", true, true},
        {"\"a,\", \"x\"", true, true},
        {"*", true, true},
        {" * ", true, true},
        {"", false, false},
        {",", false, false},
        {"x", false, false},
        {"\"a\"", false, false},
        {"\"a,\"x\"\"", false, false},
        {"\"a\" \"x\"", false, false},
        {"a, \"x\"", false, false},
        {"\"x\"y", false, false},
        {"\"x", false, false},
        {"*, \"x\"", false, false},
        {"**", false, false},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str list = mk_str_from_c(cases[i].list);
        if (mk_etag_in_list(list, MK_STR("\"x\""), false) != cases[i].strong ||
            mk_etag_in_list(list, MK_STR("\"x\""), true) != cases[i].weak)
            fail_msg("%s", cases[i].list);
    }
}

static void etag_absent_is_in_no_list(void **state)
{
    (void)state;
    mk_str absent = {NULL, 0};
    assert_false(mk_etag_in_list(MK_STR("*"), absent, true));
    assert_false(mk_etag_in_list(MK_STR("\"\""), absent, true));
    assert_false(mk_etag_in_list(absent, absent, true));
    assert_false(mk_etag_in_list(absent, MK_STR("\"x\""), true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etag_is_formatted),
        cmocka_unit_test(etag_syntax_is_validated),
        cmocka_unit_test(etag_strong_and_weak_comparison),
        cmocka_unit_test(etag_is_found_in_list),
        cmocka_unit_test(etag_absent_is_in_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
