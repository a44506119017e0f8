/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations are read, bound and printed while memory runs out. */
#include "unit/oom.h"

#include "conf/check.h"
#include "conf/path.h"
#include "conf/print.h"
#include "conf/reference.h"
#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

static const struct conf_file files[] = {
    {"m.conf",
     "@SET A one two\n[SERVER]\n DocumentRoot \"a \\\"b\\\" \\\\\"\n Title ${A}\n"
     " ServerName a b c \"d \\\"e\" ${A}\n Host f g h i j k l m n o p q r s t u v w x y z\n Port 1\n"
     "@INCLUDE sites/*\n@INCLUDE b\n"},
    {"sites/a", "[ROUTES]\n /a b\n /c d\n"},
    {"sites/b", "[ROUTES]\n /e f\n"},
    {"b", "@SET B ${A}${A}\n[ROUTES]\n /e ${B}${B}${B}${B}\n"},
    {NULL, NULL},
};
static const struct conf_file bad_files[] = {
    {"m.conf", "[SERVER]\n DocumentRoot ${X}\n Timeut 3\n Timeout 3d\n FDT\n[SERVR]\n@INCLUDE "
               "m.conf\n@INCLUDE x\n k v\n"},
    {NULL, NULL},
};
static const struct mk_conf_table *const tables[] = {&sample_table, &route_table};

/* Size of the first allocation in the arena. The test varies it, so that each later allocation is at some
 * point the first one of a new block. */
static size_t padding;

static bool print_all(const struct sample *server, const struct sample *routes, struct conf_fixture *w)
{
    struct mk_buf out = mk_buf_growing(1 << 20);
    mk_conf_print_section(&sample_table, server, &out);
    mk_conf_print_section(&route_table, routes, &out);
    mk_conf_reference_print(&sample_table, &out);
    mk_conf_report_print(&w->report, &out);
    bool ok = !out.failed;
    mk_buf_free(&out);
    return ok;
}

static bool use_all(const struct conf_file *all, mk_err expected)
{
    struct conf_fixture w;
    struct sample server = {0}, routes = {0};
    conf_fixture_init(&w, all, NULL);
    bool ok = !padding || mk_arena_alloc(&w.arena, padding);
    mk_err err[4];
    err[0] = mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("m.conf"), &w.report);
    err[1] = mk_conf_check_sections(&w.tree, tables, MK_LEN(tables), &w.report);
    err[2] = mk_conf_bind(&sample_table, mk_conf_tree_find(&w.tree, MK_STR("SERVER")), &server, &w.arena,
                          &w.report);
    err[3] = mk_conf_bind(&route_table, mk_conf_tree_find(&w.tree, MK_STR("ROUTES")), &routes, &w.arena,
                          &w.report);
    ok = mk_conf_report_result(&w.report) == expected && ok;
    for (size_t i = 0; i < MK_LEN(err); i++) {
        assert_true(err[i] == 0 || err[i] == -ENOMEM || err[i] == -EINVAL);
        ok = ok && err[i] != -ENOMEM;
    }
    ok = print_all(&server, &routes, &w) && ok;
    conf_fixture_fini(&w);
    return ok;
}

static bool use_good(void)
{
    return use_all(files, 0);
}

static bool use_bad(void)
{
    return use_all(bad_files, -EINVAL);
}

static void conf_oom_valid_configuration(void **state)
{
    (void)state;
    for (padding = 0; padding < MK_ARENA_BLOCK; padding += 32)
        oom_at_each_allocation(use_good);
}

static void conf_oom_invalid_configuration(void **state)
{
    (void)state;
    for (padding = 0; padding < MK_ARENA_BLOCK; padding += 32)
        oom_at_each_allocation(use_bad);
}

/* Makes the arena take every allocation from the heap, so that each one can fail. */
static bool use_small_pieces(void)
{
    struct mk_arena a;
    struct mk_conf_words words = {NULL, 0};
    mk_str bad, text;
    mk_arena_init(&a, NULL);
    bool ok = mk_conf_words_append(&a, MK_STR("a \"b \\\\ c\" d"), &words, &bad) == 0 && words.n == 3;
    mk_arena_fini(&a);
    ok = mk_conf_words_unquote(&a, MK_STR("\"a\\\\\""), &text) == 0 && ok;
    mk_arena_fini(&a);
    ok = mk_conf_path_resolve(&a, MK_STR("a/b"), MK_STR("c")).p && ok;
    mk_arena_fini(&a);
    return ok;
}

static void conf_oom_single_functions(void **state)
{
    (void)state;
    oom_at_each_allocation(use_small_pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_oom_valid_configuration),
        cmocka_unit_test(conf_oom_invalid_configuration),
        cmocka_unit_test(conf_oom_single_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
