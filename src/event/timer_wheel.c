/* SPDX-License-Identifier: Apache-2.0 */
#include "event/timer_wheel.h"

#include <string.h>

/* Plugins embed this struct in their own, so its size must not change. */
_Static_assert(sizeof(struct mk_timer) == 3 * sizeof(void *) + 2 * sizeof(uint32_t),
               "the binary interface fixes the size of a timer");

/* ---- Timer rings; an unlinked timer has NULL links ---- */

static void init_ring(struct mk_timer_link *head)
{
    head->next = head->prev = head;
}

static bool is_ring_empty(const struct mk_timer_link *head)
{
    return head->next == head;
}

static void append_link(struct mk_timer_link *head, struct mk_timer_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static void move_ring(struct mk_timer_link *to, struct mk_timer_link *from)
{
    if (is_ring_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    init_ring(from);
}

void mk_timer_stop(struct mk_timer *t)
{
    if (!t->link.next)
        return;
    t->link.prev->next = t->link.next;
    t->link.next->prev = t->link.prev;
    t->link.next = NULL;
}

/* ---- Slots ---- */

static uint32_t slot_of_time(uint32_t time)
{
    return time / MK_TIMER_TICK_MS % MK_TIMER_SLOTS;
}

static bool is_slot_used(const struct mk_timer_wheel *w, uint32_t slot)
{
    return w->used[slot / 64] >> slot % 64 & 1;
}

/* Rings of unused slots are uninitialized, so that a process with few timers touches few of their pages. */
static void use_slot(struct mk_timer_wheel *w, uint32_t slot)
{
    if (is_slot_used(w, slot))
        return;
    init_ring(&w->slots[slot]);
    w->used[slot / 64] |= (uint64_t)1 << slot % 64;
}

static void mark_slot_unused(struct mk_timer_wheel *w, uint32_t slot)
{
    w->used[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

void mk_timer_wheel_init(struct mk_timer_wheel *w, uint64_t now_ms)
{
    memset(w->used, 0, sizeof w->used);
    init_ring(&w->late);
    w->now = (uint32_t)now_ms;
    w->has_next = false;
    w->next = 0;
}

/* If the time is farther ahead than the wheel reaches, the timer moves on when its slot is due. */
void mk_timer_wheel_insert(struct mk_timer_wheel *w, struct mk_timer *t)
{
    enum { REACH_MS = (MK_TIMER_SLOTS - 1) * MK_TIMER_TICK_MS };
    uint32_t ahead = t->due_ms - w->now;
    if ((int32_t)ahead < 0)
        ahead = 0;
    if (ahead > REACH_MS - MK_TIMER_TICK_MS)
        ahead = REACH_MS - MK_TIMER_TICK_MS;
    uint32_t tick = (w->now + ahead) / MK_TIMER_TICK_MS + 1;
    mk_timer_stop(t);
    t->slot_ms = tick * MK_TIMER_TICK_MS;
    use_slot(w, tick % MK_TIMER_SLOTS);
    append_link(&w->slots[tick % MK_TIMER_SLOTS], &t->link);
    if (!w->has_next || t->slot_ms - w->now < w->next - w->now)
        w->next = t->slot_ms;
    w->has_next = true;
}

static void find_next_used_slot(struct mk_timer_wheel *w)
{
    uint32_t from = slot_of_time(w->now) + 1;
    w->has_next = false;
    for (uint32_t i = 0; i < MK_TIMER_SLOTS && !w->has_next;) {
        uint32_t slot = (from + i) % MK_TIMER_SLOTS;
        uint64_t rest = w->used[slot / 64] >> slot % 64;
        if (rest) {
            uint32_t tick = w->now / MK_TIMER_TICK_MS + 1 + i + (uint32_t)__builtin_ctzll(rest);
            w->next = tick * MK_TIMER_TICK_MS;
            w->has_next = true;
        }
        i += 64 - slot % 64;
    }
}

static void empty_slot(struct mk_timer_wheel *w, uint32_t slot)
{
    move_ring(&w->late, &w->slots[slot]);
    mark_slot_unused(w, slot);
}

/* Empties all slots that are due. */
MK_NOINLINE static void empty_due_slots(struct mk_timer_wheel *w, uint32_t now)
{
    uint32_t ticks = now / MK_TIMER_TICK_MS - w->now / MK_TIMER_TICK_MS;
    if (now < w->now) /* the 32-bit time has wrapped: add 2^32 ms before dividing */
        ticks = (uint32_t)((((uint64_t)1 << 32) + now) / MK_TIMER_TICK_MS - w->now / MK_TIMER_TICK_MS);
    uint32_t first = slot_of_time(w->now) + 1;
    w->now = now;
    bool emptied = false;
    for (uint32_t i = 0; i < ticks && i < MK_TIMER_SLOTS; i++) {
        uint32_t slot = (first + i) % MK_TIMER_SLOTS;
        if (is_slot_used(w, slot)) {
            empty_slot(w, slot);
            emptied = true;
        }
    }
    if (emptied)
        find_next_used_slot(w);
}

MK_NOINLINE static void fire_due_timers(struct mk_timer_wheel *w)
{
    unsigned left = MK_TIMER_WHEEL_AT_ONCE;
    while (left && !is_ring_empty(&w->late)) {
        struct mk_timer *t = MK_CONTAINER(w->late.next, struct mk_timer, link);
        mk_timer_stop(t);
        if ((int32_t)(t->due_ms - w->now) <= 0) {
            left--;
            t->on_due(t);
        } else {
            mk_timer_wheel_insert(w, t);
        }
    }
}

void mk_timer_wheel_advance(struct mk_timer_wheel *w, uint64_t now_ms)
{
    if ((uint32_t)now_ms != w->now)
        empty_due_slots(w, (uint32_t)now_ms);
    if (!is_ring_empty(&w->late))
        fire_due_timers(w);
}

int mk_timer_wheel_wait(const struct mk_timer_wheel *w, uint64_t now_ms)
{
    int32_t wait = (int32_t)(w->next - (uint32_t)now_ms);
    if (!is_ring_empty(&w->late))
        return 0;
    return !w->has_next ? -1 : wait > 0 ? wait : 0;
}
