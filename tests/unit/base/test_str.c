/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "unit/test.h"

static const mk_str ABSENT = {NULL, 0};

/* Copies the text into memory of exactly its size, so that the sanitizer reports reads past the end. */
static mk_str tight(const char *text)
{
    size_t len = strlen(text);
    char *p = malloc(len ? len : 1);
    assert_non_null(p);
    if (len)
        memcpy(p, text, len);
    return mk_str_of(p, len);
}

static void drop(mk_str s)
{
    free((void *)(uintptr_t)s.p);
}

static void str_null_and_empty_are_distinct(void **state)
{
    (void)state;
    assert_null(mk_str_from_c(NULL).p);
    assert_non_null(mk_str_from_c("").p);
    assert_int_equal(mk_str_from_c("").len, 0);
    assert_true(mk_str_eq(ABSENT, MK_STR("")));
    assert_str(MK_STR("literal"), "literal");
    static const mk_str fixed = MK_STR_INIT("fixed");
    assert_str(fixed, "fixed");
}

static void str_eq_compares_every_byte(void **state)
{
    (void)state;
    assert_true(mk_str_eq(MK_STR("a\0b"), mk_str_of("a\0b", 3)));
    assert_false(mk_str_eq(MK_STR("a\0b"), MK_STR("a\0c")));
    assert_false(mk_str_eq(MK_STR("a"), MK_STR("ab")));
    assert_false(mk_str_eq(MK_STR("a"), MK_STR("A")));
    assert_true(mk_str_eq_nocase(MK_STR("Content-LENGTH"), MK_STR("content-length")));
    assert_true(mk_str_eq_nocase(ABSENT, MK_STR("")));
    assert_false(mk_str_eq_nocase(MK_STR("abc"), MK_STR("ab")));
}

static void str_case_is_ignored_for_ascii_letters_only(void **state)
{
    (void)state;
    /* The two characters of each pair differ only by 0x20, but are not letters. */
    assert_false(mk_str_eq_nocase(MK_STR("@"), MK_STR("`")));
    assert_false(mk_str_eq_nocase(MK_STR("["), MK_STR("{")));
    assert_false(mk_str_eq_nocase(MK_STR("\xc4"), MK_STR("\xe4")));
    for (int c = 0; c < 256; c++) {
        char lower = mk_char_lower((char)c);
        bool upper_letter = c >= 'A' && c <= 'Z';
        assert_int_equal((unsigned char)lower, upper_letter ? c + 32 : c);
        assert_int_equal(mk_char_is_digit((char)c), c >= '0' && c <= '9');
        assert_int_equal(mk_char_is_alpha((char)c), upper_letter || (c >= 'a' && c <= 'z'));
    }
}

static void char_hex_returns_digit_values(void **state)
{
    (void)state;
    const char digits[] = "0123456789abcdef";
    for (int c = 0; c < 256; c++) {
        const char *at = c ? strchr(digits, mk_char_lower((char)c)) : NULL;
        assert_int_equal(mk_char_hex((char)c), at ? at - digits : -1);
    }
}

static void str_starts_and_ends_compare_prefix_and_suffix(void **state)
{
    (void)state;
    mk_str s = tight("index.HTML");
    assert_true(mk_str_starts(s, MK_STR("index")));
    assert_true(mk_str_starts(s, MK_STR("")));
    assert_true(mk_str_starts(s, s));
    assert_false(mk_str_starts(s, MK_STR("index.HTML5")));
    assert_false(mk_str_starts(s, MK_STR("Index")));
    assert_true(mk_str_ends(s, MK_STR(".HTML")));
    assert_true(mk_str_ends(s, MK_STR("")));
    assert_false(mk_str_ends(s, MK_STR(".html")));
    assert_true(mk_str_starts(ABSENT, MK_STR("")));
    assert_false(mk_str_ends(ABSENT, MK_STR("x")));
    drop(s);
}

