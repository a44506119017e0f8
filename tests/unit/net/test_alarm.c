/* SPDX-License-Identifier: Apache-2.0 */
#include "net/alarm.h"

#include "base/clock.h"
#include "unit/net/loop.h"
#include "unit/test.h"

static struct mk_loop loop;
static struct mk_alarm *alarms[2];
static unsigned n_rings;

static int start(void **state)
{
    (void)state;
    n_rings = 0;
    alarms[0] = alarms[1] = NULL;
    loop_begin(&loop);
    return 0;
}

static void turn_for(unsigned ms)
{
    uint64_t until = mk_clock_ms() + ms;
    do
        assert_int_equal(mk_loop_turn(&loop, 5), 0);
    while (mk_clock_ms() < until);
}

static struct mk_alarm *make(void (*on_due)(void *ctx), void *ctx)
{
    struct mk_alarm *a = mk_alarm_new_in(&loop, on_due, ctx);
    assert_non_null(a);
    return a;
}

static void count(void *ctx)
{
    assert_ptr_equal(ctx, &n_rings);
    n_rings++;
}

static void it_rings_once_and_never_early(void **state)
{
    (void)state;
    struct mk_alarm *a = make(count, &n_rings);
    uint64_t began = loop.now_ms;
    turn_for(40);
    assert_int_equal(n_rings, 0); /* not before it is set */
    began = loop.now_ms;
    mk_alarm_set(a, 50);
    while (!n_rings)
        assert_int_equal(mk_loop_turn(&loop, -1), 0);
    assert_true(loop.now_ms - began >= 50);
    turn_for(100);
    assert_int_equal(n_rings, 1);
    mk_alarm_free(a);
}

static void setting_it_again_replaces_the_time(void **state)
{
    (void)state;
    struct mk_alarm *a = make(count, &n_rings);
    mk_alarm_set(a, 40);
    mk_alarm_set(a, UINT32_MAX); /* as far ahead as it goes */
    turn_for(100);
    assert_int_equal(n_rings, 0);
    mk_alarm_set(a, 0);
    turn_for(60);
    assert_int_equal(n_rings, 1);
    mk_alarm_free(a);
}

static void a_stopped_or_freed_alarm_does_not_ring(void **state)
{
    (void)state;
    struct mk_alarm *a = make(count, &n_rings), *b = make(count, &n_rings);
    mk_alarm_set(a, 20);
    mk_alarm_set(b, 20);
    mk_alarm_stop(a);
    mk_alarm_stop(a);
    mk_alarm_free(b);
    mk_alarm_free(NULL);
    turn_for(80);
    assert_int_equal(n_rings, 0);
    mk_alarm_set(a, 10); /* it can still be set */
    turn_for(80);
    assert_int_equal(n_rings, 1);
    mk_alarm_free(a);
}

static void free_all(void *ctx)
{
    (void)ctx;
    n_rings++;
    mk_alarm_free(alarms[0]);
    mk_alarm_free(alarms[1]);
}

static void one_that_rings_may_free_itself_and_others(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        mk_alarm_set(alarms[i] = make(free_all, NULL), 10); /* due in the same turn */
    turn_for(80);
    assert_int_equal(n_rings, 1);
}

static void again(void *ctx)
{
    (void)ctx;
    if (++n_rings < 3)
        mk_alarm_set(alarms[0], 0);
}

static void one_that_rings_may_set_itself(void **state)
{
    (void)state;
    alarms[0] = make(again, NULL);
    mk_alarm_set(alarms[0], 0);
    turn_for(200);
    assert_int_equal(n_rings, 3);
    mk_alarm_free(alarms[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_rings_once_and_never_early, start, harness_stop),
        cmocka_unit_test_setup_teardown(setting_it_again_replaces_the_time, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_stopped_or_freed_alarm_does_not_ring, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_rings_may_free_itself_and_others, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_rings_may_set_itself, start, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
