/* SPDX-License-Identifier: Apache-2.0 */
/* The due times of requests. Only the next one is stored, so a backlog costs no memory: a late caller still
 * gets each request with its own due time. */
#ifndef PACE_SCHEDULE_H
#define PACE_SCHEDULE_H

#include "base/compiler.h"

enum pace_spacing {
    PACE_CONSTANT,    /* one request every 1/rate seconds, the first at the start */
    PACE_POISSON,     /* random gaps, as between independent clients; the mean is 1/rate */
    PACE_CLOSED_LOOP, /* always due: the closed loop */
};

struct pace_schedule {
    enum pace_spacing spacing;
    double rate; /* requests per second */
    uint64_t start, end;
    uint64_t due;   /* due time of the next request; unused for PACE_CLOSED_LOOP */
    uint64_t taken; /* number of requests taken so far */
    uint64_t max;   /* total number of requests */
    uint64_t random;
};

/* All times come from one clock, in ns. The same seed gives the same gaps. */
void pace_schedule_init(struct pace_schedule *s, enum pace_spacing spacing, double rate, uint64_t seed);
/* Requests are due from `start` until `end` (exclusive). */
void pace_schedule_start(struct pace_schedule *s, uint64_t start, uint64_t end);
/* Gets the due time of the next request; false: no more requests. */
bool pace_schedule_next(const struct pace_schedule *s, uint64_t now, uint64_t *due);
/* Ends the schedule; the backlog is dropped. */
void pace_schedule_stop(struct pace_schedule *s);
/* Takes the current request and moves to the next. */
void pace_schedule_advance(struct pace_schedule *s);

#endif
