/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/suggest.h"

#include "unit/test.h"

static unsigned distance(const char *a, const char *b)
{
    unsigned there = mk_conf_suggest_distance(mk_str_from_c(a), mk_str_from_c(b));
    assert_int_equal(there, mk_conf_suggest_distance(mk_str_from_c(b), mk_str_from_c(a)));
    return there;
}

static void conf_suggest_distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("abc", ""), 3);
    assert_int_equal(distance("abc", "ABC"), 0);
    assert_int_equal(distance("abc", "abd"), 1);
    assert_int_equal(distance("abc", "ab"), 1);
    assert_int_equal(distance("abc", "xabc"), 1);
    assert_int_equal(distance("abc", "acb"), 1);
    assert_int_equal(distance("Timeout", "Tiemout"), 1);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("abcd", "badc"), 2);
    assert_int_equal(distance("ab", "xyz"), 3);
}

static void conf_suggest_long_words_are_not_similar(void **state)
{
    (void)state;
    char longest[MK_CONF_SUGGEST_LEN + 2] = {0};
    memset(longest, 'a', MK_CONF_SUGGEST_LEN);
    assert_int_equal(distance(longest, "a"), MK_CONF_SUGGEST_LEN - 1);
    assert_int_equal(distance(longest, longest), 0);
    longest[MK_CONF_SUGGEST_LEN] = 'a';
    assert_int_equal(distance(longest, longest), MK_CONF_SUGGEST_FAR);
}

static const char *nearest(const char *word)
{
    static const char *const keys[] = {
        "Listen",         "Workers", "Timeout", "KeepAlive", "KeepAliveTimeout", "SymLink",
        "MaxRequestSize", "User",    "on",      "off",       "NoTimeout"};
    struct mk_conf_suggest suggestion = mk_conf_suggest_for(mk_str_from_c(word));
    for (size_t i = 0; i < MK_LEN(keys); i++)
        mk_conf_suggest_try(&suggestion, mk_str_from_c(keys[i]));
    return suggestion.best.p ? suggestion.best.p : "-";
}

static void conf_suggest_finds_similar_words_only(void **state)
{
    (void)state;
    assert_string_equal(nearest("Listn"), "Listen");
    assert_string_equal(nearest("keepalivetimeot"), "KeepAliveTimeout");
    assert_string_equal(nearest("KeepAliveTime"), "KeepAliveTimeout");
    assert_string_equal(nearest("KeepAliv"), "KeepAlive");
    assert_string_equal(nearest("Usre"), "User");
    assert_string_equal(nearest("MaxSize"), "-");
    assert_string_equal(nearest("Directory"), "-");
    assert_string_equal(nearest("of"), "off");
    assert_string_equal(nearest("x"), "-");
    assert_string_equal(nearest(""), "-");
    assert_string_equal(nearest("xTimeout"), "Timeout");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_suggest_distance_counts_edits),
        cmocka_unit_test(conf_suggest_long_words_are_not_similar),
        cmocka_unit_test(conf_suggest_finds_similar_words_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
