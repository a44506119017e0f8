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
    /* Kernels before 5.9 have no close_range(2). */
    (void)getrlimit(RLIMIT_NOFILE, &r);
    for (int fd = first; (rlim_t)fd < r.rlim_cur && fd < INT_MAX; fd++)
        (void)close(fd);
}

mk_err mk_fd_set_cloexec(int fd, bool on)
{
    return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? mk_err_last() : 0;
}

static rlim_t before_raise; /* the soft limit before it was raised; 0: it was not raised */

void mk_fd_raise_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    rlim_t old = r.rlim_cur, most = r.rlim_max < MK_FD_MAX ? r.rlim_max : MK_FD_MAX;
    r.rlim_cur = most;
    if (old < most && setrlimit(RLIMIT_NOFILE, &r) == 0 && !before_raise)
        before_raise = old;
}

void mk_fd_restore_limit(void)
{
    struct rlimit r;
    if (!before_raise || getrlimit(RLIMIT_NOFILE, &r) < 0)
        return;
    r.rlim_cur = before_raise < r.rlim_max ? before_raise : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r); /* a lower limit is always allowed */
}

mk_err mk_fd_set_limit(uint64_t expected, uint64_t *limit)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return mk_err_last();
    mk_err e = 0;
    if (expected) {
        struct rlimit want = {.rlim_cur = expected,
                              .rlim_max = expected > r.rlim_max ? expected : r.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &want) == 0)
            r = want;
        else
            e = mk_err_last();
    }
    *limit = r.rlim_cur;
    return e;
}

/* A new descriptor gets the lowest free number, so open descriptors rarely follow a long gap. (poll() could
 * check many at once, but reports O_PATH descriptors as closed, and the sandbox has no /proc.) */
unsigned mk_fd_count_open(void)
{
    enum { GAP = 4096 };
    struct rlimit r = {.rlim_cur = GAP};
    unsigned n = 0, gap = 0;
    (void)getrlimit(RLIMIT_NOFILE, &r);
    int most = r.rlim_cur < MK_FD_MAX ? (int)r.rlim_cur : MK_FD_MAX;
    for (int fd = 0; fd < most && gap < GAP; fd++) {
        bool is_open = fcntl(fd, F_GETFD) >= 0;
        n += is_open;
        gap = is_open ? 0 : gap + 1;
    }
    return n;
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
