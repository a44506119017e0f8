/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/read.h"

#include "unit/conf/fixture.h"

static void expect(const struct conf_file *files, const char *tree, const char *problems)
{
    struct conf_fixture w;
    conf_fixture_init(&w, files, NULL);
    mk_err err = mk_conf_read_file(&w.tree, &w.arena, &w.io, mk_str_from_c(files[0].path), &w.report);
    assert_str(conf_fixture_problems(&w), problems);
    assert_str(conf_fixture_tree(&w), tree);
    assert_int_equal(err, w.report.n_errors ? -EINVAL : 0);
    conf_fixture_fini(&w);
}

static void conf_include_path_is_relative_to_the_file(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"/etc/monkey/monkey.conf", "[A]\n k 1\n@INCLUDE sub/b.conf\n[C]\n k 3\n"},
        {"/etc/monkey/sub/b.conf", "[B]\n\tk 2\n@INCLUDE ../d.conf\n@include /e.conf\n"},
        {"/etc/monkey/sub/../d.conf", "[D]\n"},
        {"/e.conf", "[E]\n"},
        {NULL, NULL}};
    expect(files, "[A] k=1 [B] k=2 [D] [E] [C] k=3", "");
}

static void conf_include_pattern_is_sorted(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"m.conf", "@INCLUDE sites/*\n@INCLUDE none/*.conf\n@INCLUDE \"my sites/*\"\n"},
        {"sites/b", "[B]\n"},
        {"sites/a", "[A]\n"},
        {"sites/.hidden", "[HIDDEN]\n"},
        {"sites/a~", "[BACKUP]\n"},
        {"sites/C", "[C]\n"},
        {"my sites/d", "[D]\n"},
        {NULL, NULL}};
    expect(files, "[C] [A] [B] [D]", "");
}

static void conf_include_expands_variables(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"m.conf", "@SET DIR sites\n@INCLUDE ${DIR}/a\n@INCLUDE ${NO}/a\n[M]\n k ${X}\n"},
        {"sites/a", "@SET X set inside\n[A]\n"},
        {NULL, NULL}};
    expect(files, "[A] [M] k=set inside",
           "m.conf:3:10: error: `NO` is not set (set it above with @SET or in the environment, or write "
           "${NO:-default})\n");
}

static void conf_include_missing_file_is_an_error(void **state)
{
    (void)state;
    const struct conf_file files[] = {{"conf/m.conf", "[A]\n@INCLUDE a.conf\n@INCLUDE\n@INCLUDE \"a\n[B]\n"},
                                      {NULL, NULL}};
    expect(files, "[A] [B]",
           "conf/m.conf:2:10: error: `conf/a.conf` cannot be read: No such file or directory\n"
           "conf/m.conf:3:9: error: expected `@INCLUDE file` or `@INCLUDE folder/*.conf`\n"
           "conf/m.conf:4:10: error: expected `@INCLUDE file` or `@INCLUDE folder/*.conf`\n");
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("./no.conf"), &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "no.conf:0:0: error: `no.conf` cannot be read: No such file or directory\n");
    conf_fixture_fini(&w);
}

static void conf_include_ends_the_section(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"m.conf", "[A]\n    k 1\n@INCLUDE b\n    l 2\n    m 3\n[C]\n    n 4\n"},
        {"b", "[B]\n"},
        {NULL, NULL}};
    expect(
        files, "[A] k=1 [B] [C] n=4",
        "m.conf:4:5: error: `l` is not in a section (the @INCLUDE on line 3 ended the section above it)\n");
    const struct conf_file parts[] = {{"m.conf", "[A]\n@INCLUDE b\n"}, {"b", "  k v\n"}, {NULL, NULL}};
    expect(parts, "[A]", "b:1:3: error: `k` is not in a section (a line with `[SECTION]` must come first)\n");
}

static void conf_include_cycle_is_reported_with_its_path(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"a", "[A]\n@INCLUDE b\n"}, {"b", "[B]\n\n@INCLUDE .//./a\n[C]\n"}, {NULL, NULL}};
    expect(files, "[A] [B] [C]", "b:3:10: error: `a` includes itself (a:2 -> b:3 -> a)\n");
    const struct conf_file self[] = {{"a.conf", "@INCLUDE *.conf\n[A]\n"}, {"b.conf", "[B]\n"}, {NULL, NULL}};
    expect(self, "[B] [A]", "a.conf:1:10: error: `a.conf` includes itself (a.conf:1 -> a.conf)\n");
    const struct conf_file twice[] = {{"a", "@INCLUDE b\n@INCLUDE b\n"}, {"b", "[B]\n"}, {NULL, NULL}};
    expect(twice, "[B] [B]", "");
}

/* Supplies files each of which includes another, new file. */
static mk_err read_endless(void *ctx, mk_str path, struct mk_buf *out)
{
    struct conf_fixture *w = ctx;
    w->n_reads++;
    (void)path;
    mk_buf_addf(out, "@INCLUDE f%zu\n@INCLUDE g%zu\n", w->n_reads, w->n_reads);
    return 0;
}

