/* SPDX-License-Identifier: Apache-2.0 */
#include "base/glob_set.h"

#include <errno.h>

#include "unit/test.h"

static struct mk_arena arena;

static const struct mk_glob_set *build(const struct mk_glob *globs, size_t n, bool nocase)
{
    const struct mk_glob_set *set = NULL;
    assert_int_equal(mk_glob_set_build(&arena, globs, n, nocase, &set), 0);
    return set;
}

static int setup(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mk_arena_fini(&arena);
    return 0;
}

static bool one_matches(const char *glob, const char *text, bool nocase)
{
    struct mk_glob g = {.text = mk_str_from_c(glob)};
    return mk_glob_set_matches(build(&g, 1, nocase), mk_str_from_c(text));
}

static void glob_set_matches_each_kind_of_glob(void **state)
{
    (void)state;
    static const struct {
        const char *glob, *yes, *no;
    } cases[] = {
        {"abc", "abc", "abcd"},
        {"abc", "abc", "xabc"},
        {"abc*", "abcd", "xabc"},
        {"*abc", "xabc", "abcd"},
        {"*abc*", "xabcx", "xabx"},
        {"a*c", "abbc", "abbd"},
        {"a?c", "abc", "ac"},
        {"*", "x", NULL},
        {"?", "x", "xx"},
        {"*a*b*", "xaxbx", "xba"},
        {"?*", "x", ""},
        {"", "", "x"},
        {"*aab*", "aaaab", "aaaacb"},
        {"**ab**", "ab", "ba"},
        {"a**", "a", "b"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        assert_true(one_matches(cases[i].glob, cases[i].yes, false));
        if (cases[i].no)
            assert_false(one_matches(cases[i].glob, cases[i].no, false));
    }
}

static void glob_set_ignores_case_of_ascii_letters_only_if_asked(void **state)
{
    (void)state;
    assert_true(one_matches("*GPTBot*", "x gptbOT/1", true));
    assert_false(one_matches("*GPTBot*", "x gptbOT/1", false));
    assert_true(one_matches("m?Z*q", "MoZilla-Q", true));
    assert_false(one_matches("\xc4", "\xe4", true));
}

static void glob_set_substrings_take_wildcards_literally(void **state)
{
    (void)state;
    struct mk_glob g = {.text = MK_STR("a*b"), .is_substring = true};
    const struct mk_glob_set *set = build(&g, 1, true);
    assert_true(mk_glob_set_matches(set, MK_STR("xxA*Bxx")));
    assert_false(mk_glob_set_matches(set, MK_STR("aXb")));
}

static void glob_set_empty_matches_nothing(void **state)
{
    (void)state;
    const struct mk_glob_set *set = build(NULL, 0, true);
    assert_false(mk_glob_set_matches(set, MK_STR("")));
    assert_false(mk_glob_set_matches(set, MK_STR("abc")));
}

static void glob_set_handles_all_bytes(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    struct mk_glob g = {.text = mk_str_of(bytes, sizeof bytes), .is_substring = true};
    assert_true(mk_glob_set_matches(build(&g, 1, false), mk_str_of(bytes, sizeof bytes)));
    assert_true(mk_glob_set_matches(build(&g, 1, true), mk_str_of(bytes, sizeof bytes)));
    assert_false(mk_glob_set_matches(build(&g, 1, false), mk_str_of(bytes, sizeof bytes - 1)));
}

static void glob_set_too_many_bytes_are_refused(void **state)
{
    (void)state;
    static char text[MK_GLOB_SET_MAX + 1];
    memset(text, 'a', sizeof text);
    const struct mk_glob_set *set;
    struct mk_glob g = {.text = mk_str_of(text, sizeof text), .is_substring = true};
    assert_int_equal(mk_glob_set_build(&arena, &g, 1, false, &set), -EFBIG);
    g.text.len = MK_GLOB_SET_MAX - 1;
    assert_int_equal(mk_glob_set_build(&arena, &g, 1, false, &set), 0);
    assert_true(mk_glob_set_matches(set, g.text));
}

/* ---- Random sets ---- */

static uint32_t seed = 1;

static uint32_t next_random(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static mk_str random_text(const char *letters, size_t max)
{
    size_t len = next_random((uint32_t)max + 1);
    char *p = mk_arena_alloc(&arena, len + 1);
    assert_non_null(p);
    for (size_t i = 0; i < len; i++)
        p[i] = letters[next_random((uint32_t)strlen(letters))];
    return mk_str_of(p, len);
}

static bool substring_matches(mk_str part, mk_str text, bool nocase)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        mk_str here = mk_str_of(text.p + i, part.len);
        if (nocase ? mk_str_eq_nocase(here, part) : mk_str_eq(here, part))
            return true;
    }
    return false;
}

static bool matches_one_by_one(const struct mk_glob *globs, size_t n, mk_str text, bool nocase)
{
    for (size_t i = 0; i < n; i++)
        if (globs[i].is_substring
                ? substring_matches(globs[i].text, text, nocase)
                : (nocase ? mk_str_match_nocase(text, globs[i].text) : mk_str_match(text, globs[i].text)))
            return true;
    return false;
}

static void glob_set_random_sets_match_like_their_globs(void **state)
{
    (void)state;
    struct mk_glob globs[100];
    unsigned n_matches = 0, n_texts = 0;
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + next_random(round % 10 == 0 ? 100 : 6);
        bool nocase = round % 2;
        for (size_t i = 0; i < n; i++) {
            globs[i].is_substring = next_random(3) == 0;
            globs[i].text = random_text(globs[i].is_substring ? "abAB*" : "aabbAB*?", 9);
        }
        const struct mk_glob_set *set = build(globs, n, nocase);
        for (int i = 0; i < 100; i++, n_texts++) {
            mk_str text = random_text("abABc*", 14);
            bool expected = matches_one_by_one(globs, n, text, nocase);
            assert_int_equal(mk_glob_set_matches(set, text), expected);
            n_matches += expected;
        }
    }
    assert_in_range(n_matches, n_texts / 10, n_texts * 9 / 10); /* both results occur often */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(glob_set_matches_each_kind_of_glob, setup, teardown),
        cmocka_unit_test_setup_teardown(glob_set_ignores_case_of_ascii_letters_only_if_asked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(glob_set_substrings_take_wildcards_literally, setup, teardown),
        cmocka_unit_test_setup_teardown(glob_set_empty_matches_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(glob_set_handles_all_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(glob_set_too_many_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(glob_set_random_sets_match_like_their_globs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
