/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

/* Called twice per upstream and Duda request: always inlined. */
__attribute__((always_inline)) static inline struct timespec read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return now;
}

uint64_t mk_clock_ms(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC_COARSE);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

unsigned mk_clock_ms_resolution(void)
{
    struct timespec step = {0};
    clock_getres(CLOCK_MONOTONIC_COARSE, &step);
    return (unsigned)((step.tv_nsec + 999999) / 1000000);
}

MK_NOINLINE uint64_t mk_clock_us(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t mk_clock_unix_ms(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t mk_clock_unix(void)
{
    return read_clock(CLOCK_REALTIME_COARSE).tv_sec;
}
