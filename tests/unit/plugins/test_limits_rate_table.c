/* SPDX-License-Identifier: Apache-2.0 */
/* Clients in a bucket of the table: their waiting times, and which entry is evicted. */
#include "unit/test.h"

#include <string.h>

#include "rate_table.h"

enum { NOW = 1000000, MS = LIMITS_TICKS, COST = 100 * MS };

static struct limits_bucket line;

static void setup(void)
{
    memset(&line, 0, sizeof line);
}

static uint64_t subject(uint64_t client)
{
    return client << 40 | 12345;
}

static uint64_t charge(uint64_t client, uint64_t now, uint64_t tolerance, uint64_t wait_max)
{
    const struct limits_charge c = {.cost = COST, .tolerance = tolerance, .wait_max = wait_max};
    return limits_bucket_charge(&line, subject(client), now, &c);
}

static void rate_table_client_waits_for_its_interval(void **state)
{
    (void)state;
    assert_int_equal(charge(1, NOW, 0, 0), 0);
    assert_int_equal(charge(1, NOW, 0, 0), COST);
    assert_int_equal(charge(1, NOW + 60, 0, 0), 40 * MS); /* the rejected request has cost nothing */
    assert_int_equal(charge(1, NOW + 99, 0, 0), 1 * MS);
    assert_int_equal(charge(1, NOW + 100, 0, 0), 0);
    assert_int_equal(charge(1, NOW + 100, 0, 0), COST);
    assert_int_equal(charge(2, NOW + 100, 0, 0), 0);
}

static void rate_table_late_clock_enforces_the_limit(void **state)
{
    (void)state;
    assert_int_equal(charge(1, NOW, 0, 0), 0);
    assert_int_equal(charge(1, NOW - 5, 0, 0), COST);
    assert_int_equal(charge(1, NOW - 30000, 0, 0), COST);
    assert_int_equal(charge(1, NOW + 100, 0, 0), 0);
}

static void rate_table_burst_is_free(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(charge(1, NOW, 4 * COST, 0), 0);
    assert_int_equal(charge(1, NOW, 4 * COST, 0), COST);
    assert_int_equal(charge(1, NOW + 100, 4 * COST, 0), 0);
    assert_int_equal(charge(1, NOW + 100, 4 * COST, 0), COST);
    for (int i = 0; i < 5; i++) /* a long idle time does not enlarge the burst */
        assert_int_equal(charge(1, NOW + 9000, 4 * COST, 0), 0);
    assert_int_equal(charge(1, NOW + 9000, 4 * COST, 0), COST);
}

static void rate_table_wait_within_maximum_is_charged(void **state)
{
    (void)state;
    assert_int_equal(charge(1, NOW, 0, 2 * COST), 0);
    assert_int_equal(charge(1, NOW, 0, 2 * COST), COST);
    assert_int_equal(charge(1, NOW, 0, 2 * COST), 2 * COST);
    /* a request beyond the maximum wait costs nothing */
    assert_int_equal(charge(1, NOW, 0, 2 * COST), 3 * COST);
    assert_int_equal(charge(1, NOW, 0, 2 * COST), 3 * COST);
    for (int i = 0; i < 5; i++) /* the burst is free; later requests wait as above */
        assert_int_equal(charge(2, NOW, 4 * COST, 2 * COST), 0);
    assert_int_equal(charge(2, NOW, 4 * COST, 2 * COST), COST);
    assert_int_equal(charge(2, NOW, 4 * COST, 2 * COST), 2 * COST);
    assert_int_equal(charge(2, NOW, 4 * COST, 2 * COST), 3 * COST);
    assert_int_equal(charge(2, NOW, 4 * COST, 2 * COST), 3 * COST);
}

static void rate_table_refund_restores_capacity(void **state)
{
    (void)state;
    (void)charge(1, NOW, COST, 0);
    (void)charge(1, NOW, COST, 0);
    limits_bucket_refund(&line, subject(1), NOW, COST);
    assert_int_equal(charge(1, NOW, COST, 0), 0);
    assert_int_equal(charge(1, NOW, COST, 0), COST);
    limits_bucket_refund(&line, subject(1), NOW, 100 * COST); /* refunds more than was charged */
    assert_int_equal(charge(1, NOW, 0, 0), 0);
    assert_int_equal(charge(1, NOW, 0, 0), COST);
    limits_bucket_refund(&line, subject(2), NOW, 100 * COST); /* an unknown client */
    assert_int_equal(charge(1, NOW, 0, 0), COST);
}

/* ---- Full bucket ---- */

static void rate_table_full_bucket_evicts_least_charged(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= LIMITS_BUCKET_SLOTS; i++)
        for (int n = 0; n < (i == 3 ? 1 : 2); n++)
            assert_int_equal(charge(i, NOW, COST, 0), 0);
    assert_int_equal(charge(9, NOW, COST, 0), 0);
    for (uint64_t i = 1; i <= LIMITS_BUCKET_SLOTS; i++)
        if (i != 3)
            assert_int_equal(charge(i, NOW, COST, 0), COST);
    assert_int_equal(charge(9, NOW, 0, 0), COST);
}

static void rate_table_full_bucket_evicts_expired_first(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= LIMITS_BUCKET_SLOTS; i++)
        assert_int_equal(charge(i, i == 5 ? NOW - 100000 : NOW, 0, 0), 0);
    assert_int_equal(charge(9, NOW, 0, 0), 0);
    for (uint64_t i = 1; i <= LIMITS_BUCKET_SLOTS; i++)
        if (i != 5)
            assert_int_equal(charge(i, NOW, 0, 0), COST);
}

static void rate_table_free_slot_is_used_first(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= LIMITS_BUCKET_SLOTS; i++) {
        assert_int_equal(charge(i, NOW, 0, 0), 0);
        for (uint64_t k = 1; k <= i; k++)
            assert_int_equal(charge(k, NOW, 0, 0), COST);
    }
}

/* The tag of a free slot is 0. */
static void rate_table_zero_hash_is_counted(void **state)
{
    (void)state;
    assert_int_equal(charge(0, NOW, 0, 0), 0);
    assert_int_equal(charge(0, NOW, 0, 0), COST);
}

/* A slot stores the time in 40 bits. */
static void rate_table_time_may_wrap(void **state)
{
    const uint64_t wrap = ((uint64_t)1 << 40) / LIMITS_TICKS;
    (void)state;
    assert_int_equal(charge(1, wrap - 1, 0, 0), 0);
    assert_int_equal(charge(1, wrap - 1, 0, 0), COST);
    assert_int_equal(charge(1, wrap + 49, 0, 0), 50 * MS);
    assert_int_equal(charge(1, wrap + 99, 0, 0), 0);
    assert_int_equal(charge(1, wrap + 99, 0, 0), COST);
    /* the time has almost wrapped around once more: it is long past, not 70 s ahead */
    assert_int_equal(charge(1, 2 * wrap - 70000, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(rate_table_client_waits_for_its_interval, setup),
                                       fixture_test(rate_table_burst_is_free, setup),
                                       fixture_test(rate_table_late_clock_enforces_the_limit, setup),
                                       fixture_test(rate_table_wait_within_maximum_is_charged, setup),
                                       fixture_test(rate_table_refund_restores_capacity, setup),
                                       fixture_test(rate_table_full_bucket_evicts_least_charged, setup),
                                       fixture_test(rate_table_full_bucket_evicts_expired_first, setup),
                                       fixture_test(rate_table_free_slot_is_used_first, setup),
                                       fixture_test(rate_table_zero_hash_is_counted, setup),
                                       fixture_test(rate_table_time_may_wrap, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
