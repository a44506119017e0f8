/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void h2load_http2_http1_and_tls_are_read_alike(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_h2load_parse_output, "h2load-1.52.0-h2.txt");
    assert_int_equal(r.connections, 10);
    assert_int_equal(r.requests, 1000);
    assert_close(r.seconds, 0.02714);
    assert_close(r.rate, 36847.34);
    assert_int_equal(r.bytes, 225490);
    assert_errors(r, NO, NO, NO, 0, 0, 0);
    assert_latency(r, 187, NO, NO, NO, NO, NO, NO, 516);
    r = read_output(wr_h2load_parse_output, "h2load-1.52.0-h1.txt");
    assert_int_equal(r.bytes, 338000);
    assert_latency(r, 242, NO, NO, NO, NO, NO, NO, 514);
    r = read_output(wr_h2load_parse_output, "h2load-1.52.0-tls.txt");
    assert_int_equal(r.requests, 1000);
    assert_latency(r, 149, NO, NO, NO, NO, NO, NO, 296);
}

static void h2load_timed_run_counts_completed_requests(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_h2load_parse_output, "h2load-1.52.0-timed.txt");
    assert_int_equal(r.requests, 63939);
    assert_close(r.seconds, 1);
    assert_close(r.latency_us.max, 2080);
}

static void h2load_bad_statuses_are_responses_and_resets_are_not(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_h2load_parse_output, "h2load-1.52.0-status.txt");
    assert_int_equal(r.requests, 1000);
    assert_errors(r, NO, NO, NO, 0, 522, 0);
    r = read_output(wr_h2load_parse_output, "h2load-1.52.0-failures.txt");
    assert_int_equal(r.requests, 514 + 255);
    assert_errors(r, NO, NO, NO, 0, 255, 231);
    r = read_output(wr_h2load_parse_output, "h2load-1.52.0-h1-failures.txt");
    assert_int_equal(r.requests, 15 + 7);
    assert_errors(r, NO, NO, NO, 0, 7, 78);
}

static void h2load_timeouts_are_counted_once(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_h2load_parse_output, "h2load-1.52.0-timeout.txt");
    assert_int_equal(r.requests, 0);
    assert_errors(r, NO, NO, NO, 2, 0, 2);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

static void h2load_missing_server_gives_only_errors(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_h2load_parse_output, "h2load-1.52.0-refused.txt");
    assert_int_equal(r.requests, 0);
    assert_int_equal(r.errors.other, 100);
    assert_close(r.rate, 0);
}

/* Later versions have more columns; the numbers are invented. */
static void h2load_columns_are_found_by_name(void **state)
{
    (void)state;
    struct wr_result r = read_text(
        wr_h2load_parse_output,
        MK_STR(
            "finished in 1.00s, 100.00 req/s, 1.00MB/s\n"
            "requests: 100 total, 100 started, 100 done, 100 succeeded, 0 failed, 0 errored, 0 timeout\n"
            "status codes: 100 2xx, 0 3xx, 0 4xx, 0 5xx\n"
            "traffic: 1.00KB (1024) total, 10B (10) headers (space savings 1.00%), 100B (100) data\n"
            "                 min         max      median         p95         p99        mean    sd  +/- sd\n"
            "request     :   10us      2.00s       30us     1.50ms     1.60ms      50us   1us  99.00%\n"
            "connect     :    1us        1us        1us        1us        1us       1us   1us  99.00%\n"
            "req/s       :   1.00       1.00       1.00       1.00       1.00      1.00  1.00  99.00%\n"));
    assert_latency(r, 50, 30, NO, NO, 1500, 1600, NO, 2e6);
}

static void h2load_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_h2load_parse_output, "h2load-1.52.0-failures.txt");
    expect_text_rejected(wr_h2load_parse_output, MK_STR("starting benchmark...\n"), "finished in");
    expect_text_rejected(wr_h2load_parse_output, MK_STR("finished in 1.00s, 1.00 req/s, 1B/s\n"),
                         "requests:");
    expect_text_rejected(
        wr_h2load_parse_output,
        MK_STR("finished in 1.00s, 1.00 req/s, 1B/s\n"
               "requests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed, 0 errored, 0 timeout\n"),
        "status codes");
}

static void h2load_more_errors_than_requests_are_rejected(void **state)
{
    (void)state;
    expect_text_rejected(
        wr_h2load_parse_output,
        MK_STR("finished in 1.00s, 1.00 req/s, 1B/s\n"
               "requests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed, 2 errored, 0 timeout\n"
               "status codes: 1 2xx, 0 3xx, 0 4xx, 0 5xx\n"),
        "number of responses");
}

static void h2load_wide_table_is_harmless(void **state)
{
    (void)state;
    static const char text[] =
        "finished in 1.00s, 1.00 req/s, 1B/s\n"
        "requests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed, 0 errored, 0 timeout\n"
        "status codes: 1 2xx, 0 3xx, 0 4xx, 0 5xx\n"
        " min a b c d e f g h i j k l m n o p q r s t max\n"
        "time for request: 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us 1us\n";
    struct wr_result r = read_text(wr_h2load_parse_output, mk_str_from_c(text));
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h2load_http2_http1_and_tls_are_read_alike),
        cmocka_unit_test(h2load_timed_run_counts_completed_requests),
        cmocka_unit_test(h2load_bad_statuses_are_responses_and_resets_are_not),
        cmocka_unit_test(h2load_timeouts_are_counted_once),
        cmocka_unit_test(h2load_missing_server_gives_only_errors),
        cmocka_unit_test(h2load_columns_are_found_by_name),
        cmocka_unit_test(h2load_truncated_output_is_rejected),
        cmocka_unit_test(h2load_more_errors_than_requests_are_rejected),
        cmocka_unit_test(h2load_wide_table_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
