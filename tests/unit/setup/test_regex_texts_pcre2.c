/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/text.h>

#include "os/regex.h"
#include "setup/regex_texts.h"
#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;

static void setup(void)
{
    arena_setup(&arena);
}

/* Returns the texts, separated by commas. */
static const char *find(const char *pattern, bool nocase)
{
    static char buf[1024];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf - 1);
    mk_str texts[MK_REGEX_TEXTS_MAX];
    size_t n = mk_regex_texts_find(&arena, mk_str_from_c(pattern), nocase, texts);
    for (size_t i = 0; i < n; i++)
        mk_buf_addf(&out, "%s%.*s", i ? "," : "", MK_STR_ARG(texts[i]));
    mk_buf_add_char(&out, '\0');
    return buf;
}

static void regex_texts_of_branches_are_found(void **state)
{
    (void)state;
    assert_string_equal(find("sqlmap", false), "sqlmap");
    assert_string_equal(find("^Mozilla/5\\.0.*Chrome", false), "Mozilla/5.0");
    assert_string_equal(find("bot|crawl(er)?|spider", false), "bot,crawl,spider");
    assert_string_equal(find("(?i)(bot|crawl)/[0-9]+", true), "bot,crawl");
    assert_string_equal(find("(?:ab|cd)+xyz", false), "xyz");
    assert_string_equal(find("(abcd|efgh)+?xyz", false), "abcd,efgh");
    assert_string_equal(find("abc+d", false), "abc");
    assert_string_equal(find("abc?defg", false), "defg");
    assert_string_equal(find("abc{2}[x-z]de\\d{1,2}fgh$", false), "fgh");
}

static void regex_texts_are_unknown_if_a_branch_has_none(void **state)
{
    (void)state;
    static const char *const patterns[] = {"a",        "abc|.*", "(abc|)", "(abc)?",    "(abc)*",
                                           "(abc){0}", "ab|c",   "[abc]+", ".",         "(abc|d)x",
                                           "abc|",     "x*y*",   "a+b?c*", "\\babc|\\d"};
    for (size_t i = 0; i < MK_LEN(patterns); i++)
        assert_string_equal(find(patterns[i], true), "");
}

static void regex_texts_of_unknown_syntax_are_unknown(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(?x)a b c d", "(?i)abcd",      "abc(?-i)def", "abc(?#)|)def",
                                           "(*UCP)abc",   "\\Qabc|\\Edef", "abc\\x41",    "[]|abc]def",
                                           "[[:x:]]abc",  "abc\\1",        "abc{x|y}",    "[\\E]|abc]",
                                           "[x\\c]]evil", "abc\\K",        "(?=abc)abcd"};
    for (size_t i = 0; i < MK_LEN(patterns); i++)
        assert_string_equal(find(patterns[i], false), "");
}

static void regex_with_many_texts_is_unknown(void **state)
{
    (void)state;
    char pattern[5 * (MK_REGEX_TEXTS_MAX + 2)] = "";
    struct mk_buf out = mk_buf_fixed(pattern, sizeof pattern - 1);
    for (unsigned i = 0; i < MK_REGEX_TEXTS_MAX; i++)
        mk_buf_addf(&out, "%s%cx%c", i ? "|" : "", 'a' + (int)i / 8, 'a' + (int)i % 8);
    mk_buf_add_char(&out, '\0');
    assert_true(strlen(find(pattern, false)) > 0);
    out.len--;
    mk_buf_add(&out, MK_STR("|xyz"));
    mk_buf_add_char(&out, '\0');
    assert_string_equal(find(pattern, false), "");
}

/* ---- Comparison with PCRE2 ---- */

extern mk_regex_compile mk_regex_pcre2_compile;

static uint32_t seed = 1;

static unsigned draw(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % n;
}

static void add_random(struct mk_buf *out, const char *const *parts, size_t n, unsigned count)
{
    while (count--)
        mk_buf_add(out, mk_str_from_c(parts[draw((unsigned)n)]));
}

static bool contains_any(mk_str text, const mk_str *texts, size_t n, bool nocase)
{
    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; at + texts[i].len <= text.len; at++) {
            mk_str part = mk_str_first(mk_str_skip(text, at), texts[i].len);
            if (nocase ? mk_str_eq_nocase(part, texts[i]) : mk_str_eq(part, texts[i]))
                return true;
        }
    return false;
}

static void regex_that_matches_contains_one_of_its_texts(void **state)
{
    (void)state;
    static const char *const syntax[] = {
        "a", "b", "c", "abc", "bcab", "Ab",  "(",     ")",   "|",    "(?:",    "(?i)", "[ab]",  "[^a]",
        "]", "[", "*", "+",   "?",    "{2}", "{0,1}", "{",   "}",    "\\.",    "\\w",  "\\b",   "\\E",
        ".", "^", "$", "\\Q", "[]a]", "#",   " ",     "\\]", "\\\\", "[\\]a]", "{,2}", "[\\E]", "-"};
    static const char *const letters[] = {"a", "b", "c", "abc", "bcab", "A", "Ab", "-",
                                          ".", "]", "{", "}",   " ",    "#", "\\", "0,1"};
    unsigned n_checked = 0, n_matched = 0;
    for (unsigned round = 0; round < 30000; round++) {
        char pattern[128], buf[128];
        mk_str texts[MK_REGEX_TEXTS_MAX];
        struct mk_buf out = mk_buf_fixed(pattern, sizeof pattern);
        add_random(&out, syntax, MK_LEN(syntax), 1 + draw(9));
        bool nocase = draw(2);
        struct mk_regex_error error;
        struct mk_regex *regex = mk_regex_pcre2_compile(mk_buf_str(&out), nocase, &error);
        size_t n = regex ? mk_regex_texts_find(&arena, mk_buf_str(&out), nocase, texts) : 0;
        n_checked += n > 0;
        for (unsigned i = 0; n && i < 40; i++) {
            struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
            add_random(&text, letters, MK_LEN(letters), draw(8));
            if (mk_regex_match(regex, mk_buf_str(&text), NULL) != MK_REGEX_MATCH)
                continue;
            n_matched++;
            if (!contains_any(mk_buf_str(&text), texts, n, nocase))
                fail_msg("%.*s matches `%.*s` without %.*s", MK_STR_ARG(mk_buf_str(&out)),
                         MK_STR_ARG(mk_buf_str(&text)), MK_STR_ARG(texts[0]));
        }
        mk_regex_free(regex);
    }
    assert_true(n_checked > 1000 && n_matched > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(regex_texts_of_branches_are_found, setup),
        fixture_test(regex_texts_are_unknown_if_a_branch_has_none, setup),
        fixture_test(regex_texts_of_unknown_syntax_are_unknown, setup),
        fixture_test(regex_with_many_texts_is_unknown, setup),
        fixture_test(regex_that_matches_contains_one_of_its_texts, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
