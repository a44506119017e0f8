/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

#include "unit/test.h"

/* The coarse clocks move with the kernel's tick, at most 10 ms. */
enum { TICK_MS = 10 };

static void it_only_goes_forward(void **state)
{
    (void)state;
    uint64_t last = mk_clock_ms();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = mk_clock_ms();
        assert_true(now >= last);
        last = now;
    }
}

static void it_measures_a_nap(void **state)
{
    (void)state;
    const struct timespec nap = {.tv_nsec = 60 * 1000000};
    uint64_t before = mk_clock_ms();
    nanosleep(&nap, NULL);
    uint64_t slept = mk_clock_ms() - before;
    assert_true(slept >= 60 - TICK_MS);
    assert_true(slept < 10000);
}

static void wall_time_is_the_systems(void **state)
{
    (void)state;
    time_t before = time(NULL);
    int64_t seconds = mk_clock_unix();
    int64_t micros = mk_clock_unix_us();
    time_t after = time(NULL);
    assert_true(seconds >= before - 1 && seconds <= after + 1);
    assert_true(micros >= (int64_t)(before - 1) * 1000000 && micros <= (int64_t)(after + 1) * 1000000);
}

static void microseconds_are_not_coarse(void **state)
{
    (void)state;
    int64_t first = mk_clock_unix_us(), next = first;
    for (int i = 0; i < 1000000 && next == first; i++)
        next = mk_clock_unix_us();
    assert_true(next > first && next - first < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_only_goes_forward),
        cmocka_unit_test(it_measures_a_nap),
        cmocka_unit_test(wall_time_is_the_systems),
        cmocka_unit_test(microseconds_are_not_coarse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
