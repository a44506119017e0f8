/* SPDX-License-Identifier: Apache-2.0 */
/* Timers embedded in the struct of their owner. They need no allocation, so setting one cannot fail. */
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
 * A timer of a worker. Embed it in your struct, and find the struct with MK_CONTAINER():
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
 * Stop a timer before you free, reuse or move its memory, and in worker_stop at the latest. Only the worker's
 * own thread may set and stop it. A zeroed timer counts as not set, so you may stop it.
 *
 * A timer never fires early, and usually fires at most 32 ms late. A worker fires at most 256 timers per loop
 * iteration, and the rest in the next iterations. Postponing a timer that is already set is as cheap as
 * storing a number.
 */
struct mk_timer {
    struct mk_timer_link link;              /**< private, like all members */
    void (*on_due)(struct mk_timer *timer); /**< set by mk_timer_init() */
    uint32_t due_ms, slot_ms;
};

/** Initializes a timer without setting it. When the worker's event loop calls on_due(), the timer is no
 * longer set, so on_due() may set the timer again or free its memory. */
static inline void mk_timer_init(struct mk_timer *timer, void (*on_due)(struct mk_timer *timer))
{
    timer->link.next = MK_API_NULL;
    timer->on_due = on_due;
}

/** Schedules one call to on_due() after `delay_ms` milliseconds (at most 20 days), replacing an earlier
 * schedule. */
MK_API void mk_timer_set(struct mk_timer *timer, struct mk_worker *worker, uint32_t delay_ms);
/** Cancels the timer. No effect if it is not set. */
MK_API void mk_timer_stop(struct mk_timer *timer);
/** Is the timer set? */
static inline bool mk_timer_is_set(const struct mk_timer *timer)
{
    return timer->link.next != MK_API_NULL;
}

#ifdef __cplusplus
}
#endif

#endif
