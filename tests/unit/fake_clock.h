/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a worker with its alarms and the end of a turn, for code that knows the public interface alone: time passes when
 * the test says so. Included once. */
#ifndef MK_UNIT_FAKE_CLOCK_H
#define MK_UNIT_FAKE_CLOCK_H

#include <monkey/worker.h>

#include "base/def.h"
#include "unit/test.h"

enum { FAKE_ALARMS = 8 };

struct mk_alarm {
    void (*on_due)(void *ctx);
    void *ctx;
    uint64_t due_ms; /* 0: not set */
    bool is_used;
};

struct mk_turn_end {
    void (*on_end)(void *ctx);
    void *ctx;
    bool is_set;
};

static struct {
    uint64_t now_ms;
    struct mk_alarm alarms[FAKE_ALARMS];
    struct mk_turn_end end;
    unsigned n_alarms, n_ends;
} fake_clock;

static inline void fake_clock_init(uint64_t now_ms)
{
    memset(&fake_clock, 0, sizeof fake_clock);
    fake_clock.now_ms = now_ms;
}

/* What was made was freed. */
static inline void fake_clock_fini(void)
{
    assert_int_equal(fake_clock.n_alarms, 0);
    assert_int_equal(fake_clock.n_ends, 0);
}

/* Calls the alarms that are due. True if there were any: they may have set others. */
static inline bool fake_clock_ring(void)
{
    bool has_any = false;
    for (unsigned i = 0; i < FAKE_ALARMS; i++) {
        struct mk_alarm *a = &fake_clock.alarms[i];
        if (!a->is_used || !a->due_ms || a->due_ms > fake_clock.now_ms)
            continue;
        has_any = true;
        a->due_ms = 0;
        a->on_due(a->ctx);
    }
    return has_any;
}

/* The turn ends. True if that was asked for. */
static inline bool fake_clock_end_turn(void)
{
    bool is_set = fake_clock.end.is_set;
    fake_clock.end.is_set = false;
    if (is_set)
        fake_clock.end.on_end(fake_clock.end.ctx);
    return is_set;
}

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return fake_clock.now_ms;
}

struct mk_alarm *mk_alarm_new(struct mk_worker *w, void (*on_due)(void *ctx), void *ctx)
{
    (void)w;
    struct mk_alarm *a = fake_clock.alarms;
    fake_clock.n_alarms++;
    while (a->is_used)
        a++;
    assert_true(a < fake_clock.alarms + FAKE_ALARMS);
    *a = (struct mk_alarm){.on_due = on_due, .ctx = ctx, .is_used = true};
    return a;
}

void mk_alarm_set(struct mk_alarm *a, uint32_t ms)
{
    a->due_ms = fake_clock.now_ms + ms;
}

void mk_alarm_free(struct mk_alarm *a)
{
    fake_clock.n_alarms -= a != NULL;
    if (a)
        a->is_used = false;
}

struct mk_turn_end *mk_turn_end_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    fake_clock.n_ends++;
    fake_clock.end = (struct mk_turn_end){.on_end = on_end, .ctx = ctx};
    return &fake_clock.end;
}

void mk_turn_end_set(struct mk_turn_end *t)
{
    t->is_set = true;
}

void mk_turn_end_free(struct mk_turn_end *t)
{
    fake_clock.n_ends -= t != NULL;
    if (t)
        t->is_set = false;
}

#endif
