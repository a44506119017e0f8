/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of rates and sizes. */
#include "unit/test.h"

#include "rate.h"
#include "rate_table.h"

enum { SECOND = 1000 * LIMITS_TICKS };

static void rate_requests_per_time_unit_are_parsed(void **state)
{
    static const struct {
        const char *text;
        uint64_t interval, tolerance;
    } rates[] = {{"1/s", SECOND, 0},
                 {"10/s", SECOND / 10, 9 * (SECOND / 10)},
                 {"10000/S", 26 /* 25.6 */, 9999 * 26},
                 {"60/m", SECOND, (uint64_t)59 * SECOND},
                 {"3600/h", SECOND, (uint64_t)3599 * SECOND},
                 {"86400/d", SECOND, (uint64_t)86399 * SECOND},
                 {"600000/m", 26, (uint64_t)599999 * 26}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(rates); i++) {
        uint64_t interval = 0, tolerance = 1;
        assert_true(limits_rate_parse_requests(mk_str_from_c(rates[i].text), &interval, &tolerance));
        assert_int_equal(interval, rates[i].interval);
        assert_int_equal(tolerance, rates[i].tolerance);
    }
}

static void rate_malformed_requests_are_rejected(void **state)
{
    static const char *const wrong[] = {"",
                                        "1",
                                        "/s",
                                        "0/s",
                                        "10001/s",
                                        "600001/m",
                                        "1/",
                                        "1/x",
                                        "1/ss",
                                        "1/min",
                                        "x/s",
                                        "1/s/s",
                                        "-1/s",
                                        "1 /s",
                                        "1/s ",
                                        "1.5/s",
                                        "18446744073709551616/d"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++) {
        uint64_t interval, tolerance;
        if (limits_rate_parse_requests(mk_str_from_c(wrong[i]), &interval, &tolerance))
            fail_msg("`%s` is a rate", wrong[i]);
    }
}

static void rate_sizes_accept_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"0", 0},
                 {"7", 7},
                 {"1k", 1024},
                 {"500K", 500 * 1024},
                 {"2M", 2 << 20},
                 {"3g", (uint64_t)3 << 30},
                 {"1T", (uint64_t)1 << 40},
                 {"1024G", (uint64_t)1 << 40},
                 {"1099511627776", (uint64_t)1 << 40}};
    static const char *const wrong[] = {
        "", "k", "1X", "1kk", "K1", "2T", "1025G", "1099511627777", "-1", "1 K", "18446744073709551615K"};
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        assert_true(limits_rate_parse_size(mk_str_from_c(sizes[i].text), &bytes));
        assert_int_equal(bytes, sizes[i].bytes);
    }
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        if (limits_rate_parse_size(mk_str_from_c(wrong[i]), &bytes))
            fail_msg("`%s` is a size", wrong[i]);
    assert_false(limits_rate_parse_size(mk_str_of("1\0", 2), &bytes));
}

static void rate_bandwidth_minimum_is_1k(void **state)
{
    uint64_t rate;
    (void)state;
    assert_true(limits_rate_parse_bandwidth(MK_STR("1K"), &rate));
    assert_int_equal(rate, 1024);
    assert_true(limits_rate_parse_bandwidth(MK_STR("1T"), &rate));
    assert_false(limits_rate_parse_bandwidth(MK_STR("1023"), &rate));
    assert_false(limits_rate_parse_bandwidth(MK_STR("1M/s"), &rate));
}

static void rate_bytes_convert_to_ticks(void **state)
{
    (void)state;
    assert_int_equal(limits_rate_ticks_for_bytes(1024, 1024), SECOND);
    assert_int_equal(limits_rate_ticks_for_bytes(1536, 1024), SECOND + SECOND / 2);
    assert_int_equal(limits_rate_ticks_for_bytes(512, 1024), SECOND / 2);
    assert_int_equal(limits_rate_ticks_for_bytes(1, (uint64_t)1 << 40), 1); /* the cost is never zero */
    assert_int_equal(limits_rate_ticks_for_bytes(0, 1024), 1);
    assert_int_equal(limits_rate_ticks_for_bytes((uint64_t)1 << 40, 1024), (uint64_t)SECOND << 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_requests_per_time_unit_are_parsed),
        cmocka_unit_test(rate_malformed_requests_are_rejected), cmocka_unit_test(rate_sizes_accept_units),
        cmocka_unit_test(rate_bandwidth_minimum_is_1k), cmocka_unit_test(rate_bytes_convert_to_ticks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
