/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's event loop: epoll, timers, work put off to the end of the turn, and a bell that any thread may
 * ring. */
#ifndef MK_NET_LOOP_H
#define MK_NET_LOOP_H

#include <sys/epoll.h>

#include "base/err.h"
#include "net/timer.h"

/* Something that waits for its descriptor. Its owner keeps it in place until a turn ends after it was
 * removed: an event of the same turn may still be on its way to it (see mk_loop_defer). */
struct mk_watch {
    void (*on_ready)(struct mk_watch *w, uint32_t events);
};

/* A call put off until all events of this turn are handed out; from inside of such a call, of the next turn.
 */
struct mk_task {
    struct mk_task *next;
    void (*run)(struct mk_task *t);
};

enum { MK_LOOP_BATCH = 256 };

struct mk_loop {
    int epoll_fd;
    int bell_fd;
    struct mk_watch bell;
    void (*on_bell)(struct mk_loop *loop); /* in the loop's thread, after mk_loop_ring; may be NULL */
    uint64_t now_ms;                       /* read once a turn */
    int64_t now_unix;
    unsigned clock_step_ms; /* so much the clock may be behind */
    struct mk_task *tasks;
    struct mk_wheel wheel;
    bool stopped;
};

mk_err mk_loop_init(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_fini(struct mk_loop *loop);

/* EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLET... as for epoll_ctl. */
mk_err mk_loop_add(struct mk_loop *loop, int fd, struct mk_watch *w, uint32_t events) MK_MUST_USE;
/* Other events for the same descriptor and watch. */
mk_err mk_loop_change(struct mk_loop *loop, int fd, struct mk_watch *w, uint32_t events) MK_MUST_USE;
/* Only for a descriptor that stays open; closing one removes it. */
void mk_loop_remove(struct mk_loop *loop, int fd);

void mk_loop_defer(struct mk_loop *loop, struct mk_task *t);
/* Runs them all now; only after the last turn. */
void mk_loop_run_tasks(struct mk_loop *loop);

/* One turn: waits at most max_wait_ms (-1: as long as it takes) for events or the next timer, and serves
 * them. */
mk_err mk_loop_turn(struct mk_loop *loop, int max_wait_ms) MK_MUST_USE;
/* Turns until mk_loop_stop. */
mk_err mk_loop_run(struct mk_loop *loop) MK_MUST_USE;
void mk_loop_stop(struct mk_loop *loop);

/* Wakes the loop; from any thread and from signal handlers. */
void mk_loop_ring(struct mk_loop *loop);

#endif
