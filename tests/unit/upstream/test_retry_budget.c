/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/retry_budget.h"

#include "unit/test.h"

/* so large that stepping through the seconds since 0 would be too slow */
static const uint64_t NOW = UINT64_C(1000000000000000);

static unsigned acquire_retries(struct mk_retry_budget *r, uint64_t now_ms, unsigned percent)
{
    unsigned n = 0;
    while (n < 100000 && mk_retry_budget_try_spend(r, now_ms, percent))
        n++;
    return n;
}

static void count(struct mk_retry_budget *r, uint64_t now_ms, unsigned n)
{
    while (n--)
        mk_retry_budget_count_request(r, now_ms);
}

static void retry_budget_allows_minimum_each_second(void **state)
{
    struct mk_retry_budget r = {0};
    (void)state;
    assert_int_equal(acquire_retries(&r, NOW, 20), 3);
    assert_int_equal(acquire_retries(&r, NOW + 999, 20), 0);
    assert_int_equal(acquire_retries(&r, NOW + 1000, 20), 3);
    assert_int_equal(acquire_retries(&r, NOW + 100000, 20), 3);
}

static void retry_budget_is_percentage_of_requests(void **state)
{
    struct mk_retry_budget r = {0};
    (void)state;
    count(&r, NOW, 1000);
    assert_int_equal(acquire_retries(&r, NOW, 20), 200);
    assert_int_equal(acquire_retries(&r, NOW + 1000, 20), 3);
    count(&r, NOW + 1000, 100);
    assert_int_equal(acquire_retries(&r, NOW + 1000, 20), 17); /* 220 in all for 1100 requests */
    assert_int_equal(acquire_retries(&r, NOW + 1000, 100), 1100 - 220);
}

static void retry_budget_forgets_old_requests(void **state)
{
    struct mk_retry_budget r = {0};
    (void)state;
    count(&r, NOW, 1000);
    assert_int_equal(acquire_retries(&r, NOW + 9000, 20), 200);
    struct mk_retry_budget later = {0};
    count(&later, NOW, 1000);
    assert_int_equal(acquire_retries(&later, NOW + 10000, 20), 3);
    /* Old retries no longer count, either. */
    count(&r, NOW + 19000, 1000);
    assert_int_equal(acquire_retries(&r, NOW + 19000, 20), 200);
}

static void retry_budget_tolerates_clock_going_back(void **state)
{
    struct mk_retry_budget r = {0};
    (void)state;
    count(&r, NOW, 100);
    count(&r, NOW - 5000, 100);
    assert_int_equal(acquire_retries(&r, NOW - 5000, 10), 20);
}

static void retry_budget_zero_disables_retries(void **state)
{
    struct mk_retry_budget r = {0};
    (void)state;
    count(&r, NOW, 100);
    assert_int_equal(acquire_retries(&r, NOW, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_budget_allows_minimum_each_second),
        cmocka_unit_test(retry_budget_is_percentage_of_requests),
        cmocka_unit_test(retry_budget_forgets_old_requests),
        cmocka_unit_test(retry_budget_tolerates_clock_going_back),
        cmocka_unit_test(retry_budget_zero_disables_retries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
