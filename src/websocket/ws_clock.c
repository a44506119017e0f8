/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_clock.h"

enum {
    TICK_BITS = 7, /* a tick is 128 ms */
    TICK_MS = 1 << TICK_BITS,
    AT_ONCE_MAX = 256, /* timers that are due in one turn of the loop: the others wait for the next one */
    SOON_MS = 1,
};

static uint64_t tick_of(uint64_t ms)
{
    return ms >> TICK_BITS;
}

static struct mk_list *slot_of(struct mk_ws_clock *c, uint64_t tick)
{
    return &c->slots[tick % MK_WS_SLOTS];
}

/* The first tick, from the next one on, whose list is not empty; one round ahead if only that is known. */
static uint64_t find_next(struct mk_ws_clock *c)
{
    uint64_t tick = c->now + 1;
    while (tick < c->now + MK_WS_SLOTS && mk_list_empty(slot_of(c, tick)))
        tick++;
    return tick;
}

static void wait_for(struct mk_ws_clock *c, uint64_t tick)
{
    uint64_t now_ms = mk_worker_now_ms(c->worker), at_ms = tick << TICK_BITS;
    c->next = tick;
    mk_alarm_set(c->alarm, at_ms > now_ms ? (uint32_t)(at_ms - now_ms) : SOON_MS);
}

/* Those of a slot that are due; others are there for a later round. False: there are too many for one turn.
 */
static bool run_slot(struct mk_ws_clock *c, uint64_t tick, unsigned *left)
{
    struct mk_list *slot = slot_of(c, tick);
    MK_LIST_EACH_SAFE (at, slot) {
        struct mk_ws_timer *t = MK_LIST_ENTRY(at, struct mk_ws_timer, link);
        if (t->due > tick)
            continue;
        if (!*left)
            return false;
        --*left;
        mk_ws_clock_stop(c, t);
        c->on_due(t);
    }
    return true;
}

static void on_alarm(void *ctx)
{
    struct mk_ws_clock *c = ctx;
    uint64_t now = tick_of(mk_worker_now_ms(c->worker));
    unsigned left = AT_ONCE_MAX;
    /* After a long sleep each slot is looked at once: all that it has is due by then. */
    if (now > c->now + MK_WS_SLOTS)
        c->now = now - MK_WS_SLOTS;
    c->next = 0;
    if (c->on_tick)
        c->on_tick(c);
    while (c->now < now && run_slot(c, c->now + 1, &left))
        c->now++;
    if (c->n)
        wait_for(c, find_next(c));
}

bool mk_ws_clock_init(struct mk_ws_clock *c, struct mk_worker *w)
{
    *c = (struct mk_ws_clock){.worker = w, .now = tick_of(mk_worker_now_ms(w))};
    for (size_t i = 0; i < MK_WS_SLOTS; i++)
        mk_list_init(&c->slots[i]);
    c->alarm = mk_alarm_new(w, on_alarm, c);
    return c->alarm != NULL;
}

void mk_ws_clock_fini(struct mk_ws_clock *c)
{
    mk_alarm_free(c->alarm);
}

void mk_ws_clock_prepare(struct mk_ws_timer *t)
{
    mk_list_init(&t->link);
}

void mk_ws_clock_stop(struct mk_ws_clock *c, struct mk_ws_timer *t)
{
    if (mk_list_empty(&t->link))
        return;
    mk_list_remove(&t->link);
    c->n--;
}

void mk_ws_clock_set(struct mk_ws_clock *c, struct mk_ws_timer *t, uint32_t ms)
{
    uint64_t now = tick_of(mk_worker_now_ms(c->worker));
    mk_ws_clock_stop(c, t);
    if (!c->n)
        c->now = now;
    t->due = now + tick_of((uint64_t)ms + TICK_MS - 1) + 1;
    mk_list_add_last(slot_of(c, t->due), &t->link);
    c->n++;
    if (!c->next || t->due < c->next)
        wait_for(c, t->due);
}
