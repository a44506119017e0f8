/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder f;

static int start(void **state)
{
    (void)state;
    folder_init(&f);
    folder_add_folder(&f, "read");
    folder_add_folder(&f, "other");
    folder_add_folder(&f, "spool");
    folder_add(&f, "read/file", MK_STR("x"));
    folder_add(&f, "other/file", MK_STR("x"));
    folder_add(&f, "single", MK_STR("x"));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    folder_fini(&f);
    return 0;
}

static int allow(struct mk_sandbox *box, const char *name)
{
    char room[PATH_MAX];
    return mk_sandbox_allow(box, folder_path(&f, name, room));
}

/* 0 or the error. */
static int try_open(const char *name, int flags)
{
    char room[PATH_MAX];
    int fd = open(folder_path(&f, name, room), flags | O_CLOEXEC, 0600);
    int e = fd < 0 ? errno : 0;
    mk_fd_close(&fd);
    return e;
}

/* In the child: the number of the first line that does not hold, 0 when all do. */
static int live_in_sandbox(void)
{
    struct mk_sandbox box;
    if (mk_sandbox_no_new_privs() || mk_sandbox_open(&box))
        return __LINE__ % 256;
    if (allow(&box, "read") || allow(&box, "single") || allow(&box, "nothing"))
        return __LINE__ % 256;
    char room[PATH_MAX];
    if (mk_sandbox_allow_writing(&box, folder_path(&f, "spool", room)))
        return __LINE__ % 256;
    if (mk_sandbox_close(&box) || box.fd != -1)
        return __LINE__ % 256;
    if (try_open("spool", O_TMPFILE | O_RDWR) || try_open("spool/new", O_RDWR | O_CREAT) != EACCES)
        return __LINE__ % 256;
    if (try_open("other", O_TMPFILE | O_RDWR) != EACCES || try_open("read", O_TMPFILE | O_RDWR) != EACCES)
        return __LINE__ % 256;
    if (try_open("read/file", O_RDONLY) || try_open("single", O_RDONLY))
        return __LINE__ % 256;
    if (try_open("read/file", O_WRONLY) != EACCES || try_open("read/new", O_WRONLY | O_CREAT) != EACCES)
        return __LINE__ % 256;
    if (try_open("single", O_WRONLY) != EACCES || try_open("other/file", O_RDONLY) != EACCES)
        return __LINE__ % 256;
    return try_open("read/../other/file", O_RDONLY) == EACCES ? 0 : __LINE__ % 256;
}

/* In the child, as a user that is not root, with the right to listen on port 80. */
static int drop_all_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {{.effective = 1 << CAP_NET_BIND_SERVICE,
                                              .permitted = 1 << CAP_NET_BIND_SERVICE,
                                              .inheritable = 1 << CAP_NET_BIND_SERVICE}};
    if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setresuid(65534, 65534, 65534) < 0 ||
        syscall(SYS_capset, &head, caps) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) < 0)
        return __LINE__ % 256;
    if (mk_sandbox_no_new_privs() || syscall(SYS_capget, &head, caps) < 0)
        return __LINE__ % 256;
    if (caps[0].effective || caps[0].permitted || caps[0].inheritable)
        return __LINE__ % 256;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_BIND_SERVICE, 0, 0) == 0 ? 0 : __LINE__ % 256;
}

static void capabilities_are_dropped(void **state)
{
    (void)state;
    int status = 0;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0)
        _exit(drop_all_capabilities());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void only_what_was_allowed_can_be_opened(void **state)
{
    (void)state;
    struct mk_sandbox probe;
    int status = 0;
    mk_err e = mk_sandbox_open(&probe);
    mk_fd_close(&probe.fd);
    if (e)
        skip(); /* no Landlock here */
    pid_t child = fork();
    if (child == 0)
        _exit(live_in_sandbox());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_landlock_nothing_is_done(void **state)
{
    (void)state;
    struct mk_sandbox box = {.fd = -1};
    assert_int_equal(allow(&box, "nothing"), 0);
    assert_int_equal(mk_sandbox_close(&box), 0);
    assert_int_equal(try_open("other/file", O_RDONLY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_what_was_allowed_can_be_opened, start, stop),
        cmocka_unit_test(capabilities_are_dropped),
        cmocka_unit_test_setup_teardown(without_landlock_nothing_is_done, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