static void str_cmp_orders_by_bytes_then_by_length(void **state)
{
    (void)state;
    const char *const sorted[] = {"", "A", "AB", "B", "a", "a ", "ab", "abc", "b", "\x80", "\xff"};
    for (size_t i = 0; i < MK_LEN(sorted); i++) {
        for (size_t k = 0; k < MK_LEN(sorted); k++) {
            int order = mk_str_cmp(mk_str_from_c(sorted[i]), mk_str_from_c(sorted[k]));
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    assert_int_equal(mk_str_cmp(ABSENT, MK_STR("")), 0);
}

static void str_find_and_find_last_find_bytes(void **state)
{
    (void)state;
    mk_str s = tight("a/b/c");
    assert_int_equal(mk_str_find(s, '/'), 1);
    assert_int_equal(mk_str_find_last(s, '/'), 3);
    assert_int_equal(mk_str_find(s, 'a'), 0);
    assert_int_equal(mk_str_find_last(s, 'a'), 0);
    assert_int_equal(mk_str_find(s, 'c'), 4);
    assert_true(mk_str_find(s, '\0') == MK_STR_NONE);
    assert_true(mk_str_find_last(s, 'x') == MK_STR_NONE);
    assert_true(mk_str_find(ABSENT, 'x') == MK_STR_NONE);
    assert_true(mk_str_find_last(ABSENT, 'x') == MK_STR_NONE);
    assert_int_equal(mk_str_find(MK_STR("a\0b"), '\0'), 1);
    drop(s);
}

static void str_positions_beyond_the_end_are_clamped(void **state)
{
    (void)state;
    mk_str s = MK_STR("abc");
    assert_str(mk_str_skip(s, 0), "abc");
    assert_str(mk_str_skip(s, 2), "c");
    assert_str(mk_str_skip(s, 3), "");
    assert_str(mk_str_skip(s, SIZE_MAX), "");
    assert_str(mk_str_first(s, 0), "");
    assert_str(mk_str_first(s, 2), "ab");
    assert_str(mk_str_first(s, SIZE_MAX), "abc");
    assert_null(mk_str_skip(ABSENT, 5).p);
    assert_null(mk_str_first(ABSENT, 5).p);
}

static void str_trim_removes_blanks_at_both_ends_only(void **state)
{
    (void)state;
    assert_str(mk_str_trim(MK_STR(" \t a b\t ")), "a b");
    assert_str(mk_str_trim(MK_STR("a")), "a");
    assert_str(mk_str_trim(MK_STR(" \t ")), "");
    assert_str(mk_str_trim(MK_STR("\ra\n")), "\ra\n");
    assert_str(mk_str_trim(MK_STR("\xa0 a")), "\xa0 a");
    assert_null(mk_str_trim(ABSENT).p);
}

static void str_cut_returns_every_part_once(void **state)
{
    (void)state;
    mk_str s = tight("a,,b,");
    mk_str rest = s;
    assert_str(mk_str_cut(&rest, ','), "a");
    assert_str(mk_str_cut(&rest, ','), "");
    assert_str(mk_str_cut(&rest, ','), "b");
    assert_non_null(rest.p);
    mk_str last = mk_str_cut(&rest, ',');
    assert_non_null(last.p);
    assert_int_equal(last.len, 0);
    assert_null(rest.p);
    drop(s);
}

static void str_cut_of_empty_text_returns_one_part(void **state)
{
    (void)state;
    mk_str s = MK_STR("");
    assert_str(mk_str_cut(&s, ','), "");
    assert_null(s.p);
    assert_null(mk_str_cut(&s, ',').p);
    mk_str whole = MK_STR("no comma");
    assert_str(mk_str_cut(&whole, ','), "no comma");
    assert_null(whole.p);
}

static void str_word_splits_at_blanks(void **state)
{
    (void)state;
    mk_str text = tight("  Listen\t 8080  tls ");
    mk_str s = text;
    assert_str(mk_str_word(&s), "Listen");
    assert_str(mk_str_word(&s), "8080");
    assert_str(mk_str_word(&s), "tls");
    assert_str(mk_str_word(&s), "");
    assert_str(mk_str_word(&s), "");
    s = ABSENT;
    assert_int_equal(mk_str_word(&s).len, 0);
    drop(text);
}

static void str_match_handles_wildcards(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pattern;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "*", true},
        {"", "?", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"abc", "ab", false},
        {"ab", "abc", false},
        {"abc", "ABC", false},
        {"abc", "a?c", true},
        {"abc", "???", true},
        {"abc", "????", false},
        {"abc", "*", true},
        {"abc", "***", true},
        {"abc", "a*", true},
        {"abc", "*c", true},
        {"abc", "*b", false},
        {"abc", "a*c*", true},
        {"abc", "*?", true},
        {"abc", "*????", false},
        {"/a/b/c.php", "*.php", true},
        {"/a/b/c.php5", "*.php", false},
        {"/a/b", "/a/*", true},
        {"/a", "/a/*", false},
        {"aXbXc", "a*X*c", true},
        {"mississippi", "m*issip*i", true},
        {"mississippi", "m*issip*s", false},
        {"abababac", "*abac", true},
        {"a*b", "a*b", true},
        {"a?", "a?", true},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str text = tight(cases[i].text), pattern = tight(cases[i].pattern);
        if (mk_str_match(text, pattern) != cases[i].match)
            fail_msg("\"%s\" and \"%s\": expected %d", cases[i].text, cases[i].pattern, cases[i].match);
        drop(text);
        drop(pattern);
    }
    assert_true(mk_str_match(ABSENT, ABSENT));
}

