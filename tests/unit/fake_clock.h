/* SPDX-License-Identifier: Apache-2.0 */
/* Fakes the clock, the timers and the end of the loop iteration of a worker, for code that uses only the
 * public interface: time passes only when the test advances it. Include it once. */
#ifndef MK_UNIT_FAKE_CLOCK_H
#define MK_UNIT_FAKE_CLOCK_H

#include <monkey/worker.h>

#include "base/compiler.h"
#include "unit/test.h"

enum { FAKE_TIMERS = 32 };

struct mk_deferred {
    void (*on_end)(void *ctx);
    void *ctx;
    bool is_set;
};

static struct {
    uint64_t now_ms;
    struct mk_timer *timers[FAKE_TIMERS]; /* armed timers */
    struct mk_deferred end;
    unsigned n_timers, n_ends;
} fake_clock;

static inline void fake_clock_init(uint64_t now_ms)
{
    memset(&fake_clock, 0, sizeof fake_clock);
    fake_clock.now_ms = now_ms;
}

/* Asserts that the test has freed every object and stopped every timer. */
static inline void fake_clock_fini(void)
{
    assert_int_equal(fake_clock.n_timers, 0);
    assert_int_equal(fake_clock.n_ends, 0);
}

void mk_timer_stop(struct mk_timer *t)
{
    if (!mk_timer_is_set(t))
        return;
    for (unsigned i = 0; i < FAKE_TIMERS; i++)
        if (fake_clock.timers[i] == t)
            fake_clock.timers[i] = NULL;
    fake_clock.n_timers--;
    t->link.next = NULL;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)w;
    unsigned i = 0;
    mk_timer_stop(t);
    while (fake_clock.timers[i])
        i++;
    assert_true(i < FAKE_TIMERS);
    fake_clock.timers[i] = t;
    fake_clock.n_timers++;
    t->link.next = &t->link;
    t->due_ms = (uint32_t)(fake_clock.now_ms + ms);
}

/* Fires the due timers. Returns true if any fired: they may have armed others. */
static inline bool fake_clock_fire(void)
{
    bool has_any = false;
    for (unsigned i = 0; i < FAKE_TIMERS; i++) {
        struct mk_timer *t = fake_clock.timers[i];
        if (!t || (int32_t)(t->due_ms - (uint32_t)fake_clock.now_ms) > 0)
            continue;
        has_any = true;
        mk_timer_stop(t);
        t->on_due(t);
    }
    return has_any;
}

/* Ends the loop iteration. Returns true if a callback was registered for its end. */
static inline bool fake_clock_end_iteration(void)
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

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    (void)w;
    fake_clock.n_ends++;
    fake_clock.end = (struct mk_deferred){.on_end = on_end, .ctx = ctx};
    return &fake_clock.end;
}

void mk_deferred_post(struct mk_deferred *t)
{
    t->is_set = true;
}

void mk_deferred_free(struct mk_deferred *t)
{
    fake_clock.n_ends -= t != NULL;
    if (t)
        t->is_set = false;
}

#endif
