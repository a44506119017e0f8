/* SPDX-License-Identifier: Apache-2.0 */
#include "service/rate_table.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct duda_rate_table *table;
static const struct duda_rate three_a_minute = {3, 60};

static void setup(void)
{
    table = heap_setup(sizeof *table);
    duda_rate_table_init(table);
}

static bool use(unsigned who, const struct duda_rate *rate, int64_t now, struct duda_rate_state *state)
{
    return duda_rate_table_use(table, mk_str_of((const char *)&who, sizeof who), rate, now, state);
}

static void rate_table_limits_key_per_window(void **state)
{
    struct duda_rate_state s;
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(use(1, &three_a_minute, 1000 + i, &s), i < 3);
        assert_int_equal(s.remaining, i < 3 ? 2 - i : 0);
        assert_int_equal(s.reset_s, 60 - i);
    }
    assert_true(use(2, &three_a_minute, 1000, &s));
    assert_false(use(1, &three_a_minute, 1059, &s));
    assert_true(use(1, &three_a_minute, 1060, &s));
    assert_int_equal(s.remaining, 2);
    assert_int_equal(s.reset_s, 60);
}

static void rate_table_clock_set_back_begins_a_window(void **state)
{
    struct duda_rate_state s;
    (void)state;
    for (int i = 0; i < 4; i++)
        (void)use(1, &three_a_minute, 1000, &s);
    assert_true(use(1, &three_a_minute, 900, &s));
    assert_int_equal(s.reset_s, 60);
}

static void rate_table_times_wrap_around(void **state)
{
    struct duda_rate_state s;
    const int64_t wrap = INT64_C(1) << 20;
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(use(1, &three_a_minute, wrap - 10, &s));
    assert_false(use(1, &three_a_minute, wrap + 10, &s));
    assert_true(use(1, &three_a_minute, wrap + 50, &s));
}

static void rate_table_flood_does_not_reset_busy_counters(void **state)
{
    struct duda_rate_state s;
    (void)state;
    for (int i = 0; i < 4; i++)
        (void)use(1, &three_a_minute, 1000, &s);
    for (unsigned i = 2; i < 300000; i++)
        (void)use(i, &three_a_minute, 1001, &s);
    assert_false(use(1, &three_a_minute, 1002, &s));
}

static void rate_table_largest_limit_does_not_overflow(void **state)
{
    const struct duda_rate most = {DUDA_RATE_MAX, DUDA_RATE_WINDOW_MAX_S};
    struct duda_rate_state s;
    (void)state;
    for (unsigned i = 0; i < DUDA_RATE_MAX; i++)
        assert_true(use(1, &most, 1000, &s));
    for (unsigned i = 0; i < 10; i++)
        assert_false(use(1, &most, 1000, &s));
    assert_int_equal(s.remaining, 0);
}

static void rate_parse_accepts_a_number_and_a_unit(void **state)
{
    struct duda_rate r;
    (void)state;
    assert_true(duda_rate_parse(MK_STR("10/minute"), &r));
    assert_int_equal(r.max, 10);
    assert_int_equal(r.window_s, 60);
    assert_true(duda_rate_parse(MK_STR("262143/day"), &r));
    assert_int_equal(r.window_s, 86400);
    assert_false(duda_rate_parse(MK_STR("262144/day"), &r));
    assert_false(duda_rate_parse(MK_STR("0/day"), &r));
    assert_false(duda_rate_parse(MK_STR("10/days"), &r));
    assert_false(duda_rate_parse(MK_STR("10"), &r));
    assert_false(duda_rate_parse(MK_STR(""), &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(rate_table_limits_key_per_window, setup),
        fixture_test(rate_table_clock_set_back_begins_a_window, setup),
        fixture_test(rate_table_times_wrap_around, setup),
        fixture_test(rate_table_flood_does_not_reset_busy_counters, setup),
        fixture_test(rate_table_largest_limit_does_not_overflow, setup),
        fixture_test(rate_parse_accepts_a_number_and_a_unit, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
