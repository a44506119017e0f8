/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/histogram.h"

#include "unit/test.h"

static struct pace_histogram h;

static void empty(void)
{
    pace_histogram_init(&h);
}

static uint64_t quantile(double share)
{
    uint64_t value = 0;
    assert_true(pace_histogram_quantile(&h, h.n, share, &value));
    return value;
}

static void histogram_small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 100; i++)
        pace_histogram_add(&h, i);
    assert_int_equal(quantile(0.5), 50);
    assert_int_equal(quantile(0.9), 90);
    assert_int_equal(quantile(0.99), 99);
    assert_int_equal(h.least, 1);
    assert_int_equal(h.greatest, 100);
    assert_true(pace_histogram_mean(&h) == 50.5);
}

static void histogram_error_is_at_most_one_percent(void **state)
{
    (void)state;
    /* The last step includes all values beyond it. */
    for (uint64_t value = 1; value < UINT64_C(255) << (PACE_HISTOGRAM_BITS - 8); value += 1 + value / 997) {
        pace_histogram_init(&h);
        pace_histogram_add(&h, value);
        pace_histogram_add(&h, UINT64_MAX / 2);
        uint64_t found = quantile(0.5);
        assert_true(found >= value);
        assert_true((double)(found - value) <= 0.01 * (double)value);
    }
}

/* The sample is i * i for i from 1 to 100000, so the quantiles are known. */
static void histogram_quantiles_of_known_sample_are_within_one_percent(void **state)
{
    static const double shares[] = {0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
    (void)state;
    for (uint64_t i = 100000; i > 0; i--)
        pace_histogram_add(&h, i * i);
    for (size_t i = 0; i < MK_LEN(shares); i++) {
        double truth = shares[i] * 1e5 * shares[i] * 1e5, found = (double)quantile(shares[i]);
        assert_true(found >= truth * 0.9999 && found <= truth * 1.01);
    }
}

static void histogram_quantile_with_nothing_beyond_is_unknown(void **state)
{
    uint64_t value;
    (void)state;
    assert_false(pace_histogram_quantile(&h, h.n, 0.5, &value));
    pace_histogram_add(&h, 7);
    assert_false(pace_histogram_quantile(&h, h.n, 0.5, &value));
    for (unsigned i = 1; i < 999; i++)
        pace_histogram_add(&h, 7);
    assert_int_equal(quantile(0.99), 7);
    assert_false(pace_histogram_quantile(&h, h.n, 0.999, &value));
    pace_histogram_add(&h, 7);
    assert_int_equal(quantile(0.999), 7);
}

static void histogram_quantile_is_at_most_the_maximum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        pace_histogram_add(&h, 1000001);
    assert_int_equal(quantile(0.5), 1000001);
}

static void histogram_values_beyond_all_steps_are_counted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        pace_histogram_add(&h, UINT64_MAX);
    assert_int_equal(h.n, 10);
    assert_true(quantile(0.5) == UINT64_MAX);
}

static void histogram_failures_are_beyond_all_values(void **state)
{
    uint64_t value;
    (void)state;
    pace_histogram_init(&h);
    for (uint64_t i = 0; i < 90; i++)
        pace_histogram_add(&h, 7);
    assert_true(pace_histogram_quantile(&h, 100, 0.9, &value));
    assert_int_equal(value, 7);
    assert_true(pace_histogram_quantile(&h, 100, 0.91, &value));
    assert_true(value == PACE_HISTOGRAM_BEYOND);
    assert_false(pace_histogram_quantile(&h, 100, 0.999, &value));
    pace_histogram_init(&h);
    assert_true(pace_histogram_quantile(&h, 100, 0.5, &value));
    assert_true(value == PACE_HISTOGRAM_BEYOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(histogram_small_values_are_exact, empty),
        fixture_test(histogram_error_is_at_most_one_percent, empty),
        fixture_test(histogram_quantiles_of_known_sample_are_within_one_percent, empty),
        fixture_test(histogram_quantile_with_nothing_beyond_is_unknown, empty),
        fixture_test(histogram_quantile_is_at_most_the_maximum, empty),
        fixture_test(histogram_values_beyond_all_steps_are_counted, empty),
        cmocka_unit_test(histogram_failures_are_beyond_all_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
