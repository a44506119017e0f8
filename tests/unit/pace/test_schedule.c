/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/schedule.h"

#include <math.h>

#include "pace/now.h"

#include "unit/test.h"

static uint64_t next_due(struct pace_schedule *s)
{
    uint64_t due;
    assert_true(pace_schedule_next(s, 0, &due));
    pace_schedule_advance(s);
    return due;
}

static void schedule_constant_rate_does_not_drift(void **state)
{
    struct pace_schedule s;
    (void)state;
    pace_schedule_init(&s, PACE_CONSTANT, 3, 1);
    pace_schedule_start(&s, 100, 100 + 1000 * PACE_SECOND);
    assert_int_equal(next_due(&s), 100);
    assert_int_equal(next_due(&s), 100 + PACE_SECOND / 3);
    for (unsigned i = 2; i < 2998; i++)
        (void)next_due(&s);
    assert_in_range(next_due(&s), 99 + 999 * PACE_SECOND + PACE_SECOND / 3,
                    101 + 999 * PACE_SECOND + PACE_SECOND / 3);
}

static void schedule_count_matches_rate_and_duration(void **state)
{
    static const double rates[] = {0.5, 1, 7, 999, 1000, 12345.5};
    (void)state;
    for (size_t i = 0; i < MK_LEN(rates); i++) {
        struct pace_schedule s;
        uint64_t due;
        pace_schedule_init(&s, PACE_CONSTANT, rates[i], 1);
        pace_schedule_start(&s, 5 * PACE_SECOND, 15 * PACE_SECOND);
        while (pace_schedule_next(&s, 0, &due))
            pace_schedule_advance(&s);
        assert_int_equal(s.taken, (uint64_t)ceil(10 * rates[i]));
    }
}

static void schedule_tiny_rate_sends_at_most_one_request(void **state)
{
    static const double rates[] = {1e-6, 1e-12, 1e-300, 5e-324};
    (void)state;
    for (size_t i = 0; i < MK_LEN(rates); i++) {
        struct pace_schedule s;
        uint64_t due;
        pace_schedule_init(&s, PACE_CONSTANT, rates[i], 1);
        pace_schedule_start(&s, 5 * PACE_SECOND, 86400 * PACE_SECOND);
        assert_int_equal(next_due(&s), 5 * PACE_SECOND);
        assert_false(pace_schedule_next(&s, 86399 * PACE_SECOND, &due));
        pace_schedule_init(&s, PACE_POISSON, rates[i], 1);
        pace_schedule_start(&s, 5 * PACE_SECOND, 3600 * PACE_SECOND);
        assert_false(pace_schedule_next(&s, 3599 * PACE_SECOND, &due));
    }
}

static void schedule_stop_drops_pending_requests(void **state)
{
    struct pace_schedule s;
    uint64_t due;
    (void)state;
    pace_schedule_init(&s, PACE_CONSTANT, 1e7, 1);
    pace_schedule_start(&s, 0, PACE_SECOND);
    (void)next_due(&s);
    assert_true(pace_schedule_next(&s, PACE_SECOND / 2, &due));
    pace_schedule_stop(&s);
    assert_false(pace_schedule_next(&s, PACE_SECOND / 2, &due));
}

static void schedule_request_stays_due_until_taken(void **state)
{
    struct pace_schedule s;
    uint64_t due;
    (void)state;
    pace_schedule_init(&s, PACE_CONSTANT, 1000, 1);
    pace_schedule_start(&s, 0, PACE_SECOND);
    (void)next_due(&s);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(pace_schedule_next(&s, 500 * 1000 * 1000, &due));
        assert_int_equal(due, PACE_SECOND / 1000);
    }
}

static void schedule_poisson_gaps_have_its_mean_and_variance(void **state)
{
    static const unsigned N = 200000;
    struct pace_schedule s;
    double sum = 0, squares = 0;
    uint64_t last = 0;
    (void)state;
    pace_schedule_init(&s, PACE_POISSON, 1000, 1);
    pace_schedule_start(&s, 0, PACE_NEVER);
    for (unsigned i = 0; i < N; i++) {
        uint64_t due = next_due(&s);
        double gap = (double)(due - last) / 1e6; /* as a multiple of the mean */
        assert_true(due >= last);
        sum += gap;
        squares += gap * gap;
        last = due;
    }
    assert_true(fabs(sum / N - 1) < 0.02);
    assert_true(fabs(squares / N - 2) < 0.08); /* as for an exponential distribution of mean 1 */
}

static void schedule_same_seed_gives_the_same_gaps(void **state)
{
    struct pace_schedule a, b, c;
    bool differs = false;
    (void)state;
    pace_schedule_init(&a, PACE_POISSON, 50, 7);
    pace_schedule_init(&b, PACE_POISSON, 50, 7);
    pace_schedule_init(&c, PACE_POISSON, 50, 8);
    pace_schedule_start(&a, 0, PACE_NEVER);
    pace_schedule_start(&b, 0, PACE_NEVER);
    pace_schedule_start(&c, 0, PACE_NEVER);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t due = next_due(&a);
        assert_int_equal(due, next_due(&b));
        differs |= due != next_due(&c);
    }
    assert_true(differs);
}

static void schedule_closed_loop_is_always_due(void **state)
{
    struct pace_schedule s;
    uint64_t due;
    (void)state;
    pace_schedule_init(&s, PACE_CLOSED_LOOP, 0, 1);
    s.max = 2;
    pace_schedule_start(&s, 10, 100);
    assert_true(pace_schedule_next(&s, 77, &due));
    assert_int_equal(due, 77);
    assert_false(pace_schedule_next(&s, 100, &due));
    pace_schedule_advance(&s);
    pace_schedule_advance(&s);
    assert_false(pace_schedule_next(&s, 78, &due));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_constant_rate_does_not_drift),
        cmocka_unit_test(schedule_count_matches_rate_and_duration),
        cmocka_unit_test(schedule_tiny_rate_sends_at_most_one_request),
        cmocka_unit_test(schedule_stop_drops_pending_requests),
        cmocka_unit_test(schedule_request_stays_due_until_taken),
        cmocka_unit_test(schedule_poisson_gaps_have_its_mean_and_variance),
        cmocka_unit_test(schedule_same_seed_gives_the_same_gaps),
        cmocka_unit_test(schedule_closed_loop_is_always_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
