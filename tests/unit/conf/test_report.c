/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/report.h"

#include "unit/test.h"

static char buffer[1 << 16];

static mk_str print_problem(const struct mk_conf_problem *p)
{
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_report_print_one(p, &b);
    assert_false(b.failed);
    return mk_buf_str(&b);
}

static void conf_report_shows_the_line(void **state)
{
    (void)state;
    struct mk_conf_problem p = {.at = {MK_STR("a.conf"), 7, 9, MK_STR("\tKey \xc3\xa4\tvalue")},
                                .text = MK_STR("`value` is wrong"),
                                .hint = MK_STR("did you mean `x`?")};
    assert_str(print_problem(&p), "a.conf:7:9: error: `value` is wrong\n"
                                  "    \tKey \xc3\xa4\tvalue\n"
                                  "    \t     \t^\n"
                                  "    hint: did you mean `x`?\n");
    p.severity = MK_CONF_WARNING;
    p.hint = MK_STR_NULL;
    p.at.column = 0;
    assert_str(print_problem(&p), "a.conf:7: warning: `value` is wrong\n    \tKey \xc3\xa4\tvalue\n");
    p.at = (struct mk_conf_source_pos){.file = MK_STR("a.conf")};
    assert_str(print_problem(&p), "a.conf: warning: `value` is wrong\n");
    p.at.file = MK_STR("");
    assert_str(print_problem(&p), "warning: `value` is wrong\n");
}

static void conf_report_escapes_control_characters(void **state)
{
    (void)state;
    struct mk_conf_problem p = {.at = {MK_STR("a\x1b.conf"), 1, 2, MK_STR("a\x1b[31m\0\x7f")},
                                .text = MK_STR("x\ny"),
                                .hint = MK_STR("\r")};
    assert_str(print_problem(&p), "a?.conf:1:2: error: x?y\n    a?[31m??\n     ^\n    hint: ?\n");
}

static void conf_report_long_lines_are_shortened(void **state)
{
    (void)state;
    static char line[4096];
    memset(line, 'a', sizeof line);
    line[2000] = 'X';
    struct mk_conf_problem p = {.at = {MK_STR("f"), 1, 2001, mk_str_of(line, sizeof line)},
                                .text = MK_STR("t")};
    mk_str text = print_problem(&p);
    mk_str_cut(&text, '\n');
    mk_str shown = mk_str_cut(&text, '\n'), caret = mk_str_cut(&text, '\n');
    assert_int_equal(shown.len, 4 + 160);
    assert_int_equal(shown.p[caret.len - 1], 'X');
    p.at.column = 9999;
    print_problem(&p);
    memset(line, 0x80, sizeof line);
    print_problem(&p);
    p.at.column = 2001;
    print_problem(&p);
}

static void conf_report_keeps_order_and_counts(void **state)
{
    (void)state;
    struct mk_arena a;
    struct mk_conf_report r;
    struct mk_conf_source_pos at = {.file = MK_STR("f"), .line = 1};
    mk_arena_init(&a, NULL);
    mk_conf_report_init(&r, &a);
    assert_int_equal(mk_conf_report_result(&r), 0);
    mk_conf_report_hint(&r, "to nothing");
    mk_conf_report_warn(&r, &at, "first %d", 1);
    assert_int_equal(mk_conf_report_result(&r), 0);
    mk_conf_report_error(&r, &at, "second");
    mk_conf_report_suggest(&r, MK_STR_NULL);
    mk_conf_report_suggest(&r, MK_STR("word"));
    assert_int_equal(mk_conf_report_result(&r), -EINVAL);
    for (int i = 0; i < 200; i++)
        mk_conf_report_error(&r, &at, "more");
    mk_conf_report_hint(&r, "to the one that was not kept");
    assert_int_equal(r.n_errors, 201);
    assert_int_equal(r.n_warnings, 1);
    assert_int_equal(r.n_kept, MK_CONF_REPORT_MAX);
    assert_false(r.last->hint.p);
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_report_print(&r, &b);
    assert_true(
        mk_str_starts(mk_buf_str(&b), MK_STR("f:1: warning: first 1\n"
                                             "f:1: error: second\n    hint: did you mean `word`?\n")));
    assert_true(mk_str_ends(mk_buf_str(&b), MK_STR("f:1: error: more\nand 102 more\n")));
    r.no_memory = true;
    assert_int_equal(mk_conf_report_result(&r), -ENOMEM);
    mk_arena_fini(&a);
}

static void conf_report_long_messages_are_truncated(void **state)
{
    (void)state;
    struct mk_arena a;
    struct mk_conf_report r;
    mk_arena_init(&a, NULL);
    mk_conf_report_init(&r, &a);
    mk_conf_report_error(&r, &(struct mk_conf_source_pos){.line = 1}, "%3000d", 1);
    assert_int_equal(r.last->text.len, 1023);
    mk_arena_fini(&a);
}

static void conf_report_outlives_the_configuration(void **state)
{
    (void)state;
    struct mk_arena arena;
    struct mk_conf_report r;
    char config[] = "a.confKey";
    mk_arena_init(&arena, NULL);
    mk_conf_report_init(&r, &arena);
    const struct mk_conf_source_pos at = {mk_str_of(config, 6), 1, 1, mk_str_of(config + 6, 3)};
    mk_conf_report_error(&r, &at, "wrong");
    memset(config, '#', sizeof config);
    assert_str(print_problem(r.first), "a.conf:1:1: error: wrong\n    Key\n    ^\n");
    mk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_report_shows_the_line),
        cmocka_unit_test(conf_report_escapes_control_characters),
        cmocka_unit_test(conf_report_long_lines_are_shortened),
        cmocka_unit_test(conf_report_keeps_order_and_counts),
        cmocka_unit_test(conf_report_long_messages_are_truncated),
        cmocka_unit_test(conf_report_outlives_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
