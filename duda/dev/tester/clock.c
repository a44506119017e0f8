/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the service under test. These functions replace those of the C library for the whole process:
 * the server, the service, and its libraries. */
#include "clock.h"

#include "test_type.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, STEPS = 100 };

#define EXPORTED __attribute__((visibility("default")))

static _Atomic int64_t advanced_ms, wall_ms; /* offset of all clocks; further offset of the wall clock */

static int read_system_clock(clockid_t id, struct timespec *now)
{
    static int (*_Atomic real)(clockid_t, struct timespec *);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        int (*fn)(clockid_t, struct timespec *);
        memcpy(&fn, &found, sizeof fn);
        real = fn;
    }
    return real(id, now);
}

static void add_ms(struct timespec *t, int64_t ms)
{
    t->tv_sec += ms / MS_PER_S;
    t->tv_nsec += (long)(ms % MS_PER_S) * NS_PER_MS;
    if (t->tv_nsec >= 1000 * NS_PER_MS) {
        t->tv_nsec -= 1000 * NS_PER_MS;
        t->tv_sec++;
    } else if (t->tv_nsec < 0) {
        t->tv_nsec += 1000 * NS_PER_MS;
        t->tv_sec--;
    }
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *now)
{
    int e = read_system_clock(id, now);
    if (!e && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        add_ms(now, advanced_ms + wall_ms);
    else if (!e && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME))
        add_ms(now, advanced_ms);
    return e;
}

EXPORTED time_t time(time_t *out)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

EXPORTED int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now = {0};
    int e = clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return e;
}

uint64_t tester_clock_real_ms(void)
{
    struct timespec now = {0};
    (void)read_system_clock(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / NS_PER_MS;
}

/* Runs the timers that are due, and the handlers that they resume. */
static void run_due_timers(void)
{
    for (unsigned i = 0; i < STEPS && mk_server_step(tester_server()) == 1; i++)
        continue;
}

void duda_test_advance_clock(struct duda_test *t, uint64_t duration_ms)
{
    (void)t;
    (void)mk_server_fd(tester_server()); /* starts the service now: it notices only later changes */
    advanced_ms += (int64_t)duration_ms;
    run_due_timers();
}

void duda_test_set_time(struct duda_test *t, int64_t unix_s)
{
    struct timespec now = {0};
    (void)t;
    (void)mk_server_fd(tester_server());
    (void)clock_gettime(CLOCK_REALTIME, &now);
    wall_ms += (unix_s - (int64_t)now.tv_sec) * MS_PER_S - now.tv_nsec / NS_PER_MS;
    run_due_timers();
}

void duda_test_wait(struct duda_test *t, uint32_t duration_ms)
{
    (void)t;
    tester_clock_step_until(tester_clock_real_ms() + duration_ms);
}

/* ---- Waiting ---- */

/* Runs the server once, and waits for work, at most until the real time `until_ms`. Returns false if the time
 * has passed, or if the server has stopped. */
static bool step_clock(uint64_t until_ms)
{
    uint64_t now = tester_clock_real_ms();
    struct pollfd ready = {.fd = mk_server_fd(tester_server()), .events = POLLIN};
    if (now >= until_ms)
        return false;
    (void)poll(&ready, 1, (int)(until_ms - now));
    return mk_server_step(tester_server()) == 1;
}

/* Number of services with start tasks that have not succeeded, and of tasks of duda_after_response() that have not
 * ended. */
static int n_tasks;

/* The plugin `duda` calls this function, if the program defines it, when such a task begins or ends. */
EXPORTED void duda_test_count_task(int change);
EXPORTED void duda_test_count_task(int change)
{
    n_tasks += change;
}

bool duda_test_wait_for_tasks(struct duda_test *t, uint32_t timeout_ms)
{
    uint64_t until_ms = tester_clock_real_ms() + timeout_ms;
    (void)t;
    (void)mk_server_fd(tester_server()); /* starts the service, and its start tasks */
    while (n_tasks > 0 && step_clock(until_ms))
        continue;
    return n_tasks == 0;
}

void tester_clock_step_until(uint64_t until_ms)
{
    while (step_clock(until_ms))
        continue;
}
