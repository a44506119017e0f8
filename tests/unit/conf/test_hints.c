/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions are expensive: they are computed only for the problems that a report keeps. */
#include "conf/bind.h"
#include "conf/check.h"
#include "conf/suggest.h"

#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

enum { MISTAKES = 5 * MK_CONF_REPORT_MAX };

/* These functions replace conf/suggest.c and count the calls. */
static size_t searches, tries;

struct mk_conf_suggest mk_conf_suggest_for(mk_str word)
{
    searches++;
    return (struct mk_conf_suggest){.word = word};
}

void mk_conf_suggest_try(struct mk_conf_suggest *n, mk_str candidate)
{
    (void)n;
    (void)candidate;
    tries++;
}

static struct conf_fixture w;
static char text[MISTAKES * 64];

static void setup(void)
{
    conf_fixture_setup(&w);
    searches = tries = 0;
}

/* Returns `begin`, followed by MISTAKES lines, each with a number between `left` and `right`. */
static const char *mistakes(const char *begin, const char *left, const char *right)
{
    struct mk_buf b = mk_buf_fixed(text, sizeof text);
    mk_buf_add(&b, mk_str_from_c(begin));
    for (unsigned i = 0; i < MISTAKES; i++)
        mk_buf_addf(&b, "%s%u%s\n", left, i, right);
    mk_buf_add_char(&b, '\0');
    assert_false(b.failed);
    return text;
}

static void conf_hints_of_unknown_keys_are_limited(void **state)
{
    (void)state;
    struct sample s = {0};
    assert_int_equal(conf_fixture_read_text(&w, mistakes("[SAMPLE]\n", "    Unknown", " 1")), 0);
    assert_int_equal(mk_conf_bind(&sample_table, w.tree.first, &s, &w.arena, &w.report), -EINVAL);
    assert_true(w.report.n_errors >= MISTAKES); /* the required keys of [SAMPLE] add more errors */
    assert_in_range(searches, MK_CONF_REPORT_MAX, MK_CONF_REPORT_MAX + sample_table.n); /* defaults */
}

static void conf_hints_of_unknown_sections_are_limited(void **state)
{
    (void)state;
    const struct mk_conf_table *tables[] = {&sample_table};
    assert_int_equal(conf_fixture_read_text(&w, mistakes("", "[UNKNOWN", "]\n    Key 1")), 0);
    assert_int_equal(mk_conf_check_sections(&w.tree, tables, 1, &w.report), -EINVAL);
    assert_int_equal(w.report.n_errors, MISTAKES);
    assert_int_equal(tries, MK_CONF_REPORT_MAX);
}

static void conf_hints_of_unknown_variables_are_limited(void **state)
{
    (void)state;
    assert_int_equal(conf_fixture_read_text(&w, mistakes("[SAMPLE]\n", "    Key ${UNKNOWN", "}")), -EINVAL);
    assert_int_equal(w.report.n_errors, MISTAKES);
    assert_in_range(searches, MK_CONF_REPORT_MAX, MK_CONF_REPORT_MAX + sample_table.n); /* defaults */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conf_hints_of_unknown_keys_are_limited, setup),
        fixture_test(conf_hints_of_unknown_sections_are_limited, setup),
        fixture_test(conf_hints_of_unknown_variables_are_limited, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
