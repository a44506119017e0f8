/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>

#include "unit/test.h"

static const uint64_t EDGES[] = {
    0,         1, 9, 10, 15, 16, 99, 100, UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT64_MAX, UINT64_MAX - 1,
    UINT64_MAX};

static void num_parse_reads_digits(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_true(mk_num_parse(MK_STR("0"), &n) && n == 0);
    assert_true(mk_num_parse(MK_STR("0042"), &n) && n == 42);
    assert_true(mk_num_parse(MK_STR("18446744073709551615"), &n) && n == UINT64_MAX);
    assert_true(mk_num_parse(MK_STR("000000000000000000000000000000000001"), &n) && n == 1);
    assert_true(mk_num_parse(mk_str_of("12345", 2), &n) && n == 12);
}

static void num_parse_rejects_other_text_and_sets_nothing(void **state)
{
    (void)state;
    static const char *const decimal[] = {"",
                                          " ",
                                          "+1",
                                          "-1",
                                          "1 ",
                                          " 1",
                                          "1.0",
                                          "a",
                                          "0x1",
                                          "1e3",
                                          "1,000",
                                          "1\n",
                                          "١",
                                          "18446744073709551616",
                                          "99999999999999999999",
                                          "184467440737095516150"};
    uint64_t n = 7;
    for (size_t i = 0; i < MK_LEN(decimal); i++)
        if (mk_num_parse(mk_str_from_c(decimal[i]), &n) || n != 7)
            fail_msg("\"%s\" was accepted as a number", decimal[i]);
    assert_false(mk_num_parse(MK_STR_NULL, &n));
    assert_false(mk_num_parse(MK_STR("1\0"), &n));
}

static void num_parse_int_reads_signed_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "-", "--1", "+1", "- 1", "9223372036854775808", "-9223372036854775809", "1.0"};
    int64_t n = 7;
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_num_parse_int(mk_str_from_c(bad[i]), &n) || n != 7)
            fail_msg("\"%s\" was accepted as an integer", bad[i]);
    assert_false(mk_num_parse_int(MK_STR_NULL, &n));
    assert_true(mk_num_parse_int(MK_STR("-42"), &n) && n == -42);
    assert_true(mk_num_parse_int(MK_STR("-0"), &n) && n == 0);
    assert_true(mk_num_parse_int(MK_STR("9223372036854775807"), &n) && n == INT64_MAX);
    assert_true(mk_num_parse_int(MK_STR("-9223372036854775808"), &n) && n == INT64_MIN);
}

static void num_write_matches_printf(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(EDGES); i++) {
        char out[MK_NUM_MAX], expected[32];
        uint64_t back = 0;
        mk_str s = mk_str_of(out, mk_num_write(out, EDGES[i]));
        snprintf(expected, sizeof expected, "%" PRIu64, EDGES[i]);
        assert_str(s, expected);
        assert_true(mk_num_parse(s, &back) && back == EDGES[i]);
        s = mk_str_of(out, mk_num_write_hex(out, EDGES[i]));
        snprintf(expected, sizeof expected, "%" PRIx64, EDGES[i]);
        assert_str(s, expected);
    }
}

static void num_write_padded_fills_the_width(void **state)
{
    (void)state;
    char out[] = "xxxxx";
    mk_num_write_padded(out, 7, 2);
    assert_string_equal(out, "07xxx");
    mk_num_write_padded(out, 2026, 4);
    assert_string_equal(out, "2026x");
    mk_num_write_padded(out, 0, 3);
    assert_string_equal(out, "0006x");
    mk_num_write_padded(out, 12345, 2);
    assert_string_equal(out, "4506x");
    mk_num_write_padded(out, 1, 0);
    assert_string_equal(out, "4506x");
}

static void num_add_detects_overflow(void **state)
{
    (void)state;
    uint64_t sum;
    assert_true(mk_num_add(UINT64_MAX - 1, 1, &sum) && sum == UINT64_MAX);
    assert_true(mk_num_add(0, 0, &sum) && sum == 0);
    assert_false(mk_num_add(UINT64_MAX, 1, &sum));
    assert_false(mk_num_add(UINT64_MAX, UINT64_MAX, &sum));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(num_parse_reads_digits),
        cmocka_unit_test(num_parse_rejects_other_text_and_sets_nothing),
        cmocka_unit_test(num_parse_int_reads_signed_numbers),
        cmocka_unit_test(num_write_matches_printf),
        cmocka_unit_test(num_write_padded_fills_the_width),
        cmocka_unit_test(num_add_detects_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
