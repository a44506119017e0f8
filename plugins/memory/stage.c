/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <stdbool.h>

static bool reaches(uint64_t used, uint64_t limit, unsigned percent)
{
    return used >= limit / 100 * percent;
}

static enum memory_stage stage_at(uint64_t used, uint64_t limit)
{
    return reaches(used, limit, MEMORY_PAUSE_AT)     ? MEMORY_PAUSED
           : reaches(used, limit, MEMORY_SHED_AT)    ? MEMORY_SHEDDING
           : reaches(used, limit, MEMORY_RELEASE_AT) ? MEMORY_RELEASING
                                                     : MEMORY_ENOUGH;
}

enum memory_stage memory_stage_next(enum memory_stage now, uint64_t used, uint64_t limit)
{
    enum memory_stage begun = stage_at(used, limit);
    if (begun >= now)
        return begun;
    if (!reaches(used, limit, MEMORY_ENOUGH_BELOW))
        return MEMORY_ENOUGH;
    return now == MEMORY_PAUSED && begun < MEMORY_SHEDDING ? MEMORY_SHEDDING : now;
}
