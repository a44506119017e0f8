/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/schedule.h"

#include <math.h>

#include "pace/now.h"

/* splitmix64: small, and random enough for gaps between requests. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Saturates: at a very low rate the next request may never be due. */
static uint64_t add_ns(uint64_t from, double ns)
{
    return ns < (double)(PACE_NEVER - from) / 2 ? from + (uint64_t)ns : PACE_NEVER;
}

static uint64_t random_due_time(struct pace_schedule *s, uint64_t from)
{
    double u = (double)(random_next(&s->random) >> 11) * 0x1p-53; /* in [0, 1) */
    return add_ns(from, -log1p(-u) / s->rate * (double)PACE_SECOND);
}

/* Computed from the start: adding up gaps would accumulate rounding errors. */
static uint64_t constant_rate_due_time(const struct pace_schedule *s)
{
    return add_ns(s->start, (double)s->taken * (double)PACE_SECOND / s->rate);
}

void pace_schedule_init(struct pace_schedule *s, enum pace_spacing spacing, double rate, uint64_t seed)
{
    *s = (struct pace_schedule){.spacing = spacing, .rate = rate, .max = UINT64_MAX, .random = seed};
}

void pace_schedule_start(struct pace_schedule *s, uint64_t start, uint64_t end)
{
    s->start = start;
    s->end = end;
    s->due = s->spacing == PACE_POISSON ? random_due_time(s, start) : start;
}

bool pace_schedule_next(const struct pace_schedule *s, uint64_t now, uint64_t *due)
{
    *due = s->spacing == PACE_CLOSED_LOOP ? now : s->due;
    return s->taken < s->max && *due < s->end;
}

void pace_schedule_stop(struct pace_schedule *s)
{
    s->max = s->taken;
}

void pace_schedule_advance(struct pace_schedule *s)
{
    s->taken++;
    if (s->spacing == PACE_POISSON)
        s->due = random_due_time(s, s->due);
    else if (s->spacing == PACE_CONSTANT)
        s->due = constant_rate_due_time(s);
}
