/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/measurement.h"

#include "unit/test.h"
#include "wr/samples.h"

static enum wr_bottleneck judge(double client, double server)
{
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1;
    s.client.busy = client;
    s.server.busy = s.server.busiest = server;
    wr_measurement_find_bottleneck(&s);
    return s.bottleneck;
}

static void the_full_side_is_the_bottleneck_if_the_other_has_room(void **state)
{
    (void)state;
    assert_int_equal(judge(0.99, 0.50), WR_BOTTLENECK_CLIENT);
    assert_int_equal(judge(0.50, 0.99), WR_BOTTLENECK_SERVER);
    assert_int_equal(judge(0.95, 0.89), WR_BOTTLENECK_CLIENT);
    assert_int_equal(judge(0.99, 0.99), WR_BOTTLENECK_NEITHER);
    assert_int_equal(judge(0.99, 0.92), WR_BOTTLENECK_NEITHER);
    assert_int_equal(judge(0.94, 0.10), WR_BOTTLENECK_NEITHER);
    assert_int_equal(judge(0, 0), WR_BOTTLENECK_NEITHER);
}

static void one_full_thread_of_many_holds_the_server_back(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1;
    s.client.busy = 0.99;
    s.server.busy = 0.40; /* four threads, one of which accepts for all */
    s.server.busiest = 0.93;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_NEITHER);
    s.server.busiest = 0.89;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_CLIENT);
}

static void a_client_that_spins_knows_how_much_of_it_was_work(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1;
    s.client.busy = 1;
    s.reported.busy = 0.30;
    s.server.busy = s.server.busiest = 0.40;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_NEITHER);
    s.server.busy = s.server.busiest = 0.98;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_SERVER);
    s.reported.busy = 0.97;
    s.server.busy = s.server.busiest = 0.40;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_CLIENT);
}

static void answers_without_processor_time_were_not_seen(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.reported.requests = 1000;
    s.client.busy = 1;
    wr_measurement_find_bottleneck(&s);
    assert_false(wr_is_known(s.us_per_request) || wr_is_known(s.server.user_us) ||
                 wr_is_known(s.server.system_us));
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_NEITHER);
}

static struct wr_load weigh(double used_s, double wall_s, unsigned allowed, unsigned threads)
{
    struct wr_load l = {.user_us = used_s * 1e6};
    wr_load_compute(&l, wall_s, allowed, threads);
    return l;
}

static void one_thread_cannot_use_two_cores(void **state)
{
    (void)state;
    struct wr_load l = weigh(2, 2, 2, 1);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy > 0.999);
    l = weigh(2, 2, 2, 2);
    assert_int_equal(l.cores, 2);
    assert_true(l.busy > 0.499 && l.busy < 0.501);
}

static void many_threads_cannot_use_more_than_their_cores(void **state)
{
    (void)state;
    struct wr_load l = weigh(1.9, 2, 1, 8);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy > 0.949 && l.busy < 0.951);
}

static void unseen_processes_used_cores_too(void **state)
{
    (void)state;
    struct wr_load l = weigh(3, 2, 4, 0);
    assert_int_equal(l.cores, 2);
    assert_true(l.busy > 0.749 && l.busy < 0.751);
}

static void idle_and_unknown_is_one_core_not_busy(void **state)
{
    (void)state;
    struct wr_load l = weigh(0, 0, 0, 0);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy <= 0);
}

static void a_clock_that_runs_ahead_is_no_more_than_all(void **state)
{
    (void)state;
    assert_true(weigh(2.1, 2, 1, 1).busy <= 1);
}

static void time_for_a_request_needs_requests(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 300;
    s.server.system_us = 700;
    wr_measurement_find_bottleneck(&s);
    assert_false(wr_is_known(s.us_per_request));
    s.reported.requests = 100;
    wr_measurement_find_bottleneck(&s);
    assert_true(s.us_per_request > 9.99 && s.us_per_request < 10.01);
}

static void requests_that_are_no_part_of_the_rate_are_counted(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1500;
    s.reported.requests = 100;
    s.reported.served = 150;
    wr_measurement_find_bottleneck(&s);
    assert_true(s.us_per_request > 9.99 && s.us_per_request < 10.01);
    s.reported.requests = 0; /* all were wrong, and cost as much */
    wr_measurement_find_bottleneck(&s);
    assert_true(s.us_per_request > 9.99 && s.us_per_request < 10.01);
}

static void the_memory_is_the_middle_of_the_samples(void **state)
{
    (void)state;
    struct wr_sample samples[] = {{0.1, 1, 300}, {0.2, 1, WR_UNKNOWN}, {0.3, 1, 100}, {0.4, 1, 200}};
    struct wr_measurement s;
    wr_measurement_init(&s);
    assert_false(wr_is_known(wr_measurement_median_pss(&s)));
    s.samples = samples;
    s.n_samples = MK_LEN(samples);
    assert_int_equal((int)wr_measurement_median_pss(&s), 200);
}

static void least_middle_and_most(void **state)
{
    (void)state;
    struct wr_samples s;
    wr_samples_init(&s);
    assert_true(wr_samples_range(&s).median < 0);
    for (int i = 40; i > 0; i--)
        wr_samples_add(&s, i);
    wr_samples_add(&s, -1);
    struct wr_range r = wr_samples_range(&s);
    assert_int_equal((int)r.min, 1);
    assert_int_equal((int)(r.median * 10), 205);
    assert_int_equal((int)r.max, 40);
    wr_samples_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_full_side_is_the_bottleneck_if_the_other_has_room),
        cmocka_unit_test(one_full_thread_of_many_holds_the_server_back),
        cmocka_unit_test(a_client_that_spins_knows_how_much_of_it_was_work),
        cmocka_unit_test(answers_without_processor_time_were_not_seen),
        cmocka_unit_test(one_thread_cannot_use_two_cores),
        cmocka_unit_test(many_threads_cannot_use_more_than_their_cores),
        cmocka_unit_test(unseen_processes_used_cores_too),
        cmocka_unit_test(idle_and_unknown_is_one_core_not_busy),
        cmocka_unit_test(a_clock_that_runs_ahead_is_no_more_than_all),
        cmocka_unit_test(time_for_a_request_needs_requests),
        cmocka_unit_test(requests_that_are_no_part_of_the_rate_are_counted),
        cmocka_unit_test(the_memory_is_the_middle_of_the_samples),
        cmocka_unit_test(least_middle_and_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
