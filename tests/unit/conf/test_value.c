/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/value.h"

#include "unit/test.h"

static void conf_value_booleans_are_parsed(void **state)
{
    (void)state;
    static const char *const words[] = {"off", "on", "no", "yes", "FALSE", "TRUE", "Off", "oN"};
    for (size_t i = 0; i < MK_LEN(words); i++) {
        bool b = i % 2 == 0;
        assert_int_equal(mk_conf_value_parse_bool(mk_str_from_c(words[i]), &b), 0);
        assert_int_equal(b, i % 2);
    }
    bool b;
    assert_int_equal(mk_conf_value_parse_bool(MK_STR("1"), &b), -EINVAL);
    assert_int_equal(mk_conf_value_parse_bool(MK_STR(""), &b), -EINVAL);
    assert_int_equal(mk_conf_value_parse_bool(MK_STR("onn"), &b), -EINVAL);
}

static void conf_value_numbers_are_parsed(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_int_equal(mk_conf_value_parse_num(MK_STR("18446744073709551615"), &n), 0);
    assert_true(n == UINT64_MAX);
    assert_int_equal(mk_conf_value_parse_num(MK_STR("18446744073709551616"), &n), -ERANGE);
    assert_int_equal(mk_conf_value_parse_num(MK_STR("99999999999999999999999"), &n), -ERANGE);
    assert_int_equal(mk_conf_value_parse_num(MK_STR("-1"), &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_num(MK_STR("1 "), &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_num(MK_STR("0x10"), &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_num(MK_STR(""), &n), -EINVAL);
    assert_true(n == UINT64_MAX);
}

static void size_is(const char *text, uint64_t unit, uint64_t expected)
{
    uint64_t n;
    assert_int_equal(mk_conf_value_parse_size(mk_str_from_c(text), unit, &n), 0);
    assert_true(n == expected);
}

static void conf_value_sizes_are_parsed(void **state)
{
    (void)state;
    uint64_t n;
    size_is("0", 0, 0);
    size_is("10", 0, 10);
    size_is("10", 1024, 10240);
    size_is("10B", 1024, 10);
    size_is("10k", 1024, 10240);
    size_is("3M", 0, 3 << 20);
    size_is("2g", 0, 2ULL << 30);
    size_is("17179869183G", 0, 17179869183ULL << 30);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("17179869184G"), 0, &n), -ERANGE);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("18446744073709551615"), 1024, &n), -ERANGE);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("K"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("1KB"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("1 K"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("1T"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("1.5K"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_size(MK_STR("99999999999999999999999K"), 0, &n), -ERANGE);
}

static void time_is(const char *text, uint64_t unit, uint64_t expected)
{
    uint64_t n;
    assert_int_equal(mk_conf_value_parse_time(mk_str_from_c(text), unit, &n), 0);
    assert_true(n == expected);
}

static void conf_value_times_are_parsed(void **state)
{
    (void)state;
    uint64_t n;
    time_is("0", 0, 0);
    time_is("15", 0, 15000);
    time_is("15", 1, 15);
    time_is("15ms", 0, 15);
    time_is("15S", 1, 15000);
    time_is("2m", 0, 120000);
    time_is("2h", 0, 7200000);
    time_is("2d", 0, 172800000);
    assert_int_equal(mk_conf_value_parse_time(MK_STR("18446744073709551615"), 0, &n), -ERANGE);
    assert_int_equal(mk_conf_value_parse_time(MK_STR("ms"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_time(MK_STR("1w"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_time(MK_STR("1O"), 0, &n), -EINVAL);
    assert_int_equal(mk_conf_value_parse_time(MK_STR(""), 0, &n), -EINVAL);
}

static void writes_size(uint64_t n, uint64_t unit, const char *expected)
{
    char buffer[64];
    uint64_t again;
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_value_write_size(&b, n, unit);
    assert_str(mk_buf_str(&b), expected);
    assert_int_equal(mk_conf_value_parse_size(mk_buf_str(&b), unit, &again), 0);
    assert_true(again == n);
}

static void writes_time(uint64_t n, const char *expected)
{
    char buffer[64];
    uint64_t again;
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_conf_value_write_time(&b, n);
    assert_str(mk_buf_str(&b), expected);
    assert_int_equal(mk_conf_value_parse_time(mk_buf_str(&b), 60000, &again), 0);
    assert_true(again == n);
}

static void conf_value_is_written_in_the_largest_exact_unit(void **state)
{
    (void)state;
    writes_size(0, 0, "0");
    writes_size(0, 1024, "0");
    writes_size(1000, 0, "1000");
    writes_size(1000, 1024, "1000B");
    writes_size(1024, 1, "1K");
    writes_size(1536, 1024, "1536B");
    writes_size(1536 << 10, 0, "1536K");
    writes_size(3ULL << 30, 0, "3G");
    writes_size(UINT64_MAX, 0, "18446744073709551615");
    writes_time(0, "0");
    writes_time(1500, "1500ms");
    writes_time(90000, "90s");
    writes_time(60000, "1m");
    writes_time(7200000, "2h");
    writes_time(UINT64_MAX, "18446744073709551615ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conf_value_booleans_are_parsed),
        cmocka_unit_test(conf_value_numbers_are_parsed),
        cmocka_unit_test(conf_value_sizes_are_parsed),
        cmocka_unit_test(conf_value_times_are_parsed),
        cmocka_unit_test(conf_value_is_written_in_the_largest_exact_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
