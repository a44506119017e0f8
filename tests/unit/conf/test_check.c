/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/check.h"

#include "unit/conf/fixture.h"
#include "unit/conf/sample.h"

static const struct mk_conf_table *const tables[] = {&sample_table, &route_table};

static void conf_check_unknown_and_repeated_sections_are_reported(void **state)
{
    (void)state;
    const struct conf_file files[] = {
        {"m.conf", "[SERVER]\n[ROUTES]\n[SEVER]\n[routes]\n[server]\n[X]\n@INCLUDE b\n"},
        {"b", "[Server]\n"},
        {NULL, NULL}};
    struct conf_fixture w;
    conf_fixture_init(&w, files, NULL);
    assert_int_equal(mk_conf_read_file(&w.tree, &w.arena, &w.io, MK_STR("m.conf"), &w.report), 0);
    assert_int_equal(mk_conf_check_sections(&w.tree, tables, MK_LEN(tables), &w.report), -EINVAL);
    assert_str(conf_fixture_problems(&w),
               "m.conf:3:1: error: unknown section [SEVER] (did you mean [SERVER]?)\n"
               "m.conf:5:1: error: [server] is already defined on line 1\n"
               "m.conf:6:1: error: unknown section [X]\n"
               "b:1:1: error: [Server] is already defined in m.conf:1\n");
    conf_fixture_fini(&w);
}

static void conf_check_known_sections_pass(void **state)
{
    (void)state;
    struct conf_fixture w;
    conf_fixture_init(&w, NULL, NULL);
    assert_int_equal(conf_fixture_read_text(&w, "[ROUTES]\n[Server]\n[ROUTES]\n"), 0);
    assert_int_equal(mk_conf_check_sections(&w.tree, tables, MK_LEN(tables), &w.report), 0);
    w.tree = (struct mk_conf_tree){0};
    assert_int_equal(mk_conf_check_sections(&w.tree, NULL, 0, &w.report), 0);
    conf_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_check_unknown_and_repeated_sections_are_reported),
        cmocka_unit_test(conf_check_known_sections_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