static void conf_include_depth_and_count_are_limited(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    w.io.read = read_endless;
    assert_int_equal(mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("m"), &w.report), -EINVAL);
    assert_int_equal(w.n_reads, MK_CONF_FILES_MAX);
    assert_str(w.report.first->text, "more than 16 nested @INCLUDEs");
    assert_str(w.report.first->at.file, "f15");
    conf_fixture_fini(&w);
}

static mk_err read_much(void *ctx, mk_str path, struct mk_buf *out)
{
    struct conf_fixture *w = ctx;
    static char comment[1000];
    (void)path;
    size_t n = mk_str_eq(path, MK_STR("large")) ? 17000 : 16600;
    memset(comment, '#', sizeof comment);
    comment[999] = '\n';
    if (w->n_reads++ == 0)
        mk_buf_add(
            out,
            MK_STR("@INCLUDE a\n@INCLUDE b\n@INCLUDE large\n@INCLUDE c\n@INCLUDE d\n@INCLUDE e\n@INCLUDE f\n"
                   "@INCLUDE g\n@INCLUDE h\n@INCLUDE i\n@INCLUDE j\n@INCLUDE k\n"));
    for (size_t i = 0; i < n; i++)
        mk_buf_add(out, mk_str_of(comment, sizeof comment));
    return 0;
}

static void conf_include_total_size_is_limited(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    w.io.read = read_much;
    assert_int_equal(mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("m"), &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "m:3:10: error: `large` has more than 16777216 bytes\n"
               "h:0:0: error: the files of the configuration have more than 134217728 bytes\n");
    assert_int_equal(w.n_reads, 10);
    conf_fixture_fini(&w);
}

static mk_err fail_glob(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    (void)ctx, (void)pattern, (void)found, (void)data;
    return -EACCES;
}

static void conf_include_pattern_error_is_reported(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    w.io.glob = fail_glob;
    assert_int_equal(conf_fixture_read_text(&w, "@INCLUDE sites/*\n"), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "t.conf:1:10: error: `sites/*` cannot be expanded: Permission denied\n");
    conf_fixture_fini(&w);
    conf_fixture_init(&w, NULL, NULL);
    w.io.glob = NULL;
    w.io.env = NULL;
    assert_int_equal(conf_fixture_read_text(&w, "@INCLUDE sites/*\n[A]\n k ${X:-v}\n"), 0);
    assert_str(conf_fixture_tree(&w), "[A] k=v");
    conf_fixture_fini(&w);
}

static void conf_read_unknown_directives_are_reported(void **state)
{
    (void)state;
    conf_fixture_expect(
        NULL, NULL, "@INCLDE x\n@SET_VAR a b\n@FOO\n@\n", "",
        "t.conf:1:1: error: unknown directive `@INCLDE`: expected @INCLUDE or @SET (did you mean "
        "`@INCLUDE`?)\n"
        "t.conf:2:1: error: unknown directive `@SET_VAR`: expected @INCLUDE or @SET\n"
        "t.conf:3:1: error: unknown directive `@FOO`: expected @INCLUDE or @SET\n"
        "t.conf:4:1: error: unknown directive `@`: expected @INCLUDE or @SET\n");
}

static void conf_read_finds_every_mistake_at_once(void **state)
{
    (void)state;
    const struct conf_file files[] = {{"m.conf", "Key 1\n[A\n    k ${X}\n  l 1\n@INCLUDE b\n@FOO\n"},
                                      {"b", "[B]\n\tk ${Y}\n    l 2\n"},
                                      {NULL, NULL}};
    struct conf_fixture w;
    conf_fixture_init(&w, files, NULL);
    assert_int_equal(mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("m.conf"), &w.report), -EINVAL);
    assert_int_equal(w.report.n_errors, 7);
    conf_fixture_fini(&w);
}

static void conf_read_copies_its_text(void **state)
{
    (void)state;
    struct conf_fixture w;
    char text[] = "[A]\n k v\n", name[] = "n.conf";
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(
        mk_conf_read_text(&w.tree, &w.arena, &w.io, mk_str_from_c(name), mk_str_from_c(text), &w.report), 0);
    memset(text, 'x', sizeof text);
    memset(name, 'x', sizeof name);
    assert_str(conf_fixture_tree(&w), "[A] k=v");
    assert_str(w.tree.first->at.file, "n.conf");
    conf_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_include_path_is_relative_to_the_file),
        cmocka_unit_test(conf_include_pattern_is_sorted),
        cmocka_unit_test(conf_include_expands_variables),
        cmocka_unit_test(conf_include_missing_file_is_an_error),
        cmocka_unit_test(conf_include_ends_the_section),
        cmocka_unit_test(conf_include_cycle_is_reported_with_its_path),
        cmocka_unit_test(conf_include_depth_and_count_are_limited),
        cmocka_unit_test(conf_include_total_size_is_limited),
        cmocka_unit_test(conf_include_pattern_error_is_reported),
        cmocka_unit_test(conf_read_unknown_directives_are_reported),
        cmocka_unit_test(conf_read_finds_every_mistake_at_once),
        cmocka_unit_test(conf_read_copies_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
