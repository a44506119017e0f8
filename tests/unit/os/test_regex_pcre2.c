/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "unit/os/regex_case.h"

static enum mk_regex_result found_in(const char *pattern, const char *text)
{
    struct mk_regex *r = make(pattern, false);
    enum mk_regex_result result = mk_regex_match(r, mk_str_from_c(text), NULL);
    mk_regex_free(r);
    return result;
}

static void regex_linked_library_is_not_searched(void **state)
{
    (void)state;
    struct mk_regex_error why = {0};
    struct mk_regex *r = mk_regex_new(MK_STR("^a"), false, &why);
    assert_non_null(r);
    mk_regex_free(r);
}

static void regex_without_anchors_matches_anywhere(void **state)
{
    (void)state;
    assert_int_equal(found_in("\\.php$", "/a/b.php"), MK_REGEX_MATCH);
    assert_int_equal(found_in("\\.php$", "/a/b.php/c"), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("^/a", "/a/b"), MK_REGEX_MATCH);
    assert_int_equal(found_in("^/a", "/b/a"), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("", "/"), MK_REGEX_MATCH);
    assert_int_equal(found_in("^$", ""), MK_REGEX_MATCH);
    assert_int_equal(found_in("a$", "a\n"), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("a.c", "a\nc"), MK_REGEX_MATCH);
    assert_int_equal(found_in("^/.$", "/\xff"), MK_REGEX_MATCH);
    assert_int_equal(found_in("^/.$", "/\xc3\xa4"), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("b", "aBc"), MK_REGEX_NO_MATCH);
}

static void regex_text_can_be_null_or_contain_nul(void **state)
{
    (void)state;
    struct mk_regex *r = make("^a?.?b?$", false);
    assert_int_equal(mk_regex_match(r, (mk_str){NULL, 0}, NULL), MK_REGEX_MATCH);
    assert_int_equal(mk_regex_match(r, mk_str_of("a\0b", 3), NULL), MK_REGEX_MATCH);
    mk_regex_free(r);
    struct mk_regex_error why;
    r = mk_regex_pcre2_compile((mk_str){NULL, 0}, false, &why);
    assert_non_null(r);
    assert_int_equal(mk_regex_match(r, MK_STR("/"), NULL), MK_REGEX_MATCH);
    mk_regex_free(r);
}

static void regex_case_can_be_ignored(void **state)
{
    (void)state;
    struct mk_regex *r = make("^www\\d+\\.example$", true);
    assert_int_equal(mk_regex_match(r, MK_STR("WWW7.Example"), NULL), MK_REGEX_MATCH);
    assert_int_equal(mk_regex_match(r, MK_STR("wwwx.example"), NULL), MK_REGEX_NO_MATCH);
    mk_regex_free(r);
}

static void regex_captures_have_numbers_and_names(void **state)
{
    (void)state;
    struct mk_regex_captures found;
    struct mk_regex *r = make("^/(?<year>\\d{4})/(x)?(?:y)?([a-z]+)", false);
    assert_int_equal(mk_regex_groups(r), 3);
    assert_int_equal(mk_regex_group(r, MK_STR("year")), 1);
    assert_int_equal(mk_regex_group(r, MK_STR("month")), 0);
    assert_int_equal(mk_regex_group(r, MK_STR("a_name_that_is_longer_than_any_can_be")), 0);
    assert_int_equal(mk_regex_match(r, MK_STR("/2026/abc/7"), &found), MK_REGEX_MATCH);
    assert_str(found.at[0], "/2026/abc");
    assert_str(found.at[1], "2026");
    assert_str(found.at[2], "");
    assert_str(found.at[3], "abc");
    assert_str(found.at[MK_REGEX_CAPTURES_MAX - 1], "");
    mk_regex_free(r);
}

static void regex_with_more_groups_than_captures_matches(void **state)
{
    (void)state;
    char pattern[3 * 40 + 1];
    struct mk_regex_captures found;
    for (size_t i = 0; i < 40; i++)
        memcpy(pattern + 3 * i, "(a)", 4);
    struct mk_regex *r = make(pattern, false);
    assert_int_equal(mk_regex_groups(r), 40);
    assert_int_equal(mk_regex_match(r, MK_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), &found),
                     MK_REGEX_MATCH);
    assert_int_equal(found.at[0].len, 40);
    assert_str(found.at[31], "a");
    mk_regex_free(r);
}

/* \K in a lookahead can end a match before its start. */
static void regex_backwards_match_captures_nothing(void **state)
{
    (void)state;
    struct mk_regex_error why;
    struct mk_regex_captures found;
    struct mk_regex *r = mk_regex_pcre2_compile(MK_STR("(?=ab\\K)a"), false, &why);
    if (r && mk_regex_match(r, MK_STR("abc"), &found) == MK_REGEX_MATCH)
        assert_true(found.at[0].len <= 3);
    mk_regex_free(r);
}

