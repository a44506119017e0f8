/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"

enum { NO = WR_UNKNOWN };

static void result_initially_knows_nothing(void **state)
{
    (void)state;
    struct wr_result r;
    wr_result_init(&r);
    assert_false(wr_is_known((double)r.requests) || wr_is_known(r.seconds) || wr_is_known(r.rate));
    assert_errors(r, NO, NO, NO, NO, NO, NO);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
    assert_int_equal(wr_result_errors(&r), NO);
    assert_null(r.doubt);
}

static void result_errors_are_summed(void **state)
{
    (void)state;
    struct wr_result r;
    wr_result_init(&r);
    r.errors.timeout = 0;
    assert_int_equal(wr_result_errors(&r), 0);
    r.errors.connect = 3;
    r.errors.other = 4;
    assert_int_equal(wr_result_errors(&r), 7);
    r.errors.status = INT64_MAX;
    assert_int_equal(wr_result_errors(&r), INT64_MAX);
}

static bool finish(struct wr_result *r, int64_t requests, double seconds, double rate)
{
    const char *why = NULL;
    wr_result_init(r);
    r->requests = requests;
    r->seconds = seconds;
    r->rate = rate;
    r->latency_us.mean = 5;
    bool ok = wr_result_fill_in(r, &why);
    assert_int_equal(ok, why == NULL);
    return ok;
}

static void result_rate_or_seconds_are_computed(void **state)
{
    (void)state;
    struct wr_result r;
    assert_true(finish(&r, 10, 2, NO) && r.rate == 5);
    assert_true(finish(&r, 10, NO, 5) && r.seconds == 2);
    assert_true(finish(&r, 10, 0, 5) && r.seconds == 2);
    assert_true(finish(&r, 10, 2, 5.1) && r.rate == 5.1 && r.latency_us.mean == 5);
}

static void result_without_rate_and_seconds_is_rejected(void **state)
{
    (void)state;
    struct wr_result r;
    assert_false(finish(&r, NO, 1, 1));
    assert_nothing_known(&r);
    assert_false(finish(&r, 10, NO, NO));
    assert_nothing_known(&r);
    assert_false(finish(&r, 10, 0, 0));
    assert_false(finish(&r, 0, NO, 5));
}

static void result_without_requests_has_no_latency(void **state)
{
    (void)state;
    struct wr_result r;
    assert_true(finish(&r, 0, 2, 7) && r.rate == 0);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(result_initially_knows_nothing),
        cmocka_unit_test(result_errors_are_summed),
        cmocka_unit_test(result_rate_or_seconds_are_computed),
        cmocka_unit_test(result_without_rate_and_seconds_is_rejected),
        cmocka_unit_test(result_without_requests_has_no_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
