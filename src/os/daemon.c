/* SPDX-License-Identifier: Apache-2.0 */
#include "os/daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

static _Noreturn void wait_child_ready(int fd)
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
    return 0; /* keeps the working directory: after HUP and USR2, relative paths are resolved again */
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
        wait_child_ready(ends[0]);
    }
    close(ends[0]);
    *ready_fd = ends[1];
    return leave_terminal();
}

int mk_daemon_open_null(void)
{
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

bool mk_daemon_keeps(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void mk_daemon_redirect_to_null(int fd, int null)
{
    if (fd >= 0 && null >= 0 && !mk_daemon_keeps(fd))
        (void)dup3(null, fd, fd > STDERR_FILENO ? O_CLOEXEC : 0);
}

void mk_daemon_notify_parent(int *ready_fd, int exit_code)
{
    if (*ready_fd < 0)
        return;
    unsigned char code = (unsigned char)exit_code;
    (void)!write(*ready_fd, &code, 1);
    mk_fd_close(ready_fd);
    int null = mk_daemon_open_null();
    mk_daemon_redirect_to_null(STDOUT_FILENO, null);
    mk_daemon_redirect_to_null(STDERR_FILENO, null);
    mk_fd_close(&null);
}
