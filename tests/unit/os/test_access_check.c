/* SPDX-License-Identifier: Apache-2.0 */
#include "os/access_check.h"

#include <stdio.h>
#include <sys/stat.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct mk_identity unrelated_user(void)
{
    return (struct mk_identity){.user = "nobody", .uid = 65533, .gid = 65533};
}

static void access_check_follows_modes(void **state)
{
    (void)state;
    struct folder f;
    struct mk_identity id = unrelated_user();
    char path[512];
    folder_init(&f);
    folder_add_folder(&f, "a");
    folder_add(&f, "a/b", MK_STR("x"));
    size_t root = (size_t)snprintf(path, sizeof path, "%s", f.path);
    snprintf(path, sizeof path, "%s/a/b", f.path);
    assert_int_equal(chmod(f.path, 0755), 0);
    assert_int_equal(fchmodat(f.fd, "a", 0755, 0), 0);
    assert_int_equal(fchmodat(f.fd, "a/b", 0644, 0), 0);
    assert_int_equal(mk_access_check_find_denied(&id, path, root), 0);
    assert_int_equal(fchmodat(f.fd, "a/b", 0640, 0), 0);
    assert_int_equal(mk_access_check_find_denied(&id, path, root), root + 4);
    id.uid = getuid();
    assert_int_equal(mk_access_check_find_denied(&id, path, root), 0);
    id = unrelated_user();
    id.gid = getgid();
    assert_int_equal(mk_access_check_find_denied(&id, path, root), 0);
    id = unrelated_user();
    assert_int_equal(fchmodat(f.fd, "a", 0754, 0), 0);
    assert_int_equal(mk_access_check_find_denied(&id, path, root), root + 2);
    assert_int_equal(chmod(f.path, 0700), 0);
    assert_int_equal(mk_access_check_find_denied(&id, path, root), root);
    id.uid = 0;
    assert_int_equal(mk_access_check_find_denied(&id, path, root), 0);
    folder_fini(&f);
}

static void access_check_ignores_missing_path(void **state)
{
    (void)state;
    struct mk_identity id = unrelated_user();
    assert_int_equal(mk_access_check_find_denied(&id, "/no/such/file", 3), 0);
}

static void access_check_of_writing_follows_modes(void **state)
{
    (void)state;
    struct folder f;
    struct mk_identity id = unrelated_user();
    folder_init(&f);
    assert_int_equal(chmod(f.path, 0757), 0);
    assert_true(mk_access_check_may_write(&id, f.path));
    assert_int_equal(chmod(f.path, 0755), 0);
    assert_false(mk_access_check_may_write(&id, f.path));
    assert_int_equal(chmod(f.path, 0756), 0); /* without search permission */
    assert_false(mk_access_check_may_write(&id, f.path));
    id.uid = 0;
    assert_true(mk_access_check_may_write(&id, f.path));
    assert_true(mk_access_check_may_write(&id, "/no/such/folder"));
    folder_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(access_check_follows_modes),
        cmocka_unit_test(access_check_ignores_missing_path),
        cmocka_unit_test(access_check_of_writing_follows_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
