/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void wrk_run_without_errors_has_percentiles(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_wrk_parse_output, "wrk-4.1.0-plain.txt");
    assert_int_equal(r.connections, 10);
    assert_int_equal(r.requests, 46943);
    assert_close(r.seconds, 1.00);
    assert_close(r.rate, 46932.82);
    assert_int_equal(r.bytes, (int64_t)(15.13 * 1024 * 1024));
    assert_errors(r, 0, 0, 0, 0, 0, NO);
    assert_latency(r, 206.18, 192, 228, 273, NO, 411, NO, 4510);
    assert_int_equal(wr_result_errors(&r), 0);
}

static void wrk_without_latency_option_has_no_percentiles(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_wrk_parse_output, "wrk-4.1.0-no-latency.txt");
    assert_int_equal(r.requests, 74347);
    assert_latency(r, 195.57, NO, NO, NO, NO, NO, NO, 4440);
}

static void wrk_broken_connections_and_bad_statuses_are_errors(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_wrk_parse_output, "wrk-4.1.0-errors.txt");
    assert_int_equal(r.requests, 40082);
    assert_errors(r, 0, 13417, 0, 0, 13456, NO);
    assert_int_equal(wr_result_errors(&r), 13417 + 13456);
    assert_close(r.latency_us.p99, 1090);
}

static void wrk_run_without_responses_has_no_latency(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_wrk_parse_output, "wrk-4.1.0-slow.txt");
    assert_int_equal(r.requests, 0);
    assert_close(r.rate, 0);
    assert_close(r.seconds, 2);
    assert_int_equal(r.bytes, 120);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

static void wrk_failed_run_is_rejected(void **state)
{
    (void)state;
    expect_output_rejected(wr_wrk_parse_output, "wrk-4.1.0-refused.txt", "requests in");
    expect_output_rejected(wr_wrk_parse_output, "wrk-4.1.0-threads.txt", "requests in");
    expect_text_rejected(wr_wrk_parse_output, MK_STR(""), "requests in");
}

static void wrk_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_wrk_parse_output, "wrk-4.1.0-errors.txt");
    expect_text_rejected(wr_wrk_parse_output, MK_STR("  10 requests in 1.00s, 1.00KB read\n"),
                         "Requests/sec");
}

static void wrk_units_are_parsed(void **state)
{
    (void)state;
    struct wr_result r =
        read_text(wr_wrk_parse_output, MK_STR("    Latency     1.50s    10.00ms    1.10m    90.00%\n"
                                              "  Latency Distribution\n"
                                              "     50%    1.25s\n"
                                              "     90%    2.00m\n"
                                              "     99%    1.50h\n"
                                              "  10 requests in 2.50m, 1.50GB read\n"
                                              "Requests/sec:      0.07\n"));
    assert_latency(r, 1.5e6, 1.25e6, NO, 120e6, NO, 5400e6, NO, 66e6);
    assert_close(r.seconds, 150);
    assert_int_equal(r.bytes, 1610612736);
}

/* The format of wrk2 with --latency; the numbers are invented. */
static void wrk_only_corrected_times_of_wrk2_count(void **state)
{
    (void)state;
    struct wr_result r =
        read_text(wr_wrk_parse_output,
                  MK_STR("  Thread calibration: mean lat.: 987 usec, rate sampling interval: 10 msec\n"
                         "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
                         "    Latency     1.10ms  300.00us   9.00ms   68.00%\n"
                         "    Req/Sec     1.04k     1.08k    2.50k    72.00%\n"
                         "  Latency Distribution (HdrHistogram - Recorded Latency)\n"
                         " 50.000%    1.00ms\n 75.000%    1.20ms\n 90.000%    1.40ms\n 99.000%    2.00ms\n"
                         " 99.900%    8.00ms\n 99.990%    8.90ms\n 99.999%    9.00ms\n100.000%    9.10ms\n"
                         "\n  Detailed Percentile spectrum:\n"
                         "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n"
                         "       0.043     0.000000            1         1.00\n"
                         "#[Mean    =        1.101, StdDeviation   =        0.301]\n"
                         "  Latency Distribution (HdrHistogram - Uncorrected Latency)\n"
                         " 50.000%    0.10ms\n 99.900%    0.20ms\n"
                         "  4000 requests in 2.00s, 1.00MB read\n"
                         "Requests/sec:   2000.00\n"));
    assert_latency(r, 1100, 1000, 1200, 1400, NO, 2000, 8000, 9100);
}

static void wrk_invalid_numbers_are_rejected(void **state)
{
    (void)state;
    expect_text_rejected(wr_wrk_parse_output,
                         MK_STR("  nan requests in 1.00s, 1.00KB read\nRequests/sec: 1.00\n"), "requests in");
    expect_text_rejected(wr_wrk_parse_output,
                         MK_STR("  -1 requests in 1.00s, 1.00KB read\nRequests/sec: 1.00\n"), "requests in");
    expect_text_rejected(
        wr_wrk_parse_output,
        MK_STR("  99999999999999999999 requests in 1.00s, 1.00KB read\nRequests/sec: 1.00\n"), "requests in");
    expect_text_rejected(wr_wrk_parse_output,
                         MK_STR("  1 requests in 1.00s, 1.00KB read\nRequests/sec: inf\n"), "Requests/sec");
    expect_text_rejected(wr_wrk_parse_output,
                         MK_STR("  1 requests in 1.00s, 9999999TB read\nRequests/sec: 1\n"), "requests in");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrk_run_without_errors_has_percentiles),
        cmocka_unit_test(wrk_without_latency_option_has_no_percentiles),
        cmocka_unit_test(wrk_broken_connections_and_bad_statuses_are_errors),
        cmocka_unit_test(wrk_run_without_responses_has_no_latency),
        cmocka_unit_test(wrk_failed_run_is_rejected),
        cmocka_unit_test(wrk_truncated_output_is_rejected),
        cmocka_unit_test(wrk_units_are_parsed),
        cmocka_unit_test(wrk_only_corrected_times_of_wrk2_count),
        cmocka_unit_test(wrk_invalid_numbers_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
