/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's event loop: epoll, timers, deferred tasks, and a bell that any thread can ring. */
#ifndef MK_NET_LOOP_H
#define MK_NET_LOOP_H

#include <sys/epoll.h>

#include "base/err.h"
#include "net/timer_wheel.h"

/* Waits for a descriptor's events. The owner keeps it in memory until the turn in which it was removed
 * ends: an event of the same turn may still be pending (see mk_loop_defer). */
struct mk_fd_watch {
    void (*on_ready)(struct mk_fd_watch *w, uint32_t events);
};

/* A call deferred until all events of this turn are handled; from inside such a call, until the next turn. */
struct mk_loop_task {
    struct mk_loop_task *next;
    void (*run)(struct mk_loop_task *t);
};

enum { MK_LOOP_BATCH = 256 };

struct mk_loop {
    int epoll_fd;
    int wakeup_fd;
    struct mk_fd_watch bell;
    void (*on_wakeup)(struct mk_loop *loop); /* in the loop's thread, after mk_loop_wakeup; may be NULL */
    uint64_t now_ms;                         /* read once a turn */
    int64_t now_unix;
    unsigned clock_step_ms; /* the clock may lag by this much */
    struct mk_loop_task *tasks;
    struct mk_loop_task *ends; /* run behind the tasks of a turn */
    struct mk_loop_task *last; /* run behind these */
    uint64_t *pulse; /* even while the loop waits, odd while it works; may be shared memory. NULL: unused */
    struct mk_timer_wheel wheel;
    bool stopped;
    /* Of a loop that another loop turns (loop_embed.h): */
    bool rests; /* between two turns: what is deferred rings the bell */
    int alarm_fd;
    struct mk_fd_watch alarm;
    uint64_t alarm_ms; /* when it is due; 0: it is not set */
};

mk_err mk_loop_init(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_fini(struct mk_loop *loop);

/* EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLET... as for epoll_ctl. */
mk_err mk_loop_add(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events) MK_MUST_USE;
/* Changes the events for the same descriptor and watch. */
mk_err mk_loop_modify(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events) MK_MUST_USE;
/* Only for a descriptor that stays open; closing one removes it. */
void mk_loop_remove(struct mk_loop *loop, int fd);

void mk_loop_defer(struct mk_loop *loop, struct mk_loop_task *t);
/* As mk_loop_defer, behind all that is deferred in this turn; from inside such a call, in the next turn. */
void mk_loop_defer_to_end(struct mk_loop *loop, struct mk_loop_task *t);
/* Behind all that is deferred by these two: to send what a turn has gathered. */
void mk_loop_defer_last(struct mk_loop *loop, struct mk_loop_task *t);
/* Runs all deferred tasks now; only after the last turn. */
void mk_loop_run_tasks(struct mk_loop *loop);

/* One turn: waits at most max_wait_ms (-1: no limit) for events or the next timer, and handles them. */
mk_err mk_loop_run_once(struct mk_loop *loop, int max_wait_ms) MK_MUST_USE;
/* Turns until mk_loop_stop. */
mk_err mk_loop_run(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_stop(struct mk_loop *loop);
/* How long the next turn may wait, in milliseconds; -1: no limit. */
int mk_loop_timeout_ms(const struct mk_loop *loop);

/* Outside of turns: what follows counts as work, which has just begun, or (false) no more. */
void mk_loop_heartbeat(struct mk_loop *loop, bool works);

/* Wakes the loop; from any thread and from signal handlers. */
void mk_loop_wakeup(struct mk_loop *loop);

/* Fires the timer `ms` after the time of this turn. Replaces a time set before. */
static inline void mk_loop_set_timer(struct mk_loop *loop, struct mk_timer *t, uint32_t ms)
{
    bool is_sooner = mk_timer_wheel_set(&loop->wheel, t, loop->now_ms, ms);
    if (is_sooner && MK_UNLIKELY(loop->rests)) /* the loop around it must learn of this */
        mk_loop_wakeup(loop);
}

#endif
