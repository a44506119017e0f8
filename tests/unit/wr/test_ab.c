/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void ab_table_in_milliseconds_has_no_finer_times(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_ab_parse_output, "ab-2.3-keepalive.txt");
    assert_int_equal(r.connections, 10);
    assert_int_equal(r.requests, 1000);
    assert_close(r.rate, 41211.62);
    assert_close(r.seconds, 1000 / 41211.62);
    assert_int_equal(r.bytes, 338000);
    assert_errors(r, 0, 0, 0, NO, 0, 0);
    assert_latency(r, 243, NO, NO, NO, NO, 1000, NO, 1000);
    r = read_output(wr_ab_parse_output, "ab-2.3-close.txt");
    assert_int_equal(r.bytes, 333000);
    assert_latency(r, 513, NO, 1000, 1000, 1000, 1000, NO, 1000);
}

static void ab_times_of_e_option_override_the_table(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_ab_parse_output, "ab-2.3-csv.txt");
    assert_int_equal(r.requests, 1000);
    assert_close(r.latency_us.mean, 136);
    assert_close(r.latency_us.p90, 155);
    assert_close(r.latency_us.p95, 166);
    assert_close(r.latency_us.p99, 410);
    assert_close(r.latency_us.max, 705);
    assert_true(r.latency_us.p50 > 90 && r.latency_us.p50 <= r.latency_us.p75 && r.latency_us.p75 < 155);
}

static void ab_bad_statuses_and_lengths_are_errors(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_ab_parse_output, "ab-2.3-status.txt");
    assert_int_equal(r.requests, 1000);
    assert_errors(r, 0, 0, 0, NO, 493, 507);
    r = read_output(wr_ab_parse_output, "ab-2.3-failures.txt");
    assert_int_equal(r.requests, 1000); /* ab counts a closed connection as a response of another length */
    assert_errors(r, 0, 0, 0, NO, 249, 751);
}

static void ab_refused_connections_are_not_responses(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_ab_parse_output, "ab-2.3-refused-r.txt");
    assert_int_equal(r.requests, 0);
    assert_close(r.rate, 0);
    assert_errors(r, 0, 10, 0, NO, 0, 5);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

static void ab_aborted_run_is_rejected(void **state)
{
    (void)state;
    expect_output_rejected(wr_ab_parse_output, "ab-2.3-refused.txt", "Complete requests");
    expect_output_rejected(wr_ab_parse_output, "ab-2.3-timeout.txt", "without -r");
}

static void ab_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_ab_parse_output, "ab-2.3-failures.txt");
    check_truncated_output(wr_ab_parse_output, "ab-2.3-csv.txt");
    expect_text_rejected(wr_ab_parse_output, MK_STR("Complete requests:      10\n"), "Requests per second");
}

static void ab_write_errors_are_reported(void **state)
{
    (void)state;
    struct wr_result r =
        read_text(wr_ab_parse_output, MK_STR("Time taken for tests:   2.000 seconds\n"
                                             "Complete requests:      10\n"
                                             "Failed requests:        6\n"
                                             "   (Connect: 1, Receive: 2, Length: 3, Exceptions: 0)\n"
                                             "Write errors:           4\n"
                                             "Requests per second:    5.00 [#/sec] (mean)\n"));
    assert_int_equal(r.requests, 7);
    assert_errors(r, 1, 2, 4, NO, 0, 3);
    assert_close(r.seconds, 2);
    assert_close(r.rate, 3.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ab_table_in_milliseconds_has_no_finer_times),
        cmocka_unit_test(ab_times_of_e_option_override_the_table),
        cmocka_unit_test(ab_bad_statuses_and_lengths_are_errors),
        cmocka_unit_test(ab_refused_connections_are_not_responses),
        cmocka_unit_test(ab_aborted_run_is_rejected),
        cmocka_unit_test(ab_truncated_output_is_rejected),
        cmocka_unit_test(ab_write_errors_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
