/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/lexer.h"

#include "unit/conf/fixture.h"

static void expect(const char *text, const char *tree, const char *problems)
{
    conf_fixture_expect(NULL, NULL, text, tree, problems);
}

static void conf_lexer_keeps_sections_and_entries_in_order(void **state)
{
    (void)state;
    expect("[SERVER]\n    Listen 80\n    Listen  [::]:443   tls\n[HOST]\n    Root /srv\n[HOST]\n",
           "[SERVER] Listen=80 Listen=[::]:443   tls [HOST] Root=/srv [HOST]", "");
    expect("", "", "");
    expect("\n\n   \n\t\n", "", "");
    expect("[A]", "[A]", "");
    expect("[ A b ]\n", "[A b]", "");
    expect("[A]\n\tk v", "[A] k=v", "");
}

static void conf_lexer_keys_can_be_patterns_and_numbers(void **state)
{
    (void)state;
    expect(
        "[ROUTES]\n  /cgi-bin/*   cgi\n  *.php fastcgi unix:/run/x.sock\n  404 not-found.html\n  /* static\n",
        "[ROUTES] /cgi-bin/*=cgi *.php=fastcgi unix:/run/x.sock 404=not-found.html /*=static", "");
}

static void conf_lexer_accepts_comments_dashes_and_line_ends(void **state)
{
    (void)state;
    expect("# first\r\n[A]\r\n    # a comment\r\n   # another indent\r\n    k v  \t\r\n    -----\r\n    l # "
           "no comment\r\n",
           "[A] k=v l=# no comment", "");
    expect("\xef\xbb\xbf[A]\n k v\n", "[A] k=v", "");
    expect("[A]\n --\n", "[A] --=", "");
}

static void conf_lexer_positions_are_exact(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, "\n[A]\n    Key   one two\n\tx\n"), -EINVAL);
    const struct mk_conf_section *s = w.tree.first;
    assert_int_equal(s->at.line, 2);
    assert_int_equal(s->at.column, 1);
    const struct mk_conf_entry *e = s->first;
    assert_str(e->at.file, "t.conf");
    assert_int_equal(e->at.line, 3);
    assert_int_equal(e->at.column, 5);
    assert_int_equal(e->value_column, 11);
    assert_str(e->at.source, "    Key   one two");
    assert_int_equal(e->next->value_column, 3);
    conf_fixture_fini(&w);
}

static void conf_lexer_requires_one_indent_per_file(void **state)
{
    (void)state;
    expect("[A]\n    k 1\n  l 2\n        m 3\n\tn 4\n", "[A] k=1 l=2 m=3 n=4",
           "t.conf:3:3: error: the indent is 2 spaces: expected 4 spaces, as on line 2\n"
           "t.conf:4:9: error: the indent is 8 spaces: expected 4 spaces, as on line 2 (entries cannot be "
           "nested)\n"
           "t.conf:5:2: error: the indent is 1 tab: expected 4 spaces, as on line 2\n");
    expect("[A]\n \tk 1\n\t\tl 2\n\tm 3\n", "[A] k=1 l=2 m=3",
           "t.conf:2:3: error: the indent mixes tabs and spaces: expected one of them\n"
           "t.conf:4:2: error: the indent is 1 tab: expected 2 tabs, as on line 3\n");
    expect(
        "[A]\n\tk 1\n\t l 2\n", "[A] k=1 l=2",
        "t.conf:3:3: error: the indent is 2 tabs and spaces: expected 1 tab, as on line 2 (entries cannot be "
        "nested)\n");
}

static void conf_lexer_misplaced_lines_are_reported(void **state)
{
    (void)state;
    expect(
        "[A]\nKey value\n", "[A]",
        "t.conf:2:1: error: expected `[SECTION]`, `@INCLUDE`, `@SET`, a comment or an indented entry (indent "
        "entries, for example by 4 spaces)\n");
    expect(
        "[A]\n\tk v\nKey value\n", "[A] k=v",
        "t.conf:3:1: error: expected `[SECTION]`, `@INCLUDE`, `@SET`, a comment or an indented entry (indent "
        "the entry by 1 tab, as on line 2)\n");
    expect("  [A]\n    k v\n", "", "t.conf:1:3: error: `[A]` must begin in the first column\n");
    expect("[A]\n    @INCLUDE x\n    @set y z\n    k v\n", "[A] k=v",
           "t.conf:2:5: error: `@INCLUDE x` must begin in the first column\n"
           "t.conf:3:5: error: `@set y z` must begin in the first column\n");
    expect("    k v\n    l w\n", "",
           "t.conf:1:5: error: `k` is not in a section (a line with `[SECTION]` must come first)\n");
}