/* Matches by the plain recursive definition: exponential, but obviously correct. */
static bool match_slowly(const char *text, const char *pattern)
{
    if (!*pattern)
        return !*text;
    if (*pattern == '*')
        return match_slowly(text, pattern + 1) || (*text && match_slowly(text + 1, pattern));
    return *text && (*pattern == '?' || *pattern == *text) && match_slowly(text + 1, pattern + 1);
}

/* Returns the `i`-th word over the alphabet, shortest first. */
static const char *nth_word(char *word, size_t i, const char *alphabet)
{
    size_t letters = strlen(alphabet), len = 0;
    for (; i; i = (i - 1) / letters)
        word[len++] = alphabet[(i - 1) % letters];
    word[len] = '\0';
    return word;
}

static void str_match_agrees_with_its_definition(void **state)
{
    (void)state;
    char text[16], pattern[16];
    for (size_t t = 0; t < 63; t++) {
        for (size_t p = 0; p < 1365; p++) {
            nth_word(text, t, "ab");
            nth_word(pattern, p, "ab?*");
            bool fast = mk_str_match(mk_str_from_c(text), mk_str_from_c(pattern));
            if (fast != match_slowly(text, pattern))
                fail_msg("\"%s\" and \"%s\": returned %d", text, pattern, fast);
        }
    }
}

static void str_match_hostile_pattern_is_fast(void **state)
{
    (void)state;
    enum { LEN = 5000 };
    char *text = malloc(LEN), *pattern = malloc(LEN);
    assert_true(text && pattern);
    memset(text, 'a', LEN);
    for (size_t i = 0; i < LEN; i++)
        pattern[i] = i % 2 ? '*' : 'a';
    pattern[LEN - 1] = 'b';
    /* Backtracking into every star would practically never finish. */
    assert_false(mk_str_match(mk_str_of(text, LEN), mk_str_of(pattern, LEN)));
    free(text);
    free(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(str_null_and_empty_are_distinct),
        cmocka_unit_test(str_eq_compares_every_byte),
        cmocka_unit_test(str_case_is_ignored_for_ascii_letters_only),
        cmocka_unit_test(char_hex_returns_digit_values),
        cmocka_unit_test(str_starts_and_ends_compare_prefix_and_suffix),
        cmocka_unit_test(str_cmp_orders_by_bytes_then_by_length),
        cmocka_unit_test(str_find_and_find_last_find_bytes),
        cmocka_unit_test(str_positions_beyond_the_end_are_clamped),
        cmocka_unit_test(str_trim_removes_blanks_at_both_ends_only),
        cmocka_unit_test(str_cut_returns_every_part_once),
        cmocka_unit_test(str_cut_of_empty_text_returns_one_part),
        cmocka_unit_test(str_word_splits_at_blanks),
        cmocka_unit_test(str_match_handles_wildcards),
        cmocka_unit_test(str_match_agrees_with_its_definition),
        cmocka_unit_test(str_match_hostile_pattern_is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
