/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that is a member of its owner's struct: it needs no memory of its own, so setting it cannot fail. */
#ifndef MONKEY_TIMER_H
#define MONKEY_TIMER_H

#include <monkey/api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_worker;

/** A link in a worker's list of timers; private. */
struct mk_timer_link {
    struct mk_timer_link *next, *prev;
};

/**
 * A timer of a worker. Make it a member of your struct, and find the struct with MK_CONTAINER():
 *
 *     struct session {
 *         struct mk_timer idle;
 *         bool is_over;
 *     };
 *
 *     static void on_idle(struct mk_timer *t)
 *     {
 *         struct session *s = MK_CONTAINER(t, struct session, idle);
 *         s->is_over = true;
 *     }
 *
 *     static void touch(struct session *s, struct mk_worker *w)
 *     {
 *         mk_timer_set(&s->idle, w, 30000);
 *     }
 *
 * Stop it before its memory is freed, used for something else or moved, and in worker_stop at the latest. Only the
 * worker's own thread may set and stop it. A timer of zeros is not set, so it may be stopped.
 *
 * It never fires early, and mostly within 32 ms after its time. A worker fires at most 256 timers in one iteration of
 * its loop, the others in the next ones. Setting a timer that is set to a later time is as cheap as storing a number.
 */
struct mk_timer {
    struct mk_timer_link link;          /**< private, as all members are */
    void (*on_due)(struct mk_timer *t); /**< mk_timer_init() sets it */
    uint32_t due_ms, slot_ms;
};

/** Prepares a timer, which is not set. on_due() is called in the worker's loop, when the timer is no longer set: it may
 * set it again, and may free its memory. */
static inline void mk_timer_init(struct mk_timer *t, void (*on_due)(struct mk_timer *t))
{
    t->link.next = MK_API_NULL;
    t->on_due = on_due;
}

/** Calls on_due() once, `ms` from now (20 days if it is more). Setting it again replaces that. */
MK_API void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms);
/** It does not fire any more. Harmless if it is not set. */
MK_API void mk_timer_stop(struct mk_timer *t);
/** Will it fire? */
static inline bool mk_timer_is_set(const struct mk_timer *t)
{
    return t->link.next != MK_API_NULL;
}

#ifdef __cplusplus
}
#endif

#endif
