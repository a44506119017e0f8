/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void mk_fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

mk_err mk_fd_set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? mk_err_last() : 0;
}

mk_err mk_fd_set_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? mk_err_last() : 0;
}

void mk_fd_close_from(int first)
{
    struct rlimit r = {.rlim_cur = 1024};
    if (syscall(SYS_close_range, (unsigned)first, UINT_MAX, 0) == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &r); /* fails on old kernels */
    for (int fd = first; (rlim_t)fd < r.rlim_cur && fd < INT_MAX; fd++)
        (void)close(fd);
}

mk_err mk_fd_set_cloexec(int fd, bool on)
{
    return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? mk_err_last() : 0;
}

mk_err mk_fd_limit(uint64_t wanted, uint64_t *limit)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return mk_err_last();
    mk_err e = 0;
    if (wanted) {
        struct rlimit want = {.rlim_cur = wanted, .rlim_max = wanted > r.rlim_max ? wanted : r.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &want) == 0)
            r = want;
        else
            e = mk_err_last();
    }
    *limit = r.rlim_cur;
    return e;
}

unsigned mk_fd_count(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0); /* the lowest free descriptor */
    if (fd < 0)
        return 0;
    close(fd);
    return (unsigned)fd;
}

mk_err mk_fd_write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mk_err_last();
        p += n;
        len -= (size_t)n;
    }
    return 0;
}
