/* SPDX-License-Identifier: Apache-2.0 */
/* The timers of a loop (monkey/timer.h), in a timer wheel. Nearly all timers are postponed before they fire,
 * so postponing a timer is cheap: it only records the new time, and when the old slot is due, the timer moves
 * to a later slot.
 *
 * Times are milliseconds modulo 2^32, compared by difference: a timer may be set at most 24 days ahead. A
 * timer fires at its time or up to MK_TIMER_TICK_MS after it, never before; later only if more than
 * MK_TIMER_WHEEL_AT_ONCE timers are due in one iteration. */
#ifndef MK_EVENT_TIMER_WHEEL_H
#define MK_EVENT_TIMER_WHEEL_H

#include <monkey/timer.h>

#include "base/compiler.h"

enum {
    MK_TIMER_TICK_MS = 32,
    MK_TIMER_SLOTS = 512,
    /* Timers fired per iteration. A million timers that are due at once must not delay events. */
    MK_TIMER_WHEEL_AT_ONCE = 256
};

struct mk_timer_wheel {
    uint64_t used[MK_TIMER_SLOTS / 64]; /* bitmap of slots that may contain timers */
    struct mk_timer_link late;          /* timers of slots that are due */
    uint32_t now;                       /* all timers up to this time have fired or are late */
    uint32_t next;                      /* time of the first used slot, if `has_next` */
    bool has_next;
    struct mk_timer_link slots[MK_TIMER_SLOTS]; /* initialized when first used */
};

void mk_timer_wheel_init(struct mk_timer_wheel *w, uint64_t now_ms);
/* Fires due timers: at most MK_TIMER_WHEEL_AT_ONCE now, the others in the next iterations. Handlers may set
 * and stop any timer. */
void mk_timer_wheel_advance(struct mk_timer_wheel *w, uint64_t now_ms);
/* Returns how long the loop may sleep: the milliseconds until the next used slot; 0 while timers are late; -1
 * if there are no timers. */
int mk_timer_wheel_wait(const struct mk_timer_wheel *w, uint64_t now_ms);

/* Inserts the timer into the slot after its time, or into the farthest slot of the wheel. */
void mk_timer_wheel_insert(struct mk_timer_wheel *w, struct mk_timer *t);

/* Sets the timer to fire `after_ms` after `now_ms`, and replaces an earlier setting. False: its current slot
 * is due before that, so only the time was recorded. */
static inline bool mk_timer_wheel_set(struct mk_timer_wheel *w, struct mk_timer *t, uint64_t now_ms,
                                      uint32_t after_ms)
{
    t->due_ms = (uint32_t)now_ms + after_ms;
    if (mk_timer_is_set(t) && (int32_t)(t->due_ms - t->slot_ms) >= 0)
        return false;
    mk_timer_wheel_insert(w, t);
    return true;
}

#endif
