/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/condition_index.h"

#include "os/regex.h"
#include "unit/condition_rules.h"
#include "unit/fixtures.h"
#include "unit/site.h"
#include "unit/test.h"

/* Replaces PCRE2: an expression matches texts that contain its first character; `L` exceeds its limit. */
struct char_regex {
    struct mk_regex regex;
    char c;
};

static enum mk_regex_result match_char(const struct mk_regex *regex, mk_str text,
                                       struct mk_regex_captures *out)
{
    char c = ((const struct char_regex *)regex)->c;
    (void)out;
    if (c == 'L')
        return MK_REGEX_LIMIT;
    return mk_str_find(text, c) != MK_STR_NONE ? MK_REGEX_MATCH : MK_REGEX_NO_MATCH;
}

static void drop(struct mk_regex *regex)
{
    mk_mem_free(regex);
}

extern mk_regex_compile mk_regex_pcre2_compile;

struct mk_regex *mk_regex_pcre2_compile(mk_str pattern, bool nocase, struct mk_regex_error *why)
{
    static const struct mk_regex_ops ops = {.match = match_char, .free = drop};
    struct char_regex *made = mk_mem_zalloc(1, sizeof *made);
    (void)nocase;
    (void)why;
    MK_ASSERT(made);
    *made = (struct char_regex){.regex.ops = &ops, .c = pattern.p[0]};
    return &made->regex;
}

static struct site site;
static struct mk_arena arena;
static struct condition_rules rules;

static void setup(void)
{
    site_setup(&site);
    arena_setup(&arena);
    rules = (struct condition_rules){.n = 0};
    mk_conf_report_init(&rules.report, &arena);
}

static void free_memo(void)
{
    mk_mem_free(site.web.conditions);
    site.web.conditions = NULL;
}

static void add(const char *text)
{
    size_t n = rules.n;
    condition_rules_add(&rules, &arena, mk_str_from_c(text));
    assert_int_equal(rules.n, n + 1);
}

/* Returns how many lists are skipped for a request with these headers. */
static size_t count_skipped(const char *fields)
{
    struct mk_condition_index *index = mk_condition_index_build(&arena, rules.lists, rules.n);
    struct mk_exchange *x = site_get(&site, "/a/b?p=1&q=2", fields);
    assert_non_null(index);
    assert_non_null(x);
    size_t n = condition_rules_check(&rules, index, &x->request, mk_request_path(&x->request));
    mk_exchange_free(x);
    free_memo();
    return n;
}

static void condition_index_skips_a_run_without_a_match(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++)
        add(mk_arena_printf(&arena, "header User-Agent *Bot%u*", i).p);
    assert_int_equal(count_skipped(""), 50);
    assert_int_equal(count_skipped("User-Agent: a browser with a name that is worth remembering\r\n"), 50);
    assert_int_equal(count_skipped("User-Agent: a\r\nuser-agent: xbot49x\r\n"), 0);
}

static void condition_index_skips_up_to_the_run_that_may_match(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        add("header A *x*");
    for (unsigned i = 0; i < 3; i++)
        add("cookie c y*");
    for (unsigned i = 0; i < 3; i++)
        add("parameter z contains z");
    assert_int_equal(count_skipped("A: a\r\nCookie: c=x\r\n"), 9);
    assert_int_equal(count_skipped("A: a\r\nCookie: c=yes\r\n"), 3);
    assert_int_equal(count_skipped("A: axa\r\nCookie: c=yes\r\n"), 0);
}

static void condition_index_joins_rules_with_further_conditions(void **state)
{
    (void)state;
    add("path /a/* header A *x*");
    add("header A *y* method GET header B 1");
    add("not header B 1 header A z");
    assert_int_equal(count_skipped("A: a\r\n"), 3);
    assert_int_equal(count_skipped("A: y\r\n"), 0);
}

static void condition_index_ends_runs_at_other_rules(void **state)
{
    (void)state;
    add("header A x");
    add("header A y");
    add("not header A z");
    assert_int_equal(count_skipped("A: a\r\n"), 0);
    add("header A 1");
    add("header A 2");
    add("header A 3");
    add("method GET");
    assert_int_equal(count_skipped("A: a\r\n"), 0);
}

static void condition_index_knows_rules_that_match_a_missing_header(void **state)
{
    (void)state;
    add("header A x");
    add("header A \"\"");
    add("header A y");
    assert_int_equal(count_skipped(""), 0);
    assert_int_equal(count_skipped("A:\r\n"), 0);
    assert_int_equal(count_skipped("A: z\r\n"), 3);
}

static void condition_index_skips_expressions_only_without_the_header(void **state)
{
    (void)state;
    add("header A ~x");
    add("header A ~L");
    add("header A ~y");
    assert_int_equal(count_skipped(""), 3);
    assert_int_equal(count_skipped("A: z\r\n"), 0);
}

