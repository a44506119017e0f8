/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/tally.h"

#include "pace/now.h"
#include "unit/test.h"

enum { MS = 1000000 };

static struct pace_tally tally;

/* Adds `n` responses with this latency, of which the client itself caused `own`. */
static void add_responses(uint64_t n, uint64_t latency, uint64_t own)
{
    for (uint64_t i = 0; i < n; i++)
        pace_tally_add_response(&tally, latency, own);
    tally.asked += n;
}

static void setup(void)
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

static void tally_small_own_delay_is_not_doubtful(void **state)
{
    (void)state;
    add_responses(10000, 10 * MS, MS - MS / 10);
    assert_null(pace_tally_doubt_reason(&tally));
}

static void tally_own_delay_above_a_tenth_is_doubtful(void **state)
{
    (void)state;
    add_responses(10000, 10 * MS, 2 * MS);
    assert_non_null(pace_tally_doubt_reason(&tally));
    assert_true(doubts("p50") && doubts("p999") && pace_tally_is_mean_doubtful(&tally));
}

static void tally_own_delay_counts_by_size_not_frequency(void **state)
{
    (void)state;
    /* 2 us for each request: at high rates, that is much more than 1 % of the time */
    add_responses(10000, 10 * MS, 2000);
    assert_null(pace_tally_doubt_reason(&tally));
}

static void tally_only_affected_quantiles_are_doubtful(void **state)
{
    (void)state;
    add_responses(9950, MS, 0);
    add_responses(50, 100 * MS, 99 * MS);
    assert_non_null(pace_tally_doubt_reason(&tally));
    assert_true(doubts("p999"));
    assert_false(doubts("p50") || doubts("p99"));
}

static void tally_late_requests_below_a_slow_tail_are_harmless(void **state)
{
    (void)state;
    add_responses(9700, MS, 0);
    add_responses(100, 2 * MS, MS); /* these are late, but not among the slowest */
    add_responses(200, 100 * MS, 0);
    assert_null(pace_tally_doubt_reason(&tally));
}

static void tally_client_that_never_waits_is_doubtful(void **state)
{
    (void)state;
    add_responses(10000, 10 * MS, 0);
    tally.waited = PACE_SECOND / 10;
    assert_non_null(pace_tally_doubt_reason(&tally));
    assert_true(doubts("p50") && doubts("p99") && pace_tally_is_mean_doubtful(&tally));
}

static void tally_timeout_while_client_was_delayed_is_doubtful(void **state)
{
    (void)state;
    add_responses(10000, 10 * MS, 0);
    pace_tally_add_timeout(&tally, PACE_SECOND, MS);
    assert_null(pace_tally_doubt_reason(&tally));
    pace_tally_add_timeout(&tally, PACE_SECOND, PACE_SECOND / 2);
    assert_non_null(pace_tally_doubt_reason(&tally));
}

static void tally_unknown_quantiles_are_not_doubtful(void **state)
{
    (void)state;
    assert_null(pace_tally_doubt_reason(&tally));
    add_responses(50, 10 * MS, 5 * MS);
    tally.asked = 100; /* half of the requests failed */
    assert_false(doubts("p90") || doubts("p999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(tally_small_own_delay_is_not_doubtful, setup),
        fixture_test(tally_own_delay_above_a_tenth_is_doubtful, setup),
        fixture_test(tally_own_delay_counts_by_size_not_frequency, setup),
        fixture_test(tally_only_affected_quantiles_are_doubtful, setup),
        fixture_test(tally_late_requests_below_a_slow_tail_are_harmless, setup),
        fixture_test(tally_client_that_never_waits_is_doubtful, setup),
        fixture_test(tally_timeout_while_client_was_delayed_is_doubtful, setup),
        fixture_test(tally_unknown_quantiles_are_not_doubtful, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
