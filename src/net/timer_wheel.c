/* SPDX-License-Identifier: Apache-2.0 */
#include "net/timer_wheel.h"

static uint32_t slot_of(uint32_t time)
{
    return time / MK_TIMER_TICK_MS % MK_TIMER_SLOTS;
}

static void mark(struct mk_timer_wheel *w, uint32_t slot)
{
    w->used[slot / 64] |= (uint64_t)1 << slot % 64;
}

static void unmark(struct mk_timer_wheel *w, uint32_t slot)
{
    w->used[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

void mk_timer_wheel_init(struct mk_timer_wheel *w, uint64_t now_ms)
{
    *w = (struct mk_timer_wheel){.now = (uint32_t)now_ms};
    for (size_t i = 0; i < MK_TIMER_SLOTS; i++)
        mk_list_init(&w->slots[i]);
    mk_list_init(&w->late);
}

/* Puts the timer into the slot after its time, or into the farthest slot of the wheel. */
void mk_timer_wheel_insert(struct mk_timer_wheel *w, struct mk_timer *t)
{
    enum { REACH_MS = (MK_TIMER_SLOTS - 1) * MK_TIMER_TICK_MS };
    uint32_t ahead = t->due - w->now;
    if ((int32_t)ahead < 0)
        ahead = 0;
    if (ahead > REACH_MS - MK_TIMER_TICK_MS)
        ahead = REACH_MS - MK_TIMER_TICK_MS;
    uint32_t tick = (w->now + ahead) / MK_TIMER_TICK_MS + 1;
    mk_list_remove(&t->link);
    t->hung_at = tick * MK_TIMER_TICK_MS;
    mk_list_add_last(&w->slots[tick % MK_TIMER_SLOTS], &t->link);
    mark(w, tick % MK_TIMER_SLOTS);
    if (!w->waits || t->hung_at - w->now < w->next - w->now)
        w->next = t->hung_at;
    w->waits = true;
}

static void find_next(struct mk_timer_wheel *w)
{
    uint32_t from = slot_of(w->now) + 1;
    w->waits = false;
    for (uint32_t i = 0; i < MK_TIMER_SLOTS && !w->waits;) {
        uint32_t slot = (from + i) % MK_TIMER_SLOTS;
        uint64_t rest = w->used[slot / 64] >> slot % 64;
        if (rest) {
            uint32_t tick = w->now / MK_TIMER_TICK_MS + 1 + i + (uint32_t)__builtin_ctzll(rest);
            w->next = tick * MK_TIMER_TICK_MS;
            w->waits = true;
        }
        i += 64 - slot % 64;
    }
}

static void empty_slot(struct mk_timer_wheel *w, uint32_t slot)
{
    struct mk_list *from = &w->slots[slot], *to = &w->late;
    if (!mk_list_empty(from)) {
        from->next->prev = to->prev;
        to->prev->next = from->next;
        from->prev->next = to;
        to->prev = from->prev;
        mk_list_init(from);
    }
    unmark(w, slot);
}

/* Empties all slots whose time has come. */
static void advance(struct mk_timer_wheel *w, uint32_t now)
{
    uint32_t ticks = now / MK_TIMER_TICK_MS - w->now / MK_TIMER_TICK_MS;
    if (now < w->now) /* the 32-bit time wrapped, but its ticks did not, as 2^32 is a multiple of a tick */
        ticks = (uint32_t)((((uint64_t)1 << 32) + now) / MK_TIMER_TICK_MS - w->now / MK_TIMER_TICK_MS);
    uint32_t first = slot_of(w->now) + 1;
    w->now = now;
    bool emptied = false;
    for (uint32_t i = 0; i < ticks && i < MK_TIMER_SLOTS; i++) {
        uint32_t slot = (first + i) % MK_TIMER_SLOTS;
        if (w->used[slot / 64] >> slot % 64 & 1) {
            empty_slot(w, slot);
            emptied = true;
        }
    }
    if (emptied)
        find_next(w);
}

void mk_timer_wheel_turn(struct mk_timer_wheel *w, uint64_t now_ms)
{
    unsigned left = MK_TIMER_WHEEL_AT_ONCE;
    if ((uint32_t)now_ms != w->now)
        advance(w, (uint32_t)now_ms);
    while (left && !mk_list_empty(&w->late)) {
        struct mk_timer *t = MK_LIST_ENTRY(w->late.next, struct mk_timer, link);
        mk_list_remove(&t->link);
        if ((int32_t)(t->due - w->now) <= 0) {
            left--;
            t->on_due(t);
        } else {
            mk_timer_wheel_insert(w, t);
        }
    }
}

int mk_timer_wheel_wait(const struct mk_timer_wheel *w, uint64_t now_ms)
{
    int32_t wait = (int32_t)(w->next - (uint32_t)now_ms);
    if (!mk_list_empty(&w->late))
        return 0;
    return !w->waits ? -1 : wait > 0 ? wait : 0;
}
