/* SPDX-License-Identifier: Apache-2.0 */
/* When requests are due. It holds only the next one, so waiting requests cost no memory: a late caller still
 * gets them one by one, each with its own instant. */
#ifndef PACE_SCHEDULE_H
#define PACE_SCHEDULE_H

#include "base/compiler.h"

enum pace_spacing {
    PACE_CONSTANT,    /* one every 1/rate seconds, the first at the start */
    PACE_POISSON,     /* gaps as of independent visitors, 1/rate on the average */
    PACE_CLOSED_LOOP, /* due at every call: the closed loop */
};

struct pace_schedule {
    enum pace_spacing spacing;
    double rate; /* a second */
    uint64_t start, end;
    uint64_t due;   /* of the next one; not for PACE_CLOSED_LOOP */
    uint64_t taken; /* so many were taken */
    uint64_t max;   /* no more than so many are there */
    uint64_t random;
};

/* Instants are nanoseconds of one clock. The same seed gives the same gaps. */
void pace_schedule_init(struct pace_schedule *s, enum pace_spacing spacing, double rate, uint64_t seed);
/* From `start` on, up to (and without) `end`. */
void pace_schedule_start(struct pace_schedule *s, uint64_t start, uint64_t end);
/* When the next one is due; false: there is none any more. */
bool pace_schedule_next(const struct pace_schedule *s, uint64_t now, uint64_t *due);
/* Nothing more is due, what waits included. */
void pace_schedule_stop(struct pace_schedule *s);
/* Goes on to the one behind it. */
void pace_schedule_advance(struct pace_schedule *s);

#endif
