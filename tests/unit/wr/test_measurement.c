/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/measurement.h"

#include "unit/test.h"
#include "wr/samples.h"

static enum wr_bottleneck find_bottleneck(double client, double server)
{
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1;
    s.client.busy = client;
    s.server.busy = s.server.busiest = server;
    wr_measurement_find_bottleneck(&s);
    return s.bottleneck;
}

static void bottleneck_is_the_busy_side_if_the_other_is_not(void **state)
{
    (void)state;
    assert_int_equal(find_bottleneck(0.99, 0.50), WR_BOTTLENECK_CLIENT);
    assert_int_equal(find_bottleneck(0.50, 0.99), WR_BOTTLENECK_SERVER);
    assert_int_equal(find_bottleneck(0.95, 0.89), WR_BOTTLENECK_CLIENT);
    assert_int_equal(find_bottleneck(0.99, 0.99), WR_BOTTLENECK_NEITHER);
    assert_int_equal(find_bottleneck(0.99, 0.92), WR_BOTTLENECK_NEITHER);
    assert_int_equal(find_bottleneck(0.94, 0.10), WR_BOTTLENECK_NEITHER);
    assert_int_equal(find_bottleneck(0, 0), WR_BOTTLENECK_NEITHER);
}

static void bottleneck_can_be_one_busy_thread(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1;
    s.client.busy = 0.99;
    s.server.busy = 0.40; /* 4 threads, one of which accepts for all */
    s.server.busiest = 0.93;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_NEITHER);
    s.server.busiest = 0.89;
    wr_measurement_find_bottleneck(&s);
    assert_int_equal(s.bottleneck, WR_BOTTLENECK_CLIENT);
}

static void bottleneck_of_a_spinning_client_uses_its_reported_work(void **state)
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

static void measurement_responses_without_cpu_time_are_unknown(void **state)
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

static struct wr_load compute_load(double used_s, double wall_s, unsigned allowed, unsigned threads)
{
    struct wr_load l = {.user_us = used_s * 1e6};
    wr_load_compute(&l, wall_s, allowed, threads);
    return l;
}

static void load_of_one_thread_has_one_core(void **state)
{
    (void)state;
    struct wr_load l = compute_load(2, 2, 2, 1);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy > 0.999);
    l = compute_load(2, 2, 2, 2);
    assert_int_equal(l.cores, 2);
    assert_true(l.busy > 0.499 && l.busy < 0.501);
}

static void load_of_many_threads_is_limited_by_cores(void **state)
{
    (void)state;
    struct wr_load l = compute_load(1.9, 2, 1, 8);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy > 0.949 && l.busy < 0.951);
}

static void load_includes_unseen_processes(void **state)
{
    (void)state;
    struct wr_load l = compute_load(3, 2, 4, 0);
    assert_int_equal(l.cores, 2);
    assert_true(l.busy > 0.749 && l.busy < 0.751);
}

static void load_unknown_is_one_idle_core(void **state)
{
    (void)state;
    struct wr_load l = compute_load(0, 0, 0, 0);
    assert_int_equal(l.cores, 1);
    assert_true(l.busy <= 0);
}

static void load_is_at_most_1(void **state)
{
    (void)state;
    assert_true(compute_load(2.1, 2, 1, 1).busy <= 1);
}

static void measurement_time_per_request_needs_requests(void **state)
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

static void measurement_served_requests_are_counted(void **state)
{
    (void)state;
    struct wr_measurement s;
    wr_measurement_init(&s);
    s.server.user_us = 1500;
    s.reported.requests = 100;
    s.reported.served = 150;
    wr_measurement_find_bottleneck(&s);
    assert_true(s.us_per_request > 9.99 && s.us_per_request < 10.01);
    s.reported.requests = 0; /* all responses were wrong, but cost the same */
    wr_measurement_find_bottleneck(&s);
    assert_true(s.us_per_request > 9.99 && s.us_per_request < 10.01);
}

static void measurement_memory_is_the_median(void **state)
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

static void samples_have_minimum_median_and_maximum(void **state)
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
        cmocka_unit_test(bottleneck_is_the_busy_side_if_the_other_is_not),
        cmocka_unit_test(bottleneck_can_be_one_busy_thread),
        cmocka_unit_test(bottleneck_of_a_spinning_client_uses_its_reported_work),
        cmocka_unit_test(measurement_responses_without_cpu_time_are_unknown),
        cmocka_unit_test(load_of_one_thread_has_one_core),
        cmocka_unit_test(load_of_many_threads_is_limited_by_cores),
        cmocka_unit_test(load_includes_unseen_processes),
        cmocka_unit_test(load_unknown_is_one_idle_core),
        cmocka_unit_test(load_is_at_most_1),
        cmocka_unit_test(measurement_time_per_request_needs_requests),
        cmocka_unit_test(measurement_served_requests_are_counted),
        cmocka_unit_test(measurement_memory_is_the_median),
        cmocka_unit_test(samples_have_minimum_median_and_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
