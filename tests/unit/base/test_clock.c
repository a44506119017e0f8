/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#include "unit/test.h"

/* The coarse clocks advance once per kernel tick, which lasts at most 10 ms. */
enum { TICK_MS = 10 };

static void clock_ms_is_monotonic(void **state)
{
    (void)state;
    uint64_t last = mk_clock_ms();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = mk_clock_ms();
        assert_true(now >= last);
        last = now;
    }
}

static void clock_ms_measures_a_sleep(void **state)
{
    (void)state;
    const struct timespec nap = {.tv_nsec = 60 * 1000000};
    uint64_t before = mk_clock_ms();
    nanosleep(&nap, NULL);
    uint64_t slept = mk_clock_ms() - before;
    assert_true(slept >= 60 - TICK_MS);
    assert_true(slept < 10000);
}

static void clock_us_is_precise(void **state)
{
    (void)state;
    const struct timespec nap = {.tv_nsec = 2 * 1000000};
    uint64_t before = mk_clock_us();
    nanosleep(&nap, NULL);
    uint64_t slept = mk_clock_us() - before;
    assert_true(slept >= 2000 && slept < 10000000);
}

static void clock_unix_is_the_system_time(void **state)
{
    (void)state;
    time_t before = time(NULL);
    int64_t seconds = mk_clock_unix();
    time_t after = time(NULL);
    assert_true(seconds >= before - 1 && seconds <= after + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_ms_is_monotonic),
        cmocka_unit_test(clock_ms_measures_a_sleep),
        cmocka_unit_test(clock_us_is_precise),
        cmocka_unit_test(clock_unix_is_the_system_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
