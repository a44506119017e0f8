/* SPDX-License-Identifier: Apache-2.0 */
/* How scarce the memory of a worker is. */
#ifndef MEMORY_STAGE_H
#define MEMORY_STAGE_H

#include <stdint.h>

enum memory_stage {
    MEMORY_ENOUGH,
    MEMORY_RELEASING, /* memory that no request needs is released */
    MEMORY_SHEDDING,  /* new requests are rejected, too */
    MEMORY_PAUSED,    /* no connections are accepted, too */
};

/* The percentages of the limit from which a stage begins, and below which the worker returns to MEMORY_ENOUGH. */
enum { MEMORY_RELEASE_AT = 85, MEMORY_SHED_AT = 95, MEMORY_PAUSE_AT = 100, MEMORY_ENOUGH_BELOW = 80 };

/* Returns the stage that follows `now` when `used` bytes of `limit` are in use. Between MEMORY_ENOUGH_BELOW and
 * the beginning of its stage, a worker stays in the stage, except that it accepts connections again below
 * MEMORY_SHED_AT. */
enum memory_stage memory_stage_next(enum memory_stage now, uint64_t used, uint64_t limit);

#endif
