/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/schedule.h"

#include <math.h>

#include "pace/now.h"

/* splitmix64: small, and good enough for gaps. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t draw_gap(struct pace_schedule *s)
{
    double u = (double)(draw(&s->random) >> 11) * 0x1p-53; /* in [0, 1) */
    return (uint64_t)(-log1p(-u) / s->rate * (double)PACE_SECOND);
}

/* From the start each time: a sum of gaps would gather what rounding loses. */
static uint64_t constant_due(const struct pace_schedule *s)
{
    return s->start + (uint64_t)((double)s->taken * (double)PACE_SECOND / s->rate);
}

void pace_schedule_init(struct pace_schedule *s, enum pace_spacing spacing, double rate, uint64_t seed)
{
    *s = (struct pace_schedule){.spacing = spacing, .rate = rate, .max = UINT64_MAX, .random = seed};
}

void pace_schedule_start(struct pace_schedule *s, uint64_t start, uint64_t end)
{
    s->start = start;
    s->end = end;
    s->due = s->spacing == PACE_POISSON ? start + draw_gap(s) : start;
}

bool pace_schedule_next(const struct pace_schedule *s, uint64_t now, uint64_t *due)
{
    *due = s->spacing == PACE_CLOSED_LOOP ? now : s->due;
    return s->taken < s->max && *due < s->end;
}

void pace_schedule_take(struct pace_schedule *s)
{
    s->taken++;
    if (s->spacing == PACE_POISSON)
        s->due += draw_gap(s);
    else if (s->spacing == PACE_CONSTANT)
        s->due = constant_due(s);
}
