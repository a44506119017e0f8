/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop_embed.h"

#include <sys/timerfd.h>

static void on_timerfd(struct mk_fd_watch *w, uint32_t events)
{
    (void)events;
    MK_CONTAINER(w, struct mk_loop, alarm)->alarm_ms = 0;
}

/* The timerfd is watched in edge-triggered mode and therefore need not be read. */
mk_err mk_loop_embed_start(struct mk_loop *loop)
{
    loop->alarm.on_ready = on_timerfd;
    loop->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    mk_err e = loop->alarm_fd < 0 ? mk_err_last()
                                  : mk_loop_add(loop, loop->alarm_fd, &loop->alarm, EPOLLIN | EPOLLET);
    if (e)
        return e;
    mk_loop_wakeup(loop); /* timers and tasks may be set already */
    loop->rests = true;
    return 0;
}

/* Sets the timerfd, which may fire early, after a timer was postponed, but never late. */
static mk_err set_timerfd(struct mk_loop *loop, unsigned wait_ms)
{
    uint64_t due = loop->now_ms + wait_ms;
    struct itimerspec t = {.it_value = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L}};
    if (loop->alarm_ms > loop->now_ms && loop->alarm_ms <= due)
        return 0;
    if (timerfd_settime(loop->alarm_fd, 0, &t, NULL) < 0)
        return mk_err_last();
    loop->alarm_ms = due;
    return 0;
}

mk_err mk_loop_embed_step(struct mk_loop *loop)
{
    loop->rests = false;
    mk_err e = mk_loop_run_once(loop, 0);
    mk_loop_heartbeat(loop, false);
    loop->rests = true;
    int wait_ms = mk_loop_timeout_ms(loop);
    if (wait_ms == 0)
        mk_loop_wakeup(loop);
    else if (wait_ms > 0 && !e)
        e = set_timerfd(loop, (unsigned)wait_ms);
    return e;
}
