/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <monkey/str.h>

#include "unit/folder.h"
#include "unit/test.h"

static void paths_private_dir_requires_owner_and_mode(void **state)
{
    struct folder f;
    char path[PATH_MAX];
    (void)state;
    folder_init(&f);
    assert_true(dev_paths_make_private_dir(folder_path(&f, "new", path)));
    assert_true(dev_paths_make_private_dir(path)); /* the folder may exist already */
    assert_int_equal(chmod(path, 0777), 0);
    assert_false(dev_paths_make_private_dir(path));
    assert_int_equal(chmod(path, 0700), 0);
    folder_add_link(&f, "link", "new");
    assert_false(dev_paths_make_private_dir(folder_path(&f, "link", path)));
    folder_add(&f, "file", MK_STR(""));
    assert_false(dev_paths_make_private_dir(folder_path(&f, "file", path)));
    if (geteuid() == 0) {
        assert_int_equal(fchownat(f.fd, "new", 1, 1, 0), 0);
        assert_false(dev_paths_make_private_dir(folder_path(&f, "new", path)));
    }
    folder_fini(&f);
}

static void paths_format_rejects_too_long_or_empty(void **state)
{
    char path[PATH_MAX];
    (void)state;
    assert_true(dev_paths_format(path, "%s/%s", "/a", "b"));
    assert_string_equal(path, "/a/b");
    assert_false(dev_paths_format(path, "%*s", PATH_MAX, ""));
    assert_true(dev_paths_format(path, "%*s", PATH_MAX - 1, ""));
    assert_false(dev_paths_format(path, "%s", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_private_dir_requires_owner_and_mode),
        cmocka_unit_test(paths_format_rejects_too_long_or_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
