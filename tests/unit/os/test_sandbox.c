/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/child.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder f;

static void setup(void)
{
    folder_setup(&f);
    folder_add_folder(&f, "read");
    folder_add_folder(&f, "other");
    folder_add_folder(&f, "spool");
    folder_add(&f, "read/file", MK_STR("x"));
    folder_add(&f, "other/file", MK_STR("x"));
    folder_add(&f, "single", MK_STR("x"));
}

static int allow(struct mk_sandbox *box, const char *name)
{
    char buffer[PATH_MAX];
    return mk_sandbox_allow(box, folder_path(&f, name, buffer));
}

/* Tries to open the file. Returns 0 or an errno value. */
static int try_open(const char *name, int flags)
{
    char buffer[PATH_MAX];
    int fd = open(folder_path(&f, name, buffer), flags | O_CLOEXEC, 0600);
    int e = fd < 0 ? errno : 0;
    mk_fd_close(&fd);
    return e;
}

/* Runs in the child. Returns the number of the first failed line, or 0. */
static int live_in_sandbox(void)
{
    struct mk_sandbox box;
    if (mk_sandbox_drop_privileges() || mk_sandbox_open(&box))
        return __LINE__ % 256;
    if (allow(&box, "read") || allow(&box, "single") || allow(&box, "nothing"))
        return __LINE__ % 256;
    char buffer[PATH_MAX];
    if (mk_sandbox_allow_spooling(&box, folder_path(&f, "spool", buffer)))
        return __LINE__ % 256;
    if (mk_sandbox_enforce(&box) || box.fd != -1)
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

static int try_rename(const char *from, const char *to)
{
    char sizes[2][PATH_MAX];
    return rename(folder_path(&f, from, sizes[0]), folder_path(&f, to, sizes[1])) < 0 ? errno : 0;
}

static int try_remove(const char *name)
{
    char buffer[PATH_MAX];
    return remove(folder_path(&f, name, buffer)) < 0 ? errno : 0;
}

static int try_mkdir(const char *name)
{
    char buffer[PATH_MAX];
    return mkdir(folder_path(&f, name, buffer), 0700) < 0 ? errno : 0;
}

/* Runs in the child. */
static int write_in_sandbox(void)
{
    struct mk_sandbox box;
    char buffer[PATH_MAX];
    if (mk_sandbox_drop_privileges() || mk_sandbox_open(&box) || allow(&box, "other"))
        return __LINE__ % 256;
    if (mk_sandbox_allow_writing(&box, folder_path(&f, "spool", buffer)) ||
        mk_sandbox_allow_writing(&box, folder_path(&f, "nothing", buffer)) != -ENOENT ||
        mk_sandbox_allow_writing(&box, folder_path(&f, "single", buffer)) != -ENOTDIR)
        return __LINE__ % 256;
    bool refers = box.abi >= 2;
    if (mk_sandbox_enforce(&box))
        return __LINE__ % 256;
    if (try_open("spool/new", O_RDWR | O_CREAT) || try_mkdir("spool/dir") || try_open("spool/dir", O_RDONLY))
        return __LINE__ % 256;
    if (try_open("spool/new", O_RDWR | O_TRUNC) || try_rename("spool/new", "spool/named"))
        return __LINE__ % 256;
    if (refers && try_rename("spool/named", "spool/dir/named"))
        return __LINE__ % 256;
    if (refers && try_rename("spool/dir/named", "spool/named"))
        return __LINE__ % 256;
    if (try_remove("spool/named") || try_remove("spool/dir"))
        return __LINE__ % 256;
    if (try_open("beside", O_RDWR | O_CREAT) != EACCES || try_open("other/new", O_RDWR | O_CREAT) != EACCES)
        return __LINE__ % 256;
    if (try_mkdir("dir") != EACCES || try_open("other/file", O_WRONLY) != EACCES)
        return __LINE__ % 256;
    int e = try_rename("other/file", "spool/file");
    return (e == EACCES || e == EXDEV) && try_remove("other/file") == EACCES ? 0 : __LINE__ % 256;
}

/* Runs in the child: reads the files of the DNS resolver (`names`) or those of the trust store. */
static int read_in_sandbox(bool names)
{
    struct mk_sandbox box;
    if (mk_sandbox_drop_privileges() || mk_sandbox_open(&box))
        return __LINE__ % 256;
    if (names ? mk_sandbox_allow_resolver(&box) : mk_sandbox_allow_trust_store(&box))
        return __LINE__ % 256;
    if (mk_sandbox_enforce(&box))
        return __LINE__ % 256;
    int hosts = open("/etc/hosts", O_RDONLY), certs = open("/etc/ssl/certs", O_RDONLY);
    if (access("/etc/hosts", F_OK) == 0 && (hosts >= 0) != names)
        return __LINE__ % 256;
    if (access("/etc/ssl/certs", F_OK) == 0 && (certs >= 0) == names)
        return __LINE__ % 256;
    if (open("/etc/passwd", O_RDONLY) >= 0 || open("/etc", O_RDONLY) >= 0)
        return __LINE__ % 256;
    return open("/etc/ssl/private", O_RDONLY) < 0 ? 0 : __LINE__ % 256;
}

static int resolve_in_sandbox(void)
{
    return read_in_sandbox(true);
}

static int trust_in_sandbox(void)
{
    return read_in_sandbox(false);
}

/* Runs in the child as a non-root user that may listen on port 80. */
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
    if (mk_sandbox_drop_privileges() || syscall(SYS_capget, &head, caps) < 0)
        return __LINE__ % 256;
    if (caps[0].effective || caps[0].permitted || caps[0].inheritable)
        return __LINE__ % 256;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_BIND_SERVICE, 0, 0) == 0 ? 0 : __LINE__ % 256;
}

static void sandbox_drops_capabilities(void **state)
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

static void run(int (*child)(void))
{
    struct mk_sandbox probe;
    mk_err e = mk_sandbox_open(&probe);
    mk_fd_close(&probe.fd);
    if (e)
        skip(); /* no Landlock here */
    assert_int_equal(run_in_child(child), 0);
}

static void sandbox_allows_only_listed_paths(void **state)
{
    (void)state;
    run(live_in_sandbox);
}

static void sandbox_allows_writing_below_listed_folders(void **state)
{
    (void)state;
    run(write_in_sandbox);
}

static void sandbox_allows_files_of_libraries(void **state)
{
    (void)state;
    run(resolve_in_sandbox);
    run(trust_in_sandbox);
}

static void sandbox_without_landlock_does_nothing(void **state)
{
    (void)state;
    struct mk_sandbox box = {.fd = -1};
    assert_int_equal(allow(&box, "nothing"), 0);
    assert_int_equal(mk_sandbox_allow_writing(&box, "nothing"), 0);
    assert_int_equal(mk_sandbox_allow_resolver(&box), 0);
    assert_int_equal(mk_sandbox_allow_trust_store(&box), 0);
    assert_int_equal(mk_sandbox_enforce(&box), 0);
    assert_int_equal(try_open("other/file", O_RDONLY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(sandbox_allows_only_listed_paths, setup),
        fixture_test(sandbox_allows_writing_below_listed_folders, setup),
        fixture_test(sandbox_allows_files_of_libraries, setup),
        cmocka_unit_test(sandbox_drops_capabilities),
        fixture_test(sandbox_without_landlock_does_nothing, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
