/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "os/fd.h"

unsigned mk_proc_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

mk_err mk_identity_find(const char *user, const char *group, struct mk_identity *out)
{
    const struct passwd *pw = getpwnam(user);
    if (!pw || strlen(user) >= sizeof out->user)
        return -ENOENT;
    snprintf(out->user, sizeof out->user, "%s", user);
    out->uid = pw->pw_uid;
    out->gid = pw->pw_gid;
    if (!group || !*group)
        return 0;
    const struct group *gr = getgrnam(group);
    if (!gr)
        return -ENOENT;
    out->gid = gr->gr_gid;
    return 0;
}

/* Were anything left of root, one of these would succeed. */
static mk_err check_no_way_back(const struct mk_identity *id)
{
    uid_t r, e, s;
    gid_t gr, ge, gs;
    if (getresuid(&r, &e, &s) < 0 || getresgid(&gr, &ge, &gs) < 0)
        return mk_err_last();
    bool ours =
        r == id->uid && e == id->uid && s == id->uid && gr == id->gid && ge == id->gid && gs == id->gid;
    if (!ours || (id->uid != 0 && setuid(0) == 0))
        return -EPERM;
    return 0;
}

mk_err mk_identity_become(const struct mk_identity *id)
{
    if (initgroups(id->user, id->gid) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
        setresuid(id->uid, id->uid, id->uid) < 0)
        return mk_err_last();
    /* Changing ids forbids core dumps and debuggers; whether there are any is for the owner to say, not for
     * us. */
    (void)prctl(PR_SET_DUMPABLE, 1);
    return check_no_way_back(id);
}

void mk_proc_hide(void)
{
#ifndef __SANITIZE_ADDRESS__
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

static _Noreturn void wait_until_ready(int fd)
{
    unsigned char code = 1;
    ssize_t n;
    do
        n = read(fd, &code, 1);
    while (n < 0 && errno == EINTR);
    _exit(n == 1 ? code : 1);
}

static mk_err leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return mk_err_last();
    if (setsid() < 0 || dup2(null, STDIN_FILENO) < 0) {
        mk_err e = mk_err_last();
        mk_fd_close(&null);
        return e;
    }
    mk_fd_close(&null);
    umask(022);
    return 0; /* where we stand stays: relative paths are looked up again on HUP and USR2 */
}

mk_err mk_daemon_start(int *ready_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return mk_err_last();
    pid_t pid = fork();
    if (pid < 0)
        return mk_err_last();
    if (pid > 0) {
        close(ends[1]);
        wait_until_ready(ends[0]);
    }
    close(ends[0]);
    *ready_fd = ends[1];
    return leave_terminal();
}

int mk_daemon_open_null(void)
{
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

void mk_daemon_silence(int fd, int null)
{
    struct stat st;
    bool to_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (fd >= 0 && null >= 0 && !to_file)
        (void)dup3(null, fd, fd > STDERR_FILENO ? O_CLOEXEC : 0);
}

void mk_daemon_ready(int *ready_fd, int exit_code)
{
    if (*ready_fd < 0)
        return;
    unsigned char code = (unsigned char)exit_code;
    (void)!write(*ready_fd, &code, 1);
    mk_fd_close(ready_fd);
    int null = mk_daemon_open_null();
    mk_daemon_silence(STDOUT_FILENO, null);
    mk_daemon_silence(STDERR_FILENO, null);
    mk_fd_close(&null);
}

static bool is_file_at(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

/* -EAGAIN: whoever held the file removed it before we had the lock, which now is on a file without a name. */
static mk_err open_and_lock(const char *path, int *out)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return mk_err_last();
    /* This kind of lock is ours alone: workers that outlive us do not keep it. */
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    mk_err e = fcntl(fd, F_SETLK, &all) < 0 ? -EBUSY : is_file_at(fd, path) ? 0 : -EAGAIN;
    if (e)
        mk_fd_close(&fd);
    *out = fd;
    return e;
}

mk_err mk_pidfile_take(const char *path, int *out)
{
    mk_err e = -EAGAIN;
    for (int tries = 0; e == -EAGAIN && tries < 10; tries++)
        e = open_and_lock(path, out);
    if (e)
        return e;
    char digits[MK_NUM_MAX + 1];
    size_t len = mk_num_write(digits, (uint64_t)getpid());
    digits[len++] = '\n';
    e = ftruncate(*out, 0) < 0 ? mk_err_last() : mk_fd_write_all(*out, digits, len);
    if (e)
        mk_fd_close(out);
    return e;
}

void mk_pidfile_drop(const char *path, int *fd)
{
    char digits[MK_NUM_MAX + 2];
    ssize_t n = *fd < 0 ? -1 : pread(*fd, digits, sizeof digits, 0);
    uint64_t pid;
    if (n > 1 && mk_num_parse(mk_str_of(digits, (size_t)n - 1), &pid) && pid == (uint64_t)getpid())
        unlink(path);
    mk_fd_close(fd);
}

void mk_proc_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

mk_err mk_proc_die_with_parent(pid_t parent, int signal)
{
    if (prctl(PR_SET_PDEATHSIG, signal) < 0)
        return mk_err_last();
    return getppid() == parent ? 0 : -ESRCH;
}
