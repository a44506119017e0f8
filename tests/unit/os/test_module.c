/* SPDX-License-Identifier: Apache-2.0 */
#include "os/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/module_path.h"
#include "unit/test.h"

struct table {
    unsigned abi;
};

static const struct table good = {.abi = 7};

static void module_built_in_is_used(void **state)
{
    (void)state;
    char why[MK_MODULE_ERROR_MAX] = "";
    struct mk_module m = {.name = "none", .symbol = "s", .needs = "it", .abi = 7, .built_in = &good};
    assert_ptr_equal(mk_module_load(&m, why), &good);
    m.abi = 8;
    assert_null(mk_module_load(&m, why));
    assert_contains(mk_str_from_c(why), "the built-in module was built for another version of Monkey");
}

static void module_missing_is_reported(void **state)
{
    (void)state;
    char why[MK_MODULE_ERROR_MAX] = "";
    struct mk_module m = {.name = "no-such-module", .symbol = "s", .needs = "LibX", .abi = 7};
    assert_null(mk_module_load(&m, why));
    assert_contains(mk_str_from_c(why), "monkey-no-such-module.so is not in /");
    assert_contains(mk_str_from_c(why), "built without LibX, or this module is not installed");
}

static void module_malformed_file_is_reported(void **state)
{
    (void)state;
    char folder[] = "/tmp/monkey-XXXXXX", path[64], why[MK_MODULE_ERROR_MAX] = "";
    struct mk_module m = {.name = "unit-broken", .symbol = "s", .needs = "LibX", .abi = 7};
    assert_non_null(mkdtemp(folder));
    assert_true(mk_module_path_set_folder(folder));
    (void)snprintf(path, sizeof path, "%s/monkey-unit-broken.so", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("no object at all", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_null(mk_module_load(&m, why));
    assert_contains(mk_str_from_c(why), "monkey-unit-broken.so: ");
    assert_int_equal(unlink(path), 0);
    assert_null(mk_module_load(&m, why)); /* the loader searches no other folder */
    (void)snprintf(path, sizeof path, "monkey-unit-broken.so is not in %s: ", folder);
    assert_contains(mk_str_from_c(why), path);
    assert_true(mk_module_path_set_folder(NULL));
    assert_int_equal(rmdir(folder), 0);
}

/* A folder `plugins` next to the program is used only if it contains the marker of a build. */
static void module_path_plugins_folder_needs_build_mark(void **state)
{
    (void)state;
    char folder[PATH_MAX], mark[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof folder - 1);
    assert_true(len > 0);
    folder[len] = '\0';
    (void)snprintf(strrchr(folder, '/'), sizeof "/plugins", "/plugins");
    (void)snprintf(mark, sizeof mark, "%.*s/" MK_MODULE_PATH_BUILD_MARK, PATH_MAX - 16, folder);
    assert_true(mkdir(folder, 0755) == 0 || errno == EEXIST);
    char path[PATH_MAX];
    assert_false(mk_module_path_folder(0, path));
    FILE *f = fopen(mark, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_true(mk_module_path_folder(0, path));
    assert_string_equal(path, folder);
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void module_path_folder_must_be_a_path(void **state)
{
    (void)state;
    char path[PATH_MAX + 1];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_false(mk_module_path_set_folder(path));
    assert_false(mk_module_path_set_folder(""));
    assert_true(mk_module_path_set_folder(NULL));
}

static void module_path_folders_are_listed(void **state)
{
    (void)state;
    char buffer[3 * PATH_MAX], folder[PATH_MAX];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    mk_module_path_list_folders(&text);
    for (unsigned i = 0; i < MK_MODULE_PATH_FOLDERS; i++)
        if (mk_module_path_folder(i, folder))
            assert_contains(mk_buf_str(&text), folder);
    /* without the marker of a build, there are at most two folders */
    assert_int_equal(mk_str_find(mk_buf_str(&text), ','), MK_STR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(module_built_in_is_used),
                                       cmocka_unit_test(module_missing_is_reported),
                                       cmocka_unit_test(module_malformed_file_is_reported),
                                       cmocka_unit_test(module_path_folders_are_listed),
                                       cmocka_unit_test(module_path_plugins_folder_needs_build_mark),
                                       cmocka_unit_test(module_path_folder_must_be_a_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
