/* SPDX-License-Identifier: Apache-2.0 */
#include "os/identity.h"

#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "unit/child.h"
#include "unit/folder.h"

static void identity_finds_users(void **state)
{
    (void)state;
    struct mk_identity id;
    char longest[200];
    assert_int_equal(mk_identity_find("root", NULL, &id), 0);
    assert_int_equal(id.uid, 0);
    assert_int_equal(id.gid, 0);
    assert_string_equal(id.user, "root");
    assert_int_equal(mk_identity_find("root", "", &id), 0);
    assert_int_equal(id.gid, 0);
    assert_int_equal(mk_identity_find("root", "daemon", &id), 0);
    assert_int_equal(id.uid, 0);
    assert_int_equal(id.gid, 1);
    assert_int_equal(mk_identity_find("no-such-user", NULL, &id), -ENOENT);
    assert_int_equal(mk_identity_find("root", "no-such-group", &id), -ENOENT);
    memset(longest, 'u', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(mk_identity_find(longest, NULL, &id), -ENOENT);
}

static int become_daemon_user(void)
{
    struct mk_identity id;
    gid_t groups[64];
    if (mk_identity_find("daemon", NULL, &id) || mk_identity_become(&id))
        return 1;
    if (getuid() != id.uid || geteuid() != id.uid || getgid() != id.gid || getegid() != id.gid)
        return 2;
    int n = getgroups(MK_LEN(groups), groups);
    for (int i = 0; i < n; i++)
        if (groups[i] == 0)
            return 3; /* still in root's group */
    if (setuid(0) == 0 || seteuid(0) == 0)
        return 4;
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : 5;
}

static int become_daemon_user_hidden(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    return become_daemon_user() == 5 && prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1;
}

static int become_root_again(void)
{
    struct mk_identity root;
    if (mk_identity_find("root", NULL, &root) || become_daemon_user())
        return 1;
    return mk_identity_become(&root) == -EPERM ? 0 : 2;
}

static void identity_change_is_permanent(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(run_in_child(become_daemon_user), 0);
    assert_int_equal(run_in_child(become_root_again), 0);
}

static void identity_change_keeps_memory_hidden(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(run_in_child(become_daemon_user_hidden), 0);
}

/* ---- Borrowed rights ---- */

static struct folder f;
static char secret_path[PATH_MAX], own_path[PATH_MAX];

static void setup(void)
{
    folder_setup(&f);
    folder_add(&f, "secret", MK_STR("of root\n"));
    folder_add(&f, "own", MK_STR("of daemon\n"));
    folder_path(&f, "secret", secret_path);
    folder_path(&f, "own", own_path);
}

static bool opens(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0;
    mk_fd_close(&fd);
    return ok;
}

static int borrow_and_return(void)
{
    struct mk_identity daemon;
    struct mk_identity_saved own;
    gid_t before[64], after[64];
    int n = getgroups(MK_LEN(before), before);
    if (mk_identity_find("daemon", NULL, &daemon) || mk_identity_impersonate(&daemon, &own))
        return 1;
    if (opens(secret_path) || !opens(own_path))
        return 2;
    if (getuid() != 0 || geteuid() != 0)
        return 3; /* only the file access rights may change */
    if (getgroups(MK_LEN(after), after) != daemon.n_groups || after[0] != daemon.groups[0])
        return 4;
    mk_identity_revert(&own);
    if (!opens(secret_path) || opens(own_path) != opens(secret_path))
        return 5;
    if (getgroups(MK_LEN(after), after) != n || memcmp(before, after, (size_t)n * sizeof *before))
        return 6;
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : 7;
}

static int borrow_what_may_not_be(void)
{
    struct mk_identity daemon, odd;
    struct mk_identity_saved own;
    gid_t before[64], after[64];
    int n = getgroups(MK_LEN(before), before);
    if (mk_identity_find("daemon", NULL, &daemon))
        return 1;
    odd = daemon;
    odd.uid = (uid_t)-1; /* the kernel ignores this ID */
    if (mk_identity_impersonate(&odd, &own) != -EPERM)
        return 2;
    if (!opens(secret_path) || getgroups(MK_LEN(after), after) != n ||
        memcmp(before, after, (size_t)n * sizeof *before))
        return 3;
    if (mk_identity_become(&daemon))
        return 4;
    return mk_identity_impersonate(&daemon, &own) == -EPERM ? 0 : 5;
}

static void identity_file_rights_are_borrowed_and_returned(void **state)
{
    (void)state;
    struct mk_identity daemon;
    if (geteuid() != 0)
        skip();
    assert_int_equal(mk_identity_find("daemon", NULL, &daemon), 0);
    assert_int_equal(chown(own_path, daemon.uid, daemon.gid), 0);
    assert_int_equal(chmod(own_path, 0600), 0);
    assert_int_equal(chmod(secret_path, 0600), 0);
    assert_int_equal(chmod(f.path, 0711), 0);
    assert_int_equal(run_in_child(borrow_and_return), 0);
}

static void identity_failed_borrowing_changes_nothing(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(secret_path, 0600), 0);
    assert_int_equal(run_in_child(borrow_what_may_not_be), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_finds_users),
        cmocka_unit_test(identity_change_is_permanent),
        cmocka_unit_test(identity_change_keeps_memory_hidden),
        fixture_test(identity_file_rights_are_borrowed_and_returned, setup),
        fixture_test(identity_failed_borrowing_changes_nothing, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
