/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void json_tells_mean_and_greatest(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_read, "siege-4.0.7-json.txt");
    assert_int_equal(r.requests, 23490);
    assert_close(r.seconds, 1.67);
    assert_close(r.rate, 23490 / 1.67);
    assert_int_equal(r.bytes, (int64_t)(2.24 * 1024 * 1024));
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, 9.32 * 1.67 / 23490 * 1e6, NO, NO, NO, NO, NO, NO, 30000);
}

static void text_tells_the_same(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_read, "siege-4.0.7-text.txt");
    assert_int_equal(r.connections, 5);
    assert_int_equal(r.requests, 50);
    assert_close(r.seconds, 0.01);
    assert_int_equal(r.bytes, NO); /* less than a hundredth of a megabyte */
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, 5.0 * 0.01 / 50 * 1e6, NO, NO, NO, NO, NO, NO, 10000);
}

static void failures_were_not_answered_and_bad_statuses_were(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_read, "siege-4.0.7-text-failures.txt");
    assert_int_equal(r.requests, 21);
    assert_errors(r, NO, NO, NO, NO, 0, 29);
    r = read_output(wr_siege_read, "siege-4.0.7-json-failures.txt");
    assert_int_equal(r.requests, 100);
    assert_errors(r, NO, NO, NO, NO, 0, 100);
    r = read_output(wr_siege_read, "siege-4.0.7-json-status.txt");
    assert_int_equal(r.requests, 200);
    assert_errors(r, NO, NO, NO, NO, 200 - 92, 0);
}

static void fewer_clients_than_asked_for_are_no_result(void **state)
{
    (void)state;
    refuse_output(wr_siege_read, "siege-4.0.7-json-capped.txt", "fewer clients");
    refuse_output(wr_siege_read, "siege-4.0.7-text-capped.txt", "`limit`");
}

static void what_took_no_time_is_refused(void **state)
{
    (void)state;
    refuse_output(wr_siege_read, "siege-4.0.7-json-refused.txt", "how long");
    refuse_text(wr_siege_read, MK_STR(""), "siege -q prints nothing without -j");
    refuse_text(wr_siege_read, MK_STR("Transactions:\t 5 hits\nElapsed time:\t 1.00 secs\n"), "lacks");
}

static void output_that_is_cut_is_refused(void **state)
{
    (void)state;
    cut_anywhere(wr_siege_read, "siege-4.0.7-text-failures.txt");
    cut_anywhere(wr_siege_read, "siege-4.0.7-json-status.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_tells_mean_and_greatest),
        cmocka_unit_test(text_tells_the_same),
        cmocka_unit_test(failures_were_not_answered_and_bad_statuses_were),
        cmocka_unit_test(fewer_clients_than_asked_for_are_no_result),
        cmocka_unit_test(what_took_no_time_is_refused),
        cmocka_unit_test(output_that_is_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
