/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/poller.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "os/fd.h"
#include "pace/now.h"

/* Some C libraries have no wrapper for epoll_pwait2. */
#ifdef SYS_epoll_pwait2
enum { EPOLL_PWAIT2 = SYS_epoll_pwait2 };
#else
enum { EPOLL_PWAIT2 = 441 };
#endif

/* The kernel's layout, independent of the size of time_t. */
struct kernel_timespec {
    int64_t seconds, nanoseconds;
};

static int epoll_wait_ns(struct pace_poller *w, uint64_t ns)
{
    struct kernel_timespec timeout = {(int64_t)(ns / PACE_SECOND), (int64_t)(ns % PACE_SECOND)};
    return (int)syscall(EPOLL_PWAIT2, w->epoll_fd, w->events, PACE_POLLER_EVENTS, &timeout, NULL, 0);
}

static mk_err open_timer(struct pace_poller *w)
{
    w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return w->timer_fd < 0 ? mk_err_last() : pace_poller_add(w, w->timer_fd, w);
}

mk_err pace_poller_init(struct pace_poller *w, bool spins, bool timer)
{
    w->timer_fd = -1;
    w->spins = spins;
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0)
        return mk_err_last();
    /* The default timer slack lets the kernel wake pace up to 50 us late. */
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    return timer || (epoll_wait_ns(w, 0) < 0 && errno != EINTR) ? open_timer(w) : 0;
}

void pace_poller_fini(struct pace_poller *w)
{
    mk_fd_close(&w->timer_fd);
    mk_fd_close(&w->epoll_fd);
}

mk_err pace_poller_add(struct pace_poller *w, int fd, void *owner)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = owner};
    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? mk_err_last() : 0;
}

/* Callers read the clock themselves, so timer events are dropped. */
static size_t remove_timer_event(struct pace_poller *w, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (w->events[i].data.ptr != w)
            w->events[kept++] = w->events[i];
    return kept;
}

static int wait_until_timer(struct pace_poller *w, uint64_t until)
{
    bool never = until == PACE_NEVER;
    struct itimerspec at = {.it_value = {(time_t)(until / PACE_SECOND), (long)(until % PACE_SECOND)}};
    if (never)
        at = (struct itimerspec){0};
    (void)timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    return epoll_wait(w->epoll_fd, w->events, PACE_POLLER_EVENTS, -1);
}

size_t pace_poller_wait(struct pace_poller *w, uint64_t now, uint64_t until)
{
    int n;
    if (w->spins || until <= now)
        n = epoll_wait(w->epoll_fd, w->events, PACE_POLLER_EVENTS, 0);
    else if (w->timer_fd >= 0)
        n = wait_until_timer(w, until);
    else
        n = epoll_wait_ns(w, until == PACE_NEVER ? PACE_SECOND : until - now);
    if (n < 0)
        return 0;
    return w->timer_fd >= 0 ? remove_timer_event(w, (size_t)n) : (size_t)n;
}
