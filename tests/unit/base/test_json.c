/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/test.h"

static char buffer[4096];
static struct mk_buf out;
static struct mk_json_writer w;

static void setup(void)
{
    out = mk_buf_fixed(buffer, sizeof buffer);
    w = mk_json_writer_to(&out);
}

/* Returns the text written since the last call. */
static mk_str written(void)
{
    mk_str text = mk_buf_str(&out);
    assert_false(out.failed);
    setup();
    return text;
}

static void write_example(struct mk_json_writer *to)
{
    mk_json_begin_object(to);
    mk_json_string(mk_json_key(to, "name"), MK_STR("a \"b\"\xff"));
    mk_json_begin_array(mk_json_key(to, "list"));
    mk_json_uint(to, UINT64_MAX);
    mk_json_int(to, INT64_MIN);
    mk_json_int(to, -1);
    mk_json_begin_array(to);
    mk_json_end_array(to);
    mk_json_begin_object(to);
    mk_json_end_object(to);
    mk_json_bool(to, true);
    mk_json_bool(to, false);
    mk_json_null(to);
    mk_json_double(to, -1.25);
    mk_json_double(to, 1e300);
    mk_json_raw(to, MK_STR("{\"a\": 1}"));
    mk_json_cstr(to, "c");
    mk_json_cstr(to, NULL);
    mk_json_begin_string(to);
    mk_buf_add(to->out, MK_STR("YWE="));
    mk_json_end_string(to);
    mk_json_end_array(to);
    mk_json_begin_object(mk_json_key_str(to, MK_STR("\n")));
    mk_json_uint(mk_json_key(to, ""), 0);
    mk_json_end_object(to);
    mk_json_end_object(to);
}

static const char example[] =
    "{\"name\":\"a "
    "\\\"b\\\"\\u00ff\",\"list\":[18446744073709551615,-9223372036854775808,-1,[],{},true,false,"
    "null,-1.25,1e+300,{\"a\": 1},\"c\",null,\"YWE=\"],\"\\u000a\":{\"\":0}}";

static void json_commas_and_nesting(void **state)
{
    (void)state;
    write_example(&w);
    assert_str(written(), example);
}

static void json_value_can_stand_alone(void **state)
{
    (void)state;
    mk_json_string(&w, MK_STR_NULL);
    assert_str(written(), "\"\"");
    mk_json_uint(&w, 10);
    assert_str(written(), "10");
    mk_json_null(&w);
    assert_str(written(), "null");
}

static void json_nesting_is_unlimited(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    struct mk_buf large = mk_buf_growing(2 * DEPTH);
    struct mk_json_writer deep = mk_json_writer_to(&large);
    for (size_t i = 0; i < DEPTH; i++)
        mk_json_begin_array(&deep);
    for (size_t i = 0; i < DEPTH; i++)
        mk_json_end_array(&deep);
    assert_false(large.failed);
    assert_int_equal(large.len, 2 * DEPTH);
    assert_memory_equal(large.p + DEPTH - 1, "[]", 2);
    mk_buf_free(&large);
}

static void json_elements_on_separate_lines(void **state)
{
    (void)state;
    mk_json_begin_array(&w);
    for (unsigned i = 0; i < 3; i++) {
        mk_json_newline(&w);
        mk_json_begin_object(&w);
        mk_json_newline(&w);
        mk_json_uint(mk_json_key(&w, "i"), i);
        mk_json_end_object(&w);
    }
    mk_buf_add_char(&out, '\n');
    mk_json_end_array(&w);
    assert_str(written(), "[\n{\n\"i\":0},\n{\n\"i\":1},\n{\n\"i\":2}\n]");
}

static void json_key_again_writes_prepared_keys(void **state)
{
    (void)state;
    mk_json_begin_array(&w);
    for (unsigned i = 0; i < 2; i++) {
        mk_json_begin_object(&w);
        mk_json_uint(mk_json_key_again(&w, MK_STR(",\"a\":")), i);
        mk_json_begin_object(mk_json_key_again(&w, MK_STR(",\"b\":")));
        mk_json_end_object(&w);
        mk_json_end_object(&w);
    }
    mk_json_end_array(&w);
    assert_str(written(), "[{\"a\":0,\"b\":{}},{\"a\":1,\"b\":{}}]");
}

/* ---- Strings ---- */

