/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void siege_json_has_mean_and_maximum(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_parse_output, "siege-4.0.7-json.txt");
    assert_int_equal(r.requests, 23490);
    assert_close(r.seconds, 1.67);
    assert_close(r.rate, 23490 / 1.67);
    assert_int_equal(r.bytes, (int64_t)(2.24 * 1024 * 1024));
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, 9.32 * 1.67 / 23490 * 1e6, NO, NO, NO, NO, NO, NO, 30000);
}

static void siege_text_equals_json(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_parse_output, "siege-4.0.7-text.txt");
    assert_int_equal(r.connections, 5);
    assert_int_equal(r.requests, 50);
    assert_close(r.seconds, 0.01);
    assert_int_equal(r.bytes, NO); /* fewer than 0.01 MB */
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, 5.0 * 0.01 / 50 * 1e6, NO, NO, NO, NO, NO, NO, 10000);
}

static void siege_failures_are_not_responses_but_bad_statuses_are(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_siege_parse_output, "siege-4.0.7-text-failures.txt");
    assert_int_equal(r.requests, 21);
    assert_errors(r, NO, NO, NO, NO, 0, 29);
    r = read_output(wr_siege_parse_output, "siege-4.0.7-json-failures.txt");
    assert_int_equal(r.requests, 100);
    assert_errors(r, NO, NO, NO, NO, 0, 100);
    r = read_output(wr_siege_parse_output, "siege-4.0.7-json-status.txt");
    assert_int_equal(r.requests, 200);
    assert_errors(r, NO, NO, NO, NO, 200 - 92, 0);
}

static void siege_fewer_clients_than_requested_are_rejected(void **state)
{
    (void)state;
    expect_output_rejected(wr_siege_parse_output, "siege-4.0.7-json-capped.txt", "fewer clients");
    expect_output_rejected(wr_siege_parse_output, "siege-4.0.7-text-capped.txt", "`limit`");
}

static void siege_run_without_time_is_rejected(void **state)
{
    (void)state;
    expect_output_rejected(wr_siege_parse_output, "siege-4.0.7-json-refused.txt", "how long");
    expect_text_rejected(wr_siege_parse_output, MK_STR(""), "siege -q prints nothing without -j");
    expect_text_rejected(wr_siege_parse_output, MK_STR("Transactions:\t 5 hits\nElapsed time:\t 1.00 secs\n"),
                         "lacks");
}

static void siege_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_siege_parse_output, "siege-4.0.7-text-failures.txt");
    check_truncated_output(wr_siege_parse_output, "siege-4.0.7-json-status.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siege_json_has_mean_and_maximum),
        cmocka_unit_test(siege_text_equals_json),
        cmocka_unit_test(siege_failures_are_not_responses_but_bad_statuses_are),
        cmocka_unit_test(siege_fewer_clients_than_requested_are_rejected),
        cmocka_unit_test(siege_run_without_time_is_rejected),
        cmocka_unit_test(siege_truncated_output_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