static void condition_index_accepts_more_patterns_than_a_set_has(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < 60; i++)
        add(mk_arena_printf(&arena, "header A %.*s%u", (int)sizeof text, text, i).p);
    assert_int_equal(count_skipped("A: a\r\n"), 60);
}

static void condition_index_sees_the_headers_that_the_client_sent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        add("header A x");
    struct mk_condition_index *index = mk_condition_index_build(&arena, rules.lists, rules.n);
    struct mk_exchange *x = site_get(&site, "/", "A: x\r\n");
    assert_int_equal(mk_request_set_header(&x->request, MK_STR("A"), MK_STR("y")), 0);
    assert_int_equal(condition_rules_check(&rules, index, &x->request, MK_STR("/")), 0);
    assert_str(mk_request_header(&x->request, MK_STR("A")), "y");
    mk_exchange_free(x);
}

/* ---- Comparison with each list ---- */

static uint32_t seed = 1;

static unsigned draw(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % n;
}

static const char *draw_value(void)
{
    static const char *const values[] = {"a",
                                         "b",
                                         "ab",
                                         "*a*",
                                         "a*",
                                         "*b",
                                         "?b",
                                         "*",
                                         "a*b",
                                         "\"\"",
                                         "contains a",
                                         "contains bb",
                                         "~a",
                                         "~b",
                                         "~L",
                                         "*abc*def*ghi*",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaa*"};
    return values[draw(MK_LEN(values))];
}

static void add_random_rule(void)
{
    static const char *const subjects[] = {"header A", "header B", "cookie c",      "cookie d", "parameter p",
                                           "query",    "host",     "path contains", "header a"};
    char text[512];
    struct mk_buf out = mk_buf_fixed(text, sizeof text - 1);
    static const char *subject;
    for (unsigned n = 1 + draw(5) / 4; n; n--) {
        bool is_path = draw(24) == 0;
        if (!subject || draw(4) == 0)
            subject = subjects[draw(MK_LEN(subjects))];
        const char *value = strstr(subject, "contains") ? "a" : draw_value();
        if (is_path)
            mk_buf_addf(&out, "path /a* ");
        else
            mk_buf_addf(&out, "%s%s %s ", draw(16) ? "" : "not ", subject, value);
    }
    condition_rules_add(&rules, &arena, mk_buf_str(&out));
}

static struct mk_exchange *random_request(void)
{
    static const char *const values[] = {
        "", "a", "b", "ab", "bb", "c", "zabz", "xx abc y def z ghi", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"};
    char fields[512], target[128];
    struct mk_buf out = mk_buf_fixed(fields, sizeof fields - 1);
    for (unsigned i = draw(3); i; i--)
        mk_buf_addf(&out, "%s: %s\r\n", draw(3) ? "A" : "b", values[draw(MK_LEN(values))]);
    if (draw(2))
        mk_buf_addf(&out, "Cookie: c=%s; d=%s\r\n", values[draw(7)], values[draw(7)]);
    mk_buf_add_char(&out, '\0');
    snprintf(target, sizeof target, "/%s?p=%s&p=%s", values[draw(6)], values[draw(7)], values[draw(7)]);
    return site_get(&site, target, fields);
}

static void condition_index_equals_the_evaluation_of_each_list(void **state)
{
    (void)state;
    size_t skipped = 0;
    for (unsigned round = 0; round < 300; round++) {
        rules.n = 0;
        for (unsigned i = 1 + draw(24); i; i--)
            add_random_rule();
        struct mk_condition_index *index = mk_condition_index_build(&arena, rules.lists, rules.n);
        for (unsigned i = 0; i < 10; i++) {
            struct mk_exchange *x = random_request();
            assert_non_null(x);
            skipped += condition_rules_check(&rules, index, &x->request, mk_request_path(&x->request));
            mk_exchange_free(x);
        }
        free_memo(); /* by the addresses of sets */
    }
    assert_true(skipped > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(condition_index_skips_a_run_without_a_match, setup),
        fixture_test(condition_index_skips_up_to_the_run_that_may_match, setup),
        fixture_test(condition_index_joins_rules_with_further_conditions, setup),
        fixture_test(condition_index_ends_runs_at_other_rules, setup),
        fixture_test(condition_index_knows_rules_that_match_a_missing_header, setup),
        fixture_test(condition_index_skips_expressions_only_without_the_header, setup),
        fixture_test(condition_index_accepts_more_patterns_than_a_set_has, setup),
        fixture_test(condition_index_sees_the_headers_that_the_client_sent, setup),
        fixture_test(condition_index_equals_the_evaluation_of_each_list, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
