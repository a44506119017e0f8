/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/conf_regex.h"

#include <errno.h>
#include <string.h>

#include "os/regex.h"
#include "unit/fixtures.h"
#include "unit/test.h"

/* Replaces PCRE2: "bad" is invalid, "big" runs out of memory, and for "no" the library is missing. */
static unsigned n_live;

static void drop(struct mk_regex *r)
{
    (void)r;
    n_live--;
}

extern mk_regex_compile mk_regex_pcre2_compile;

struct mk_regex *mk_regex_pcre2_compile(mk_str pattern, bool nocase, struct mk_regex_error *why)
{
    static const struct mk_regex_ops ops = {.free = drop};
    static struct mk_regex made = {&ops};
    (void)nocase;
    if (mk_str_eq(pattern, MK_STR("good"))) {
        n_live++;
        return &made;
    }
    *why = (struct mk_regex_error){.code = -EINVAL, .offset = 2, .text = "it is wrong"};
    if (mk_str_eq(pattern, MK_STR("big")))
        why->code = -ENOMEM;
    if (mk_str_eq(pattern, MK_STR("no")))
        why->code = -ENOENT;
    return NULL;
}

static struct mk_arena arena;
static struct mk_conf_report report;
static const struct mk_conf_source_pos at = {.file = MK_STR_INIT("a.conf"), .line = 3};

static void setup(void)
{
    arena_setup(&arena);
    mk_conf_report_init(&report, &arena);
}

static void teardown(void)
{
    harness_teardown(NULL); /* the arena frees the expressions */
    assert_int_equal(n_live, 0);
}

static void conf_regex_is_freed_with_the_arena(void **state)
{
    (void)state;
    assert_non_null(mk_conf_regex_new(&arena, &report, &at, MK_STR("good"), false));
    assert_int_equal(n_live, 1);
    assert_int_equal(report.n_errors, 0);
}

static void conf_regex_error_is_reported(void **state)
{
    (void)state;
    assert_null(mk_conf_regex_new(&arena, &report, &at, MK_STR("bad"), false));
    assert_str(report.last->text, "`bad` is not a regular expression: it is wrong, at character 3");
    assert_int_equal(report.last->at.line, 3);
    assert_null(mk_conf_regex_new(&arena, &report, &at, MK_STR(""), false));
    assert_str(report.last->text, "expected a regular expression after `~`");
    assert_false(report.no_memory);
}

static void conf_regex_missing_library_is_reported(void **state)
{
    (void)state;
    assert_null(mk_conf_regex_new(&arena, &report, &at, MK_STR("no"), false));
    assert_str(report.last->text, "`no`: this server does not support regular expressions: it is wrong");
    assert_contains(report.last->hint, "libpcre2-dev");
}

static void conf_regex_oom_is_not_a_mistake(void **state)
{
    (void)state;
    assert_null(mk_conf_regex_new(&arena, &report, &at, MK_STR("big"), false));
    assert_int_equal(report.n_errors, 0);
    assert_true(mk_conf_report_out_of_memory(&report));
}

static void conf_regex_posix_matches_anywhere(void **state)
{
    (void)state;
    struct mk_regex *r = mk_conf_regex_new_posix(&arena, &report, &at, MK_STR("cgi-bin/.*\\.pl$"));
    assert_non_null(r);
    assert_int_equal(mk_regex_match(r, MK_STR("/cgi-bin/a.pl"), NULL), MK_REGEX_MATCH);
    assert_int_equal(mk_regex_match(r, MK_STR("/x/CGI-BIN/b/a.PL"), NULL), MK_REGEX_MATCH);
    assert_int_equal(mk_regex_match(r, MK_STR("/cgi-bin/a.plx"), NULL), MK_REGEX_NO_MATCH);
    assert_null(mk_conf_regex_new_posix(&arena, &report, &at, MK_STR("(")));
    assert_str(report.last->text, "`(` is not a regular expression");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conf_regex_is_freed_with_the_arena, setup, teardown),
        fixture_test(conf_regex_error_is_reported, setup, teardown),
        fixture_test(conf_regex_missing_library_is_reported, setup, teardown),
        fixture_test(conf_regex_oom_is_not_a_mistake, setup, teardown),
        fixture_test(conf_regex_posix_matches_anywhere, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
