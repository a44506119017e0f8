/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fd.h"

/* Rights of later ABIs, which the build machine's headers may lack. */
enum {
    ACCESS_REFER = 1 << 13,    /* ABI 2 */
    ACCESS_TRUNCATE = 1 << 14, /* ABI 3 */
};

enum {
    READ_RIGHTS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    ALL_RIGHTS = (1 << 13) - 1, /* all rights of ABI 1 */
};

/* The master may have got some without being root, to listen on a port below 1024. */
static mk_err drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    return geteuid() != 0 && syscall(SYS_capset, &head, none) < 0 ? mk_err_last() : 0;
}

mk_err mk_sandbox_no_new_privs(void)
{
    mk_err e = drop_capabilities();
    return !e && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? mk_err_last() : e;
}

static uint64_t handled(int abi)
{
    uint64_t rights = ALL_RIGHTS;
    if (abi >= 2)
        rights |= ACCESS_REFER;
    if (abi >= 3)
        rights |= ACCESS_TRUNCATE;
    return rights;
}

mk_err mk_sandbox_open(struct mk_sandbox *s)
{
    s->fd = -1;
    s->abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (s->abi < 1)
        return -EOPNOTSUPP;
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled(s->abi)};
    s->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    return s->fd < 0 ? mk_err_last() : 0;
}

static mk_err add_rule(struct mk_sandbox *s, int fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.parent_fd = fd, .allowed_access = rights};
    long r = syscall(SYS_landlock_add_rule, s->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    return r < 0 ? mk_err_last() : 0;
}

mk_err mk_sandbox_allow_fd(struct mk_sandbox *s, int fd)
{
    struct stat st;
    if (s->fd < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return mk_err_last();
    return add_rule(s, fd, S_ISDIR(st.st_mode) ? READ_RIGHTS : LANDLOCK_ACCESS_FS_READ_FILE);
}

mk_err mk_sandbox_allow(struct mk_sandbox *s, const char *path)
{
    if (s->fd < 0)
        return 0;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : mk_err_last();
    mk_err e = mk_sandbox_allow_fd(s, fd);
    close(fd);
    return e;
}

mk_err mk_sandbox_allow_writing(struct mk_sandbox *s, const char *folder)
{
    if (s->fd < 0)
        return 0;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mk_err_last();
    mk_err e = add_rule(s, fd, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
    close(fd);
    return e;
}

mk_err mk_sandbox_close(struct mk_sandbox *s)
{
    if (s->fd < 0)
        return 0;
    mk_err e = syscall(SYS_landlock_restrict_self, s->fd, 0) < 0 ? mk_err_last() : 0;
    mk_fd_close(&s->fd);
    return e;
}