static void check_string(mk_str text, const char *expected)
{
    mk_json_string(&w, text);
    assert_str(written(), expected);
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    check_string(MK_STR(""), "\"\"");
    check_string(MK_STR("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    check_string(MK_STR("\n\t\0\x1f\x7f"), "\"\\u000a\\u0009\\u0000\\u001f\\u007f\"");
    check_string(MK_STR("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_string(MK_STR("\xc2\x9b\x31m"), "\"\\u009b1m\""); /* a terminal control character */
}

static void json_invalid_utf8_is_latin1(void **state)
{
    (void)state;
    check_string(MK_STR("\xe4\xc3"), "\"\\u00e4\\u00c3\""); /* Latin-1, then truncated UTF-8 */
    check_string(MK_STR("\xc0\x80\xed\xa0\x80"), "\"\\u00c0\\u0080\\u00ed\\u00a0\\u0080\"");
    check_string(MK_STR("\xf5\x80\x80\x80"), "\"\\u00f5\\u0080\\u0080\\u0080\"");
}

/* Puts one byte to escape at each position of strings of all lengths: the search checks 8 bytes at once. */
static void json_escapes_a_byte_at_each_position(void **state)
{
    (void)state;
    char text[20], expected[64];
    for (size_t len = 1; len <= sizeof text; len++)
        for (size_t at = 0; at < len; at++) {
            memset(text, 'a', sizeof text);
            text[at] = '"';
            snprintf(expected, sizeof expected, "\"%.*s\\\"%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaaaa",
                     (int)(len - at - 1), "aaaaaaaaaaaaaaaaaaaa");
            check_string(mk_str_of(text, len), expected);
        }
}

/* ---- Doubles ---- */

static void check_double(double n, const char *expected)
{
    mk_json_double(&w, n);
    assert_str(written(), expected);
}

static void json_doubles_are_written(void **state)
{
    (void)state;
    check_double(0, "0");
    check_double(-0.0, "-0.0"); /* "-0" would be read as an integer */
    check_double(0.1, "0.1");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(0.30000000000000004, "0.30000000000000004");
    check_double(100, "100");
    check_double(-19.99, "-19.99");
    check_double(-7.05, "-7.05");
    check_double(0.001, "0.001");
    check_double(0.000001, "1e-06");
    check_double(999999999.999999, "999999999.999999");
    check_double(1000000000, "1000000000");
    check_double(123456789012345, "123456789012345");
    check_double(1e15, "1e+15");
    check_double(5e-324, "4.94065645841247e-324");
    check_double(DBL_MAX, "1.7976931348623157e+308");
}

static void check_fixed(double n, unsigned decimals, const char *expected)
{
    mk_json_fixed(&w, n, decimals);
    assert_str(written(), expected);
}

static void json_fixed_decimals_are_written(void **state)
{
    (void)state;
    check_fixed(1.5, 2, "1.50");
    check_fixed(-2.0 / 3, 4, "-0.6667");
    check_fixed(1e15, 0, "1000000000000000");
    check_fixed(0.5, 1000, "0.50000000000000000000");
    check_fixed((double)NAN, 2, "null");
    mk_json_fixed(&w, -DBL_MAX, 1000); /* 1 + 309 + 1 + 20 characters */
    assert_int_equal(written().len, 331);
}

static void json_nan_and_infinity_are_null(void **state)
{
    (void)state;
    check_double((double)NAN, "null");
    check_double((double)INFINITY, "null");
    check_double(-(double)INFINITY, "null");
}

/* Uses its own generator, so that each run has the same numbers. */
static uint64_t next_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *x >> 11;
}

static void check_shortest(double n)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, n);
        if (strtod(text, NULL) == n)
            break;
    }
    check_double(n, text);
}

static void json_short_decimals_match_printf(void **state)
{
    (void)state;
    uint64_t x = 1;
    double unit = 1;
    for (unsigned decimals = 0; decimals < 9; decimals++, unit *= 10)
        for (unsigned i = 0; i < 3000; i++) {
            double n = (double)(next_random(&x) >> i % 53) / unit;
            if (n == 0)
                continue;
            check_shortest(n);
            check_shortest(-n * (1 + DBL_EPSILON));
        }
}

/* ---- Buffers ---- */

static void json_buffer_of_each_size(void **state)
{
    (void)state;
    char small[sizeof example];
    for (size_t cap = 0; cap < sizeof example; cap++) {
        memset(small, '~', sizeof small);
        struct mk_buf b = mk_buf_fixed(small, cap);
        struct mk_json_writer to = mk_json_writer_to(&b);
        write_example(&to);
        assert_int_equal(b.failed, cap < sizeof example - 1);
        assert_true(b.len <= cap);
        assert_memory_equal(small, example, b.len); /* the writer stops at the first text that does not fit */
        assert_int_equal(small[cap], '~');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(json_commas_and_nesting, setup),
        fixture_test(json_value_can_stand_alone, setup),
        fixture_test(json_nesting_is_unlimited, setup),
        fixture_test(json_elements_on_separate_lines, setup),
        fixture_test(json_key_again_writes_prepared_keys, setup),
        fixture_test(json_strings_are_escaped, setup),
        fixture_test(json_invalid_utf8_is_latin1, setup),
        fixture_test(json_escapes_a_byte_at_each_position, setup),
        fixture_test(json_doubles_are_written, setup),
        fixture_test(json_fixed_decimals_are_written, setup),
        fixture_test(json_nan_and_infinity_are_null, setup),
        fixture_test(json_short_decimals_match_printf, setup),
        fixture_test(json_buffer_of_each_size, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
