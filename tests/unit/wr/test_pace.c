/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/wr/output.h"
#include "wr/clients/clients.h"

enum { NO = WR_UNKNOWN };

static void pace_run_reports_everything(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_pace_parse_output, "pace-2.0.0-plain.txt");
    assert_int_equal(r.connections, 4);
    assert_int_equal(r.requests, 200);
    assert_close(r.seconds, 1.0);
    assert_close(r.rate, 200.0);
    assert_int_equal(r.bytes, 67600);
    assert_errors(r, 0, 0, 0, 0, 0, 0);
    assert_latency(r, 172.663, 155.647, 204.799, 255.999, 303.103, 647.167, NO, 1175.625);
    assert_null(r.doubt);
}

static void pace_only_correct_responses_are_requests(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_pace_parse_output, "pace-2.0.0-failures.txt");
    assert_int_equal(r.requests, 123);
    assert_close(r.rate, 123);
    assert_errors(r, 0, 18, 0, 0, 59, 0);
    r = read_output(wr_pace_parse_output, "pace-2.0.0-status.txt");
    assert_errors(r, 0, 0, 0, 0, 118, 0);
    assert_close(r.latency_us.p99, NO); /* null in the output, because there were too few values */
}

static void pace_served_includes_other_responses(void **state)
{
    (void)state;
    struct wr_result r;
    const char *why;
    assert_true(wr_pace_parse_output(MK_STR("{\"requests\":90,\"seconds\":1,\"asked\":110,\"unsent\":7,"
                                            "\"before\":{\"requests\":51,\"errors\":0}}"),
                                     &r, &why));
    assert_int_equal(r.requests, 90);
    assert_int_equal(wr_result_requests_served(&r), 154);
    assert_true(wr_pace_parse_output(MK_STR("{\"requests\":90,\"seconds\":1}"), &r, &why));
    assert_int_equal(wr_result_requests_served(&r), 90);
}

static void pace_late_client_is_doubtful(void **state)
{
    (void)state;
    struct wr_result r = read_output(wr_pace_parse_output, "pace-2.0.0-late.txt");
    assert_non_null(r.doubt);
    assert_contains(mk_str_from_c(r.doubt), "its own pace");
    assert_int_equal(r.requests, 500);
}

static void pace_single_latencies_can_be_doubtful(void **state)
{
    (void)state;
    struct wr_result r;
    const char *why;
    assert_true(wr_pace_parse_output(MK_STR("{\"requests\":90,\"seconds\":1,\"kept_pace\":false,"
                                            "\"doubtful\":[\"p99\",\"p999\",\"else\"]}"),
                                     &r, &why));
    assert_non_null(r.doubt);
    assert_string_equal(wr_result_quantiles[5], "p99");
    assert_int_equal(r.doubtful, 1u << 5 | 1u << 6);
    assert_true(wr_pace_parse_output(
        MK_STR("{\"requests\":90,\"seconds\":1,\"kept_pace\":true,\"doubtful\":[]}"), &r, &why));
    assert_null(r.doubt);
    assert_int_equal(r.doubtful, 0);
}

static void pace_run_that_did_not_start_is_rejected(void **state)
{
    (void)state;
    expect_output_rejected(wr_pace_parse_output, "pace-2.0.0-refused.txt", "JSON");
    expect_text_rejected(wr_pace_parse_output, MK_STR("{\"pace\":\"2.0.0\"}"), "number of responses");
    expect_text_rejected(wr_pace_parse_output, MK_STR("{\"requests\":5,\"seconds\":null,\"rate\":null}"),
                         "how long");
    expect_text_rejected(wr_pace_parse_output, MK_STR("{\"requests\":1e99,\"seconds\":1}"),
                         "number of responses");
}

static void pace_truncated_output_is_rejected(void **state)
{
    (void)state;
    check_truncated_output(wr_pace_parse_output, "pace-2.0.0-failures.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pace_run_reports_everything),
        cmocka_unit_test(pace_only_correct_responses_are_requests),
        cmocka_unit_test(pace_served_includes_other_responses),
        cmocka_unit_test(pace_late_client_is_doubtful),
        cmocka_unit_test(pace_single_latencies_can_be_doubtful),
        cmocka_unit_test(pace_run_that_did_not_start_is_rejected),
        cmocka_unit_test(pace_truncated_output_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
