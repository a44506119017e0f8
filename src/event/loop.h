/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's event loop: epoll, timers, deferred tasks, and an eventfd that any thread can signal. */
#ifndef MK_EVENT_LOOP_H
#define MK_EVENT_LOOP_H

#include <monkey/worker.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "event/timer_wheel.h"

/* Watches a descriptor for events. The owner keeps the watch in memory until the end of the iteration in
 * which it was removed: an event of the same iteration may still be pending (see mk_loop_defer()). */
struct mk_fd_watch {
    void (*on_ready)(struct mk_fd_watch *w, uint32_t events); /* NULL: the watch belongs to a mk_watcher */
};

/* A call deferred until all events of this iteration have been handled. If the call defers another call in
 * the same way, that one runs in the next iteration. */
struct mk_loop_task {
    struct mk_loop_task *next;
    void (*run)(struct mk_loop_task *t);
};

enum { MK_LOOP_BATCH = 256 };

struct mk_loop {
    int epoll_fd;
    int wakeup_fd;
    struct mk_fd_watch bell;
    void (*on_wakeup)(struct mk_loop *loop); /* called in the loop's thread after a wakeup; may be NULL */
    uint64_t now_ms;                         /* read once per iteration */
    int64_t now_unix;
    unsigned clock_resolution_ms; /* the clock may lag by this much */
    struct mk_loop_task *tasks;
    struct mk_loop_task *ends; /* run after `tasks` in each iteration */
    struct mk_loop_task *last; /* run after `ends` */
    uint64_t *pulse; /* even while the loop waits, odd while it works; may be shared memory. NULL: unused */
    bool stopped;
    /* Called after each iteration with its duration: other events had to wait that long. NULL: not
     * measured. */
    void (*on_busy)(struct mk_loop *loop, uint64_t duration_us);
    /* Members for a loop that is embedded in another loop (loop_embed.h): */
    bool rests; /* between two iterations: deferring a task wakes the outer loop */
    int alarm_fd;
    struct mk_fd_watch alarm;
    uint64_t alarm_ms; /* time for which the timerfd is set; 0: not set */
    struct mk_timer_wheel wheel;
};

mk_err mk_loop_init(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_fini(struct mk_loop *loop);

/* Adds a descriptor. `events`: EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLET and so on, as for epoll_ctl(2). */
mk_err mk_loop_add(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events) MK_MUST_USE;
/* Changes the events for the same descriptor and watch. */
mk_err mk_loop_modify(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events) MK_MUST_USE;
/* Removes a descriptor that stays open; closing a descriptor removes it as well. */
void mk_loop_remove(struct mk_loop *loop, int fd);

void mk_loop_defer(struct mk_loop *loop, struct mk_loop_task *t);
/* Like mk_loop_defer(), but runs the call after all calls of mk_loop_defer() in this iteration. */
void mk_loop_defer_to_end(struct mk_loop *loop, struct mk_loop_task *t);
/* Runs the call after all calls deferred by the two functions above, to send the output gathered in an
 * iteration. */
void mk_loop_defer_last(struct mk_loop *loop, struct mk_loop_task *t);
/* Call it only after the last iteration: runs all deferred tasks, including tasks that they defer. */
void mk_loop_run_tasks(struct mk_loop *loop);

/* Runs one iteration: waits at most max_wait_ms (-1: no limit) for events or the next timer, and handles
 * them. */
mk_err mk_loop_run_once(struct mk_loop *loop, int max_wait_ms) MK_MUST_USE;
/* Runs until mk_loop_stop(). */
mk_err mk_loop_run(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_stop(struct mk_loop *loop);
/* Returns how long the next iteration may wait, in milliseconds; -1: no limit. */
int mk_loop_timeout_ms(const struct mk_loop *loop);

/* Updates the pulse for work outside of iterations. `works`: true when work begins, false when it has
 * ended. */
void mk_loop_heartbeat(struct mk_loop *loop, bool works);

/* Wakes the loop. Any thread or signal handler may call it. */
void mk_loop_wakeup(struct mk_loop *loop);

/* Like mk_watcher_new() and mk_deferred_new(), but on the given loop. */
struct mk_watcher *mk_loop_new_watcher(struct mk_loop *loop, int fd, unsigned events,
                                       void (*on_ready)(void *ctx, unsigned which), void *ctx) MK_MUST_USE;
struct mk_deferred *mk_loop_new_deferred(struct mk_loop *loop, void (*on_end)(void *ctx),
                                         void *ctx) MK_MUST_USE;

/* Sets the timer to fire `ms` after the time of this iteration, and replaces an earlier setting. */
static inline void mk_loop_set_timer(struct mk_loop *loop, struct mk_timer *t, uint32_t ms)
{
    bool is_sooner = mk_timer_wheel_set(&loop->wheel, t, loop->now_ms, ms);
    if (is_sooner && MK_UNLIKELY(loop->rests)) /* the outer loop must be notified */
        mk_loop_wakeup(loop);
}

#endif
