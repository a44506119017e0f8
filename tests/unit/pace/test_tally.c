/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/tally.h"

#include "pace/now.h"
#include "unit/test.h"

enum { MS = 1000000 };

static struct pace_tally tally;

/* `n` answers of which each took so long, and of that so much may be the client's own. */
static void answer(uint64_t n, uint64_t latency, uint64_t own)
{
    for (uint64_t i = 0; i < n; i++)
        pace_tally_add_response(&tally, latency, own);
    tally.asked += n;
}

static void start(void)
{
    pace_tally_init(&tally);
    tally.end = 10 * PACE_SECOND;
    tally.waited = 5 * PACE_SECOND;
}

static bool doubts(const char *name)
{
    for (size_t i = 0; i < PACE_QUANTILES; i++)
        if (strcmp(pace_quantiles[i].name, name) == 0)
            return pace_tally_is_quantile_doubtful(&tally, &pace_quantiles[i]);
    fail_msg("there is no quantile %s", name);
    return false;
}

static void a_little_of_its_own_is_no_doubt(void **state)
{
    (void)state;
    start();
    answer(10000, 10 * MS, MS - MS / 10);
    assert_null(pace_tally_client_problem(&tally));
}

static void more_than_a_tenth_of_its_own_is_one(void **state)
{
    (void)state;
    start();
    answer(10000, 10 * MS, 2 * MS);
    assert_non_null(pace_tally_client_problem(&tally));
    assert_true(doubts("p50") && doubts("p999") && pace_tally_is_mean_doubtful(&tally));
}

static void lateness_counts_by_its_size_and_not_by_how_often_it_is(void **state)
{
    (void)state;
    start();
    answer(10000, 10 * MS, 2000); /* 2 us of each: much more than one hundredth of the time at high rates */
    assert_null(pace_tally_client_problem(&tally));
}

static void only_the_quantiles_that_it_changes_are_in_doubt(void **state)
{
    (void)state;
    start();
    answer(9950, MS, 0);
    answer(50, 100 * MS, 99 * MS);
    assert_non_null(pace_tally_client_problem(&tally));
    assert_true(doubts("p999"));
    assert_false(doubts("p50") || doubts("p99"));
}

static void late_requests_below_a_slow_tail_change_nothing(void **state)
{
    (void)state;
    start();
    answer(9700, MS, 0);
    answer(100, 2 * MS, MS); /* late, and still not among the slowest */
    answer(200, 100 * MS, 0);
    assert_null(pace_tally_client_problem(&tally));
}

static void a_client_that_never_waits_doubts_all(void **state)
{
    (void)state;
    start();
    answer(10000, 10 * MS, 0);
    tally.waited = PACE_SECOND / 10;
    assert_non_null(pace_tally_client_problem(&tally));
    assert_true(doubts("p50") && doubts("p99") && pace_tally_is_mean_doubtful(&tally));
}

static void what_ran_out_of_time_while_it_did_not_run_is_in_doubt(void **state)
{
    (void)state;
    start();
    answer(10000, 10 * MS, 0);
    pace_tally_add_timeout(&tally, PACE_SECOND, MS);
    assert_null(pace_tally_client_problem(&tally));
    pace_tally_add_timeout(&tally, PACE_SECOND, PACE_SECOND / 2);
    assert_non_null(pace_tally_client_problem(&tally));
}

static void unknown_quantiles_are_not_doubted(void **state)
{
    (void)state;
    start();
    assert_null(pace_tally_client_problem(&tally));
    answer(50, 10 * MS, 5 * MS);
    tally.asked = 100; /* half of them failed */
    assert_false(doubts("p90") || doubts("p999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_little_of_its_own_is_no_doubt),
        cmocka_unit_test(more_than_a_tenth_of_its_own_is_one),
        cmocka_unit_test(lateness_counts_by_its_size_and_not_by_how_often_it_is),
        cmocka_unit_test(only_the_quantiles_that_it_changes_are_in_doubt),
        cmocka_unit_test(late_requests_below_a_slow_tail_change_nothing),
        cmocka_unit_test(a_client_that_never_waits_doubts_all),
        cmocka_unit_test(what_ran_out_of_time_while_it_did_not_run_is_in_doubt),
        cmocka_unit_test(unknown_quantiles_are_not_doubted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
