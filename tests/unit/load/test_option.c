/* SPDX-License-Identifier: Apache-2.0 */
#include "load/option.h"

#include <stdarg.h>
#include <stdio.h>

#include "unit/test.h"

static char message[200];

static bool refuse(const char *fmt, ...) MK_PRINTF(1, 2);

static bool refuse(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return false;
}

static void option_number_is_limited(void **state)
{
    uint64_t n;
    (void)state;
    assert_true(load_option_parse_number(refuse, "-c", "5", 5, 7, &n));
    assert_int_equal(n, 5);
    assert_true(load_option_parse_number(refuse, "-c", "7", 5, 7, &n));
    assert_true(load_option_parse_number(refuse, "-c", "18446744073709551615", 0, UINT64_MAX, &n));
    assert_true(n == UINT64_MAX);
    static const char *const wrong[] = {"4", "8", "", "-5", "+5", " 5", "5x", "5.0", "18446744073709551621"};
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        if (load_option_parse_number(refuse, "-c", wrong[i], 5, 7, &n))
            fail_msg("%s was accepted", wrong[i]);
    assert_false(load_option_parse_number(refuse, "-c", "8", 5, 7, &n));
    assert_string_equal(message, "-c expects a number from 5 to 7, not \"8\"");
}

static void option_expectations_are_parsed(void **state)
{
    struct load_expected e = {.status = 0};
    (void)state;
    assert_true(load_option_parse_status(refuse, "404", &e));
    assert_int_equal(e.status, 404);
    assert_true(load_option_parse_length(refuse, "0", &e));
    assert_true(e.has_length && e.length == 0);
    assert_true(load_option_parse_sha1(refuse, "2aae6c35c94fcfb415dbe95f408b9ce91ee846ED", &e));
    assert_true(e.has_sha1);
    assert_int_equal(e.sha1[0], 0x2a);
    assert_int_equal(e.sha1[19], 0xed);
}

/* An interim response is never the final response. */
static void option_impossible_expectations_are_rejected(void **state)
{
    struct load_expected e = {.status = 0};
    (void)state;
    assert_false(load_option_parse_status(refuse, "199", &e));
    assert_string_equal(message, "--status expects a number from 200 to 599, not \"199\"");
    assert_false(load_option_parse_status(refuse, "600", &e));
    assert_false(load_option_parse_length(refuse, "-1", &e));
    assert_false(load_option_parse_sha1(refuse, "2aae6c35c94fcfb415dbe95f408b9ce91ee846E", &e));
    assert_false(load_option_parse_sha1(refuse, "2aae6c35c94fcfb415dbe95f408b9ce91ee846Ex", &e));
    assert_string_equal(
        message, "--sha1 expects 40 hexadecimal digits, not \"2aae6c35c94fcfb415dbe95f408b9ce91ee846Ex\"");
    assert_false(e.has_sha1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(option_number_is_limited),
        cmocka_unit_test(option_expectations_are_parsed),
        cmocka_unit_test(option_impossible_expectations_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