static void regex_errors_have_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        size_t at;
    } cases[] = {
        {"^/(a", "missing closing parenthesis", 4}, {"*.php", "quantifier does not follow", 0},
        {"a[b", "missing terminating ]", 3},        {"(*UTF)a", "using UTF is disabled", 6},
        {"a\\", "\\ at end of pattern", 2},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_regex_error why = {0};
        assert_null(mk_regex_pcre2_compile(mk_str_from_c(cases[i].pattern), false, &why));
        assert_int_equal(why.code, -EINVAL);
        assert_contains(mk_str_from_c(why.text), cases[i].text);
        if (why.offset != cases[i].at)
            fail_msg("%s: at %zu", cases[i].pattern, why.offset);
    }
}

static char *repeat(char c, size_t n, const char *end)
{
    char *text = malloc(n + strlen(end) + 1);
    assert_non_null(text);
    memset(text, c, n);
    memcpy(text + n, end, strlen(end) + 1);
    return text;
}

static void set_timer(int us)
{
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = us}, NULL);
}

static void sleep_a_while(int number)
{
    (void)number;
    nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
    set_timer(300);
}

static bool hits_limit_while_asleep(struct mk_regex *r, mk_str text)
{
    signal(SIGALRM, sleep_a_while);
    set_timer(300);
    enum mk_regex_result result = mk_regex_match(r, text, NULL);
    set_timer(0);
    signal(SIGALRM, SIG_DFL);
    return result == MK_REGEX_LIMIT;
}

/* On a busy machine, a search may take long only because other processes run. */
static void regex_limit_counts_cpu_time_only(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'b', sizeof text - 1);
    memset(text, 'a', 60);
    text[sizeof text - 1] = 'p';
    struct mk_regex *r = make("a.*\\.p", false); /* from each `a`, the search scans to the end and back */
    for (int i = 0; i < 5; i++)
        assert_false(hits_limit_while_asleep(r, mk_str_of(text, sizeof text)));
    mk_regex_free(r);
}

static void regex_excessive_backtracking_is_aborted(void **state)
{
    (void)state;
    char *evil = repeat('a', 3000, "!"), *open = repeat('(', 20000, ")");
    assert_int_equal(found_in("^(a+)+$", evil), MK_REGEX_LIMIT);
    assert_int_equal(found_in("(a+)+$", evil), MK_REGEX_LIMIT);
    assert_int_equal(found_in("^(\\((?:[^()]|(?1))*\\))$", open), MK_REGEX_LIMIT);
    assert_int_equal(found_in("^(a+)+$", "aaaa"), MK_REGEX_MATCH); /* later searches still work */
    free(evil);
    free(open);
}

/* The step limit of PCRE2 applies separately to each possible start of a match, so this search could take
 * 8000 times the limit. */
static void regex_step_limit_includes_all_start_positions(void **state)
{
    (void)state;
    char *evil = repeat('a', 8000, "!X!");
    assert_int_equal(found_in("(?:b|a)*X$", evil), MK_REGEX_LIMIT);
    assert_int_equal(found_in("(?:b|a)*X$", evil + 7980), MK_REGEX_NO_MATCH);
    memcpy(evil, "/files/", 7);
    /* one step for each byte is within the limit */
    assert_int_equal(found_in("/files.*[.]php$", evil), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("\\.php$", evil), MK_REGEX_NO_MATCH);
    assert_int_equal(found_in("a!X!$", evil), MK_REGEX_MATCH);
    free(evil);
}

/* The JIT stack is too small for long texts: the interpreter takes over, and reaches the step limit before
 * the memory limit. */
static void regex_long_text_is_matched(void **state)
{
    (void)state;
    char *text = repeat('a', 8000, "!"), *longer = repeat('a', 12000, "!");
    assert_int_equal(found_in("^(?:a|b)*!$", text + 4000), MK_REGEX_MATCH);
    assert_int_equal(found_in("^(?:a|b)*!$", text), MK_REGEX_MATCH);
    assert_int_equal(found_in("^(?:a|b)*!$", longer), MK_REGEX_LIMIT);
    free(text);
    free(longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regex_linked_library_is_not_searched),
        cmocka_unit_test(regex_without_anchors_matches_anywhere),
        cmocka_unit_test(regex_text_can_be_null_or_contain_nul),
        cmocka_unit_test(regex_case_can_be_ignored),
        cmocka_unit_test(regex_captures_have_numbers_and_names),
        cmocka_unit_test(regex_with_more_groups_than_captures_matches),
        cmocka_unit_test(regex_backwards_match_captures_nothing),
        cmocka_unit_test(regex_errors_have_a_position),
        cmocka_unit_test(regex_excessive_backtracking_is_aborted),
        cmocka_unit_test(regex_limit_counts_cpu_time_only),
        cmocka_unit_test(regex_step_limit_includes_all_start_positions),
        cmocka_unit_test(regex_long_text_is_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
