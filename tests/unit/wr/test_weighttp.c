/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void weighttp_old_text_has_no_latency(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_weighttp_parse_output, "weighttp-0.3-keepalive.txt");
    assert_int_equal(r.connections, 10);
    assert_int_equal(r.requests, 1000);
    assert_close(r.seconds, 0.054131);
    assert_close(r.rate, 1000 / 0.054131);
    assert_int_equal(r.bytes, 338000);
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

static void weighttp_old_text_errors_are_computed(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_weighttp_parse_output, "weighttp-0.3-failures.txt");
    assert_int_equal(r.requests, 488 + 271);
    assert_errors(r, NO, NO, NO, NO, 271, 512 - 271);
    assert_close(r.rate, (488 + 271) / 0.179053);
    r = read_output(wr_weighttp_parse_output, "weighttp-0.3-status.txt");
    assert_int_equal(r.requests, 1000);
    assert_errors(r, NO, NO, NO, NO, 455, 0);
    r = read_output(wr_weighttp_parse_output, "weighttp-0.3-refused.txt");
    assert_int_equal(r.requests, 0);
    assert_int_equal(r.errors.other, 10);
    assert_close(r.rate, 0);
}

static void weighttp_json_times_are_microseconds(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_weighttp_parse_output, "weighttp-0.5-keepalive.txt");
    assert_int_equal(r.requests, 1000);
    assert_close(r.seconds, 0.031120);
    assert_close(r.rate, 1000 / 0.031120);
    assert_int_equal(r.bytes, 338000);
    assert_errors(r, NO, NO, NO, NO, 0, 0);
    assert_latency(r, 289, 105, 129, 174, 1257, 5081, NO, 5139);
    r = read_output(wr_weighttp_parse_output, "weighttp-0.5-quiet.txt");
    assert_close(r.seconds, 0.114627);
    assert_latency(r, 886, 444, 546, 2964, 4560, 5889, NO, 6105);
}

static void weighttp_json_has_both_kinds_of_failures(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_weighttp_parse_output, "weighttp-0.5-failures.txt");
    assert_int_equal(r.requests, 492 + 239);
    assert_errors(r, NO, NO, NO, NO, 239, 508 - 239);
    r = read_output(wr_weighttp_parse_output, "weighttp-0.5-status.txt");
    assert_int_equal(r.requests, 1000);
    assert_errors(r, NO, NO, NO, NO, 509, 0);
}

/* The formats of intermediate versions and of lwan; the numbers are invented. */
static void weighttp_text_of_intermediate_versions_is_read(void **state)
{
    (void)state;
    struct wr_result r = read_text(wr_weighttp_parse_output,
                                   MK_STR("finished in 1.500000 sec, 66 req/s, 1 kbyte/s\n"
                                          "requests:  100 started, 100 done, 100 total\n"
                                          "responses: 90 success, 10 fail, 4 error\n"
                                          "status codes: 90 2xx, 0 3xx, 6 4xx, 0 5xx\n"
                                          "traffic: 1000 bytes total, 10 bytes headers, 990 bytes body\n"));
    assert_int_equal(r.requests, 96);
    assert_close(r.seconds, 1.5);
    assert_errors(r, NO, NO, NO, NO, 6, 4);
}

static void weighttp_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_weighttp_parse_output, "weighttp-0.3-failures.txt");
    check_truncated_output(wr_weighttp_parse_output, "weighttp-0.5-failures.txt");
    expect_text_rejected(wr_weighttp_parse_output, MK_STR("finished in 1.5 sec, 1 req/s\n"), "requests:");
    expect_text_rejected(wr_weighttp_parse_output,
                         MK_STR("finished in 1.5 sec, 1 req/s\n"
                                "requests: 1 total, 1 started, 1 done, 1 succeeded, 0 failed, 0 errored\n"),
                         "status codes");
    expect_text_rejected(wr_weighttp_parse_output, MK_STR("error: request_count 0\n"), "neither JSON");
}

static void weighttp_other_json_is_rejected(void **state)
{
    (void)state;
    expect_text_rejected(wr_weighttp_parse_output, MK_STR("{}"), "lacks");
    expect_text_rejected(wr_weighttp_parse_output,
                         MK_STR("{\"secs_elapsed\": -1, \"response_counts\": {\"pass\": 1, \"fail\": 0},"
                                " \"status_codes\": {\"4xx\": 0, \"5xx\": 0}}"),
                         "lacks");
    expect_text_rejected(wr_weighttp_parse_output,
                         MK_STR("{\"secs_elapsed\": 0, \"response_counts\": {\"pass\": 1, \"fail\": 0},"
                                " \"status_codes\": {\"4xx\": 0, \"5xx\": 0}}"),
                         "how long");
}

static void weighttp_times_in_other_units_are_ignored(void **state)
{
    (void)state;
    struct wr_result r =
        read_text(wr_weighttp_parse_output,
                  MK_STR("{\"secs_elapsed\": 1, \"response_counts\": {\"pass\": 1, \"fail\": 0},"
                         " \"status_codes\": {\"4xx\": 0, \"5xx\": 0},"
                         " \"response_times\": {\"unit\": \"ns\", \"avg\": 5}}"));
    assert_latency(r, NO, NO, NO, NO, NO, NO, NO, NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weighttp_old_text_has_no_latency),
        cmocka_unit_test(weighttp_old_text_errors_are_computed),
        cmocka_unit_test(weighttp_json_times_are_microseconds),
        cmocka_unit_test(weighttp_json_has_both_kinds_of_failures),
        cmocka_unit_test(weighttp_text_of_intermediate_versions_is_read),
        cmocka_unit_test(weighttp_truncated_output_is_rejected),
        cmocka_unit_test(weighttp_other_json_is_rejected),
        cmocka_unit_test(weighttp_times_in_other_units_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
