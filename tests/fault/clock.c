/* SPDX-License-Identifier: Apache-2.0 */
/* Shifts the wall clock, to imitate a machine without NTP or to test expiry without waiting. Timers are
 * unaffected. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "fault/fault.h"

enum {
    AHEAD_MS /* negative: the clock is behind */
};

enum { MILLION = 1000000, BILLION = 1000 * MILLION };

int clock_gettime(clockid_t id, struct timespec *t)
{
    int n = (int)syscall(SYS_clock_gettime, id, t);
    if (n < 0 || !fault || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return n;
    int64_t ns = t->tv_sec * (int64_t)BILLION + t->tv_nsec + atomic_load(&fault[AHEAD_MS]) * MILLION;
    t->tv_sec = ns / BILLION;
    t->tv_nsec = ns % BILLION;
    return n;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}
