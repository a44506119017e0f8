/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time in nanoseconds. */
#ifndef PACE_NOW_H
#define PACE_NOW_H

#include <time.h>

#include "base/compiler.h"

#define PACE_SECOND UINT64_C(1000000000)
#define PACE_NEVER  UINT64_MAX

static inline uint64_t pace_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * PACE_SECOND + (uint64_t)t.tv_nsec;
}

#endif
