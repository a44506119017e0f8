/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of connections: cheap to push back, which is what happens to nearly all of them.
 *
 * A wheel of slots. A timer that is set later than it already hangs on the wheel only notes its new time;
 * when its slot comes round it is hung again. Times are milliseconds modulo 2^32, compared by difference: a
 * timer may be set at most 24 days ahead. It fires at its time or up to MK_TIMER_TICK_MS after it, never
 * before. */
#ifndef MK_NET_TIMER_H
#define MK_NET_TIMER_H

#include "base/list.h"

enum { MK_TIMER_TICK_MS = 32, MK_TIMER_SLOTS = 512 };

struct mk_timer {
    struct mk_list link;
    void (*on_due)(struct mk_timer *t);
    uint32_t due;     /* when it is to fire */
    uint32_t hung_at; /* the time of the slot it hangs in */
};

struct mk_wheel {
    struct mk_list slots[MK_TIMER_SLOTS];
    uint64_t used[MK_TIMER_SLOTS / 64]; /* a bit for each slot that may hold something */
    uint32_t now;                       /* the time up to which all has fired */
};

void mk_wheel_init(struct mk_wheel *w, uint64_t now_ms);
/* Fires everything that is due; handlers may set and stop any timer. */
void mk_wheel_turn(struct mk_wheel *w, uint64_t now_ms);
/* How long a loop may sleep: milliseconds until the next slot in use, -1 when there is none. */
int mk_wheel_wait(const struct mk_wheel *w, uint64_t now_ms);

static inline void mk_timer_init(struct mk_timer *t, void (*on_due)(struct mk_timer *t))
{
    mk_list_init(&t->link);
    t->on_due = on_due;
}

void mk_timer_hang(struct mk_wheel *w, struct mk_timer *t);

/* Fires `after_ms` from `now_ms`. Setting it again replaces the old time. */
static inline void mk_timer_set(struct mk_wheel *w, struct mk_timer *t, uint64_t now_ms, uint32_t after_ms)
{
    t->due = (uint32_t)now_ms + after_ms;
    if (mk_list_empty(&t->link) || (int32_t)(t->due - t->hung_at) < 0)
        mk_timer_hang(w, t);
}

static inline void mk_timer_stop(struct mk_timer *t)
{
    mk_list_remove(&t->link);
}

#endif
