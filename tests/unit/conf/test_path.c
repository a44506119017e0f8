/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/path.h"

#include "unit/conf/fixture.h"

static void join(const char *from, const char *path, const char *expected)
{
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    assert_str(mk_conf_path_resolve(&a, mk_str_from_c(from), mk_str_from_c(path)), expected);
    mk_arena_fini(&a);
}

static void conf_path_is_joined_and_normalized(void **state)
{
    (void)state;
    join("m.conf", "a", "a");
    join("", "a", "a");
    join("conf/m.conf", "a", "conf/a");
    join("/etc/m.conf", "a/b", "/etc/a/b");
    join("/m.conf", "a", "/a");
    join("/etc/m.conf", "/a", "/a");
    join("./conf//x/./m.conf", "./a//b", "conf/x/a/b");
    join("conf/m.conf", "../a", "conf/../a");
    join("conf/m.conf", "a/", "conf/a");
    join("/", "", "/");
    join("", "", "");
    join("//etc//m", ".hidden", "/etc/.hidden");
}

static void conf_path_with_wildcards_is_a_pattern(void **state)
{
    (void)state;
    assert_true(mk_conf_path_is_pattern(MK_STR("a/*")));
    assert_true(mk_conf_path_is_pattern(MK_STR("a?")));
    assert_true(mk_conf_path_is_pattern(MK_STR("[ab]")));
    assert_false(mk_conf_path_is_pattern(MK_STR("a/b.conf~")));
}

static void conf_path_glob_skips_hidden_and_backup_files(void **state)
{
    (void)state;
    const struct conf_file files[] = {{"a/.x", ""}, {"a/y~", ""}, {"a/b", ""}, {"a/a", ""}, {NULL, NULL}};
    struct conf_fixture w;
    struct mk_conf_path_list list;
    conf_fixture_init(&w, files, NULL);
    assert_int_equal(mk_conf_path_glob(&w.arena, &w.io, MK_STR("a/*"), &list), 0);
    assert_int_equal(list.n, 2);
    assert_str(list.v[0], "a/a");
    assert_str(list.v[1], "a/b");
    assert_int_equal(mk_conf_path_glob(&w.arena, &w.io, MK_STR("a/.*"), &list), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(mk_conf_path_glob(&w.arena, &w.io, MK_STR("a/*~"), &list), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(mk_conf_path_glob(&w.arena, &w.io, MK_STR("b/*"), &list), 0);
    assert_int_equal(list.n, 0);
    conf_fixture_fini(&w);
}

static mk_err find_endless(void *ctx, mk_str pattern, bool (*found)(void *data, mk_str path), void *data)
{
    size_t *n = ctx;
    (void)pattern;
    while (found(data, MK_STR("x")))
        ++*n;
    return 0;
}

static void conf_path_glob_is_limited(void **state)
{
    (void)state;
    struct mk_arena a;
    struct mk_conf_path_list list;
    size_t n = 0;
    const struct mk_conf_io io = {.glob = find_endless, .ctx = &n};
    mk_arena_init(&a, NULL);
    assert_int_equal(mk_conf_path_glob(&a, &io, MK_STR("*"), &list), 0);
    assert_int_equal(list.n, MK_CONF_FILES_MAX + 1);
    assert_int_equal(n, MK_CONF_FILES_MAX);
    mk_arena_fini(&a);
}

static void conf_path_is_resolved_in_a_folder(void **state)
{
    (void)state;
    struct mk_arena a;
    mk_arena_init(&a, NULL);
    assert_str(mk_conf_path_resolve_in(&a, MK_STR("/etc/monkey"), MK_STR("sites")), "/etc/monkey/sites");
    assert_str(mk_conf_path_resolve_in(&a, MK_STR("/etc/monkey/"), MK_STR("./a//b")), "/etc/monkey/a/b");
    assert_str(mk_conf_path_resolve_in(&a, MK_STR("/etc/monkey"), MK_STR("/var/log/x")), "/var/log/x");
    assert_str(mk_conf_path_resolve_in(&a, MK_STR(""), MK_STR("x")), "x");
    mk_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_path_is_resolved_in_a_folder),
        cmocka_unit_test(conf_path_is_joined_and_normalized),
        cmocka_unit_test(conf_path_with_wildcards_is_a_pattern),
        cmocka_unit_test(conf_path_glob_skips_hidden_and_backup_files),
        cmocka_unit_test(conf_path_glob_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
