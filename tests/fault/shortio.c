/* SPDX-License-Identifier: Apache-2.0 */
/* Makes sockets and pipes in workers transfer few bytes at a time, and interrupts system calls, as a kernel
 * may do. Like a kernel, the library reports readiness afterwards, with a new edge for edge-triggered
 * watchers. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault/fault.h"

enum {
    CHANCE,      /* disturbed calls per thousand */
    MOST,        /* maximum number of bytes that a disturbed call transfers; it may also fail instead */
    STATE,       /* state of the random number generator */
    SHORT,       /* counters: calls that transferred less than requested, */
    AGAIN,       /* calls that returned EAGAIN, */
    INTERRUPTED, /* and EINTR */
};

enum { FDS_MAX = 4096 };

static struct {
    int epoll_fd; /* 0: not watched */
    struct epoll_event event;
} watched[FDS_MAX];

static uint64_t roll(void)
{
    uint64_t x = (uint64_t)atomic_load(&fault[STATE]) * 6364136223846793005u + 1442695040888963407u;
    atomic_store(&fault[STATE], (int64_t)x);
    return x >> 33;
}

static bool is_disturbed(void)
{
    return fault && in_worker && (int64_t)(roll() % 1000) < atomic_load(&fault[CHANCE]);
}

/* Whether this is a non-blocking pipe: writers to a blocking pipe expect complete writes. */
static bool is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* Whether this is a stream socket: messages cannot be split. */
static bool is_stream(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

/* Re-arms the watcher, so that epoll reports the current readiness again. */
static void rearm_watcher(int fd)
{
    if (fd >= 0 && fd < FDS_MAX && watched[fd].epoll_fd)
        syscall(SYS_epoll_ctl, watched[fd].epoll_fd, EPOLL_CTL_MOD, fd, &watched[fd].event);
}

/* Returns the number of bytes that a disturbed call transfers, or an error. */
static ssize_t disturb(size_t len)
{
    uint64_t kind = roll() % 4, most = (uint64_t)atomic_load(&fault[MOST]);
    if (kind == 0) {
        atomic_fetch_add(&fault[AGAIN], 1);
        return -EAGAIN;
    }
    if (kind == 1) {
        atomic_fetch_add(&fault[INTERRUPTED], 1);
        return -EINTR;
    }
    uint64_t n = 1 + roll() % (most ? most : 1);
    if (n < len)
        atomic_fetch_add(&fault[SHORT], 1);
    return n < len ? (ssize_t)n : (ssize_t)len;
}

static ssize_t fail(ssize_t error)
{
    errno = (int)-error;
    return -1;
}

int epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
    long r = syscall(SYS_epoll_ctl, epoll_fd, what, fd, event);
    if (r == 0 && fd >= 0 && fd < FDS_MAX) {
        bool has_edges = event && event->events & EPOLLET;
        watched[fd].epoll_fd = what != EPOLL_CTL_DEL && has_edges ? epoll_fd : 0;
        if (has_edges)
            watched[fd].event = *event;
    }
    return (int)r;
}

int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout)
{
    if (is_disturbed() && roll() % 2) {
        atomic_fetch_add(&fault[INTERRUPTED], 1);
        return (int)fail(-EINTR);
    }
    return (int)syscall(SYS_epoll_pwait, epoll_fd, events, max, timeout, NULL, 8);
}

int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict len, int flags)
{
    if (is_disturbed())
        return (int)fail(roll() % 2 ? -EINTR : -ECONNABORTED);
    int got = (int)syscall(SYS_accept4, fd, from, len, flags);
    if (got >= 0 && got < FDS_MAX)
        watched[got].epoll_fd = 0;
    if (got >= 0 && fault && in_worker && atomic_load(&fault[CHANCE])) {
        int small_size = 1; /* the smallest possible size */
        setsockopt(got, SOL_SOCKET, SO_SNDBUF, &small_size, sizeof small_size);
    }
    return got;
}

ssize_t recv(int fd, void *buffer, size_t len, int flags)
{
    bool disturbed = is_disturbed() && is_stream(fd);
    ssize_t n = disturbed ? disturb(len) : (ssize_t)len;
    n = n < 0 ? fail(n) : syscall(SYS_recvfrom, fd, buffer, (size_t)n, flags, NULL, NULL);
    if (disturbed) {
        int error = errno;
        rearm_watcher(fd);
        errno = error;
    }
    return n;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    bool disturbed = is_disturbed() && is_stream(fd);
    ssize_t n = disturbed ? disturb(len) : (ssize_t)len;
    n = n < 0 ? fail(n) : syscall(SYS_sendto, fd, bytes, (size_t)n, flags, NULL, 0);
    if (disturbed) {
        int error = errno;
        rearm_watcher(fd);
        errno = error;
    }
    return n;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t len)
{
    bool disturbed = is_disturbed();
    ssize_t n = disturbed ? disturb(len) : (ssize_t)len;
    n = n < 0 ? fail(n) : syscall(SYS_sendfile, to, from, offset, (size_t)n);
    if (disturbed) {
        int error = errno;
        rearm_watcher(to);
        errno = error;
    }
    return n;
}

/* Disturbs reads from pipes; sockets use recv(). Files and eventfds transfer everything or nothing. */
ssize_t read(int fd, void *buffer, size_t len)
{
    bool disturbed = is_disturbed() && is_pipe(fd);
    ssize_t n = disturbed ? disturb(len) : (ssize_t)len;
    n = n < 0 ? fail(n) : syscall(SYS_read, fd, buffer, (size_t)n);
    if (disturbed) {
        int error = errno;
        rearm_watcher(fd);
        errno = error;
    }
    return n;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    bool disturbed = is_disturbed() && is_pipe(fd);
    ssize_t n = disturbed ? disturb(len) : (ssize_t)len;
    n = n < 0 ? fail(n) : syscall(SYS_write, fd, bytes, (size_t)n);
    if (disturbed) {
        int error = errno;
        rearm_watcher(fd);
        errno = error;
    }
    return n;
}