static void conf_lexer_broken_section_lines_are_reported(void **state)
{
    (void)state;
    expect("[A\n    k v\n", "[A] k=v", "t.conf:1:1: error: a section name must be closed by `]`\n");
    expect("[A] # why\n", "[A]",
           "t.conf:1:5: error: unexpected text after `]` (write the comment on a line of its own)\n");
    expect("[A] B\n", "[A]", "t.conf:1:5: error: unexpected text after `]`\n");
    expect("[]\n    k v\n    l w\n[B]\n    x y\n", "[B] x=y",
           "t.conf:1:1: error: a section must have a name\n");
    expect("[\n    k v\n", "", "t.conf:1:1: error: a section name must be closed by `]`\n");
}

static void conf_lexer_control_bytes_are_reported(void **state)
{
    (void)state;
    expect("[A]\n    k a\x1b[31m\n    l \x7f\n    m 1\r2\n    n \xc3\xa9\n", "[A] n=\xc3\xa9",
           "t.conf:2:8: error: control byte 0x1b: only printable text and tabs are allowed\n"
           "t.conf:3:7: error: control byte 0x7f: only printable text and tabs are allowed\n"
           "t.conf:4:8: error: control byte 0x0d: only printable text and tabs are allowed\n");
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    mk_str text = MK_STR("[A]\n    k a\0b\n    l 1\n");
    assert_int_equal(mk_conf_read_text(&w.tree, &w.arena, &w.io, MK_STR("t"), text, &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "t:2:8: error: control byte 0x00: only printable text and tabs are allowed\n");
    assert_str(conf_fixture_tree(&w), "[A] l=1");
    conf_fixture_fini(&w);
}

static void conf_lexer_long_lines_are_rejected(void **state)
{
    (void)state;
    static char text[MK_CONF_LINE_MAX + 100];
    memcpy(text, "[A]\n k ", 7);
    memset(text + 7, 'x', MK_CONF_LINE_MAX - 3);
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, text), 0);
    assert_int_equal(w.tree.first->first->value.len, MK_CONF_LINE_MAX - 3);
    text[7 + MK_CONF_LINE_MAX - 3] = 'x';
    memcpy(text + 7 + MK_CONF_LINE_MAX - 2, "\n l v\n", 6);
    w.tree = (struct mk_conf_tree){0};
    assert_int_equal(conf_fixture_read_text(&w, text), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "t.conf:2:0: error: the line has 65537 bytes; at most 65536 are allowed\n");
    assert_str(conf_fixture_tree(&w), "[A] l=v");
    conf_fixture_fini(&w);
}

static void conf_lexer_many_mistakes_are_limited(void **state)
{
    (void)state;
    struct conf_fixture w;
    static char text[300 * 2 + 1];
    for (size_t i = 0; i < 300; i++)
        memcpy(text + 2 * i, "x\n", 2);
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, text), -EINVAL);
    assert_int_equal(w.report.n_kept, MK_CONF_REPORT_MAX);
    assert_int_equal(w.report.n_errors, 300);
    conf_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_lexer_keeps_sections_and_entries_in_order),
        cmocka_unit_test(conf_lexer_keys_can_be_patterns_and_numbers),
        cmocka_unit_test(conf_lexer_accepts_comments_dashes_and_line_ends),
        cmocka_unit_test(conf_lexer_positions_are_exact),
        cmocka_unit_test(conf_lexer_requires_one_indent_per_file),
        cmocka_unit_test(conf_lexer_misplaced_lines_are_reported),
        cmocka_unit_test(conf_lexer_broken_section_lines_are_reported),
        cmocka_unit_test(conf_lexer_control_bytes_are_reported),
        cmocka_unit_test(conf_lexer_long_lines_are_rejected),
        cmocka_unit_test(conf_lexer_many_mistakes_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
