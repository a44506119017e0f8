/* SPDX-License-Identifier: Apache-2.0 */
#include "http/range.h"

#include "base/buf.h"
#include "unit/test.h"

enum { MAX = 8 };

/* Compares the ranges as text, "0-4,9-9", or the result if there are no ranges. */
static void check(const char *value, uint64_t size, const char *expected)
{
    struct mk_range out[MAX];
    char buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    int n = mk_range_parse(mk_str_from_c(value), size, out, MAX);
    for (int i = 0; i < n; i++) {
        assert_true(out[i].first <= out[i].last && out[i].last < size);
        mk_buf_addf(&text, "%s%llu-%llu", i ? "," : "", (unsigned long long)out[i].first,
                    (unsigned long long)out[i].last);
    }
    if (n <= 0)
        mk_buf_addf(&text, "%d", n);
    if (!mk_str_eq(mk_buf_str(&text), mk_str_from_c(expected)))
        fail_msg("%s: %.*s, not %s", value, MK_STR_ARG(mk_buf_str(&text)), expected);
}

static void range_single(void **state)
{
    (void)state;
    check("bytes=0-4", 10, "0-4");
    check("bytes=0-0", 10, "0-0");
    check("bytes=9-9", 10, "9-9");
    check("bytes=5-", 10, "5-9");
    check("bytes=0-", 10, "0-9");
    check("bytes=0-99", 10, "0-9");
    check("bytes=-3", 10, "7-9");
    check("bytes=-10", 10, "0-9");
    check("bytes=-99", 10, "0-9");
    check("BYTES=1-2", 10, "1-2");
    check("bytes= 1-2\t", 10, "1-2");
    check("bytes=0001-02", 10, "1-2");
}

static void range_several(void **state)
{
    (void)state;
    check("bytes=0-0,2-2,-1", 10, "0-0,2-2,9-9");
    check("bytes=8-9, 0-1", 10, "8-9,0-1");
    check("bytes=,0-0 ,, 2-2,", 10, "0-0,2-2");
    check("bytes=0-0,20-30,2-2", 10, "0-0,2-2");
    check("bytes=20-30,5-", 10, "5-9");
}

static void range_adjacent_are_merged(void **state)
{
    (void)state;
    check("bytes=0-4,5-9", 10, "0-9");
    check("bytes=5-9,0-4", 10, "0-9");
    check("bytes=0-5,3-7", 10, "0-7");
    check("bytes=0-9,3-4", 10, "0-9");
    check("bytes=3-4,0-9", 10, "0-9");
    check("bytes=0-1,4-5,2-3", 10, "0-5");
    check("bytes=8-9,0-1,4-5,2-3", 10, "8-9,0-5");
    check("bytes=4-5,8-9,0-1,5-8", 10, "4-9,0-1");
    check("bytes=0-1,6-6,8-9,1-8", 10, "0-9");
    check("bytes=0-,0-,0-,0-", 10, "0-9");
    check("bytes=0-3,5-9", 10, "0-3,5-9");
}

static void range_malformed_is_ignored(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",           "bytes",       "bytes=",      "bytes=,",       "bytes=-",    "bytes=a-b",
        "bytes=1",    "bytes=2-1",   "bytes=1-2-3", "bytes=--1",     "bytes=1 -2", "bytes=1- 2",
        "bytes 0-1",  "bytes:0-1",   "items=0-1",   "=0-1",          "bytes =0-1", "bytes=0-1;2-3",
        "bytes=+1-2", "bytes=0x1-2", "bytes=0-1,x", "bytes=0-1,5-4", "bytes=99-98"};
    for (size_t i = 0; i < MK_LEN(values); i++)
        check(values[i], 10, "0");
    struct mk_range out[1];
    assert_int_equal(mk_range_parse(MK_STR_NULL, 10, out, 1), 0);
}

static void range_beyond_end_is_unsatisfiable(void **state)
{
    (void)state;
    check("bytes=10-", 10, "-416");
    check("bytes=10-20", 10, "-416");
    check("bytes=-0", 10, "-416");
    check("bytes=10-,-0,99-", 10, "-416");
    check("bytes=-0,0-0", 10, "0-0");
}

static void range_of_empty_resource(void **state)
{
    (void)state;
    check("bytes=0-", 0, "-416");
    check("bytes=0-0", 0, "-416");
    check("bytes=-0", 0, "-416");
    check("bytes=-1", 0, "0");
    check("bytes=0-,-5", 0, "0");
}

static void range_too_many_are_ignored(void **state)
{
    (void)state;
    check("bytes=0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0", 10, "0-0");
    check("bytes=0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0", 10, "0");
    check("bytes=90-,90-,90-,90-,90-,90-,90-,90-,90-", 10, "0");
}

static void range_numbers_beyond_64_bits(void **state)
{
    (void)state;
    check("bytes=0-18446744073709551615", 10, "0-9");
    check("bytes=0-99999999999999999999999999", 10, "0-9");
    check("bytes=-99999999999999999999999999", 10, "0-9");
    check("bytes=99999999999999999999999999-", 10, "-416");
    check("bytes=18446744073709551616-18446744073709551617", 10, "-416");
    check("bytes=18446744073709551614-", UINT64_MAX, "18446744073709551614-18446744073709551614");
    check("bytes=0-1,18446744073709551613-18446744073709551614", UINT64_MAX,
          "0-1,18446744073709551613-18446744073709551614");
    check("bytes=-1,18446744073709551613-18446744073709551613", UINT64_MAX,
          "18446744073709551613-18446744073709551614");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_single),
        cmocka_unit_test(range_several),
        cmocka_unit_test(range_adjacent_are_merged),
        cmocka_unit_test(range_malformed_is_ignored),
        cmocka_unit_test(range_beyond_end_is_unsatisfiable),
        cmocka_unit_test(range_of_empty_resource),
        cmocka_unit_test(range_too_many_are_ignored),
        cmocka_unit_test(range_numbers_beyond_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
