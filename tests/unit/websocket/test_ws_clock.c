/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_clock.h"

#include "unit/websocket/world.h"

enum { TIMERS = 1000 };

static struct timer {
    struct mk_ws_timer timer;
    uint64_t at_ms; /* when it was due; 0: not yet */
} timers[TIMERS];
static struct mk_ws_clock clock_;

static void on_due(struct mk_ws_timer *t)
{
    struct timer *timer = MK_CONTAINER(t, struct timer, timer);
    assert_int_equal(timer->at_ms, 0);
    timer->at_ms = fake_clock.now_ms;
}

static int setup(void **state)
{
    (void)state;
    world_init();
    assert_true(mk_ws_clock_init(&clock_, &world.worker));
    clock_.on_due = on_due;
    for (size_t i = 0; i < TIMERS; i++) {
        timers[i].at_ms = 0;
        mk_ws_clock_prepare(&timers[i].timer);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mk_ws_clock_fini(&clock_);
    world_fini();
    return 0;
}

/* The alarm is as late as an alarm may be. */
static void pass(uint64_t ms)
{
    for (uint64_t end = fake_clock.now_ms + ms; fake_clock.now_ms < end; fake_clock.now_ms += 31)
        (void)fake_clock_ring();
}

static void timers_are_due_in_time_and_never_early(void **state)
{
    (void)state;
    uint64_t began = fake_clock.now_ms;
    for (uint32_t i = 0; i < TIMERS; i++)
        mk_ws_clock_set(&clock_, &timers[i].timer, i * 97);
    pass(TIMERS * 97 + 2000);
    for (uint32_t i = 0; i < TIMERS; i++)
        assert_in_range(timers[i].at_ms, began + (uint64_t)i * 97, began + (uint64_t)i * 97 + 600);
    assert_int_equal(clock_.n, 0);
    assert_int_equal(fake_clock.alarms[0].due_ms, 0);
}

static void many_at_once_are_spread(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TIMERS; i++)
        mk_ws_clock_set(&clock_, &timers[i].timer, 1000);
    pass(1400);
    size_t n = 0;
    for (uint32_t i = 0; i < TIMERS; i++)
        n += timers[i].at_ms != 0;
    assert_int_equal(n, TIMERS);
    assert_true(timers[0].at_ms < timers[TIMERS - 1].at_ms);
}

static void one_that_is_stopped_is_not_due(void **state)
{
    (void)state;
    mk_ws_clock_set(&clock_, &timers[0].timer, 1000);
    mk_ws_clock_set(&clock_, &timers[1].timer, 1000);
    mk_ws_clock_set(&clock_, &timers[1].timer, 200 * 1000);
    mk_ws_clock_stop(&clock_, &timers[0].timer);
    mk_ws_clock_stop(&clock_, &timers[0].timer);
    pass(199 * 1000);
    assert_int_equal(timers[0].at_ms + timers[1].at_ms, 0);
    pass(2000);
    assert_true(timers[1].at_ms != 0);
}

static void a_loop_that_slept_for_long_misses_none(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++)
        mk_ws_clock_set(&clock_, &timers[i].timer, i * 1000);
    fake_clock.now_ms += 1000 * 1000;
    pass(1000);
    for (uint32_t i = 0; i < 200; i++)
        assert_true(timers[i].at_ms != 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(timers_are_due_in_time_and_never_early),
        TEST(many_at_once_are_spread),
        TEST(one_that_is_stopped_is_not_due),
        TEST(a_loop_that_slept_for_long_misses_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
