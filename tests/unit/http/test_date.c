/* SPDX-License-Identifier: Apache-2.0 */
#include "http/date.h"

#include <time.h>

#include "unit/test.h"

enum { NOW = 1750000000 }; /* June 2025 */

static void check_write(int64_t time, const char *expected)
{
    char out[MK_DATE_LEN];
    mk_date_write(out, time);
    assert_str(mk_str_of(out, sizeof out), expected);
}

static void date_is_formatted(void **state)
{
    (void)state;
    check_write(784111777, "Sun, 06 Nov 1994 08:49:37 GMT");
    check_write(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    check_write(-1, "Wed, 31 Dec 1969 23:59:59 GMT");
    check_write(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    check_write(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT");
    check_write(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void date_year_is_clamped_to_four_digits(void **state)
{
    (void)state;
    check_write(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    check_write(253402300800, "Fri, 31 Dec 9999 23:59:59 GMT");
    check_write(INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT");
}

/* Compares with the C library over several centuries, and parses every date again. */
static void date_agrees_with_libc(void **state)
{
    (void)state;
    for (int64_t t = -8000000000; t < 16000000000; t += 7654321) {
        char ours[MK_DATE_LEN], theirs[64];
        time_t time = (time_t)t;
        struct tm tm;
        assert_non_null(gmtime_r(&time, &tm));
        strftime(theirs, sizeof theirs, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        mk_date_write(ours, t);
        assert_str(mk_str_of(ours, sizeof ours), theirs);
        int64_t back;
        assert_true(mk_date_parse(mk_str_of(ours, sizeof ours), NOW, &back));
        assert_true(back == t);
        strftime(theirs, sizeof theirs, "%a %b %e %H:%M:%S %Y", &tm);
        assert_true(mk_date_parse(mk_str_from_c(theirs), NOW, &back));
        assert_true(back == t);
    }
}

static void check_parse(const char *text, int64_t now, int64_t expected)
{
    int64_t time = 0;
    if (!mk_date_parse(mk_str_from_c(text), now, &time) || time != expected)
        fail_msg("%s: %lld", text, (long long)time);
}

static void date_three_formats_are_parsed(void **state)
{
    (void)state;
    check_parse("Sun, 06 Nov 1994 08:49:37 GMT", NOW, 784111777);
    check_parse("Sunday, 06-Nov-94 08:49:37 GMT", NOW, 784111777);
    check_parse("Sun Nov  6 08:49:37 1994", NOW, 784111777);
    check_parse("Sun Nov 16 08:49:37 1994", NOW, 784111777 + 10 * 86400);
    check_parse("Wednesday, 09-Nov-94 08:49:37 GMT", NOW, 784111777 + 3 * 86400);
    check_parse("Mon, 06 Nov 1994 08:49:37 GMT", NOW, 784111777);
    check_parse("Sat, 31 Dec 2016 23:59:60 GMT", NOW, 1483228800);
    check_parse("Tue, 29 Feb 2000 00:00:00 GMT", NOW, 951782400);
}

static void date_two_digit_year_is_at_most_50_years_ahead(void **state)
{
    (void)state;
    const int64_t june_15_2025 = 1749945600;
    check_parse("Sunday, 01-Jan-70 00:00:00 GMT", june_15_2025, 3155760000);   /* 2070 */
    check_parse("Sunday, 15-Jun-75 00:00:00 GMT", june_15_2025, 3327782400);   /* 2075, to the second */
    check_parse("Sunday, 15-Jun-75 00:00:01 GMT", june_15_2025, 172022401);    /* 1975 */
    check_parse("Sunday, 01-Jan-76 00:00:00 GMT", june_15_2025, 189302400);    /* 1976 */
    check_parse("Saturday, 01-Jan-00 00:00:00 GMT", june_15_2025, 946684800);  /* 2000 */
    check_parse("Saturday, 01-Jan-00 00:00:00 GMT", 915148800, 946684800);     /* 2000, in 1999 */
    check_parse("Saturday, 01-Jan-00 00:00:00 GMT", -2000000000, -2208988800); /* 1900, in 1906 */
}

static void date_rejects_malformed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "0",
        "784111777",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sux, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 32 Dec 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMTx",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT ",
        "Sonntag, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 06 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov 6  08:49:37 1994",
        "Sun Nov   08:49:37 1994 ",
        "Sun, Nov  6 08:49:37 1994",
    };
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        int64_t time;
        if (mk_date_parse(mk_str_from_c(texts[i]), NOW, &time))
            fail_msg("%s", texts[i]);
    }
    int64_t time;
    assert_false(mk_date_parse(MK_STR_NULL, NOW, &time));
}

/* The years -6244 to 20000. */
static void date_days_agree_with_libc(void **state)
{
    (void)state;
    for (int64_t days = -3000000; days < 6585000; days += 61) {
        struct mk_date date = mk_date_from_days(days);
        time_t time = (time_t)days * 86400;
        struct tm tm;
        assert_non_null(gmtime_r(&time, &tm));
        assert_int_equal(date.year, tm.tm_year + 1900);
        assert_int_equal(date.month, tm.tm_mon + 1);
        assert_int_equal(date.day, tm.tm_mday);
        assert_int_equal(mk_date_to_days(date), days);
        assert_true(mk_date_is_valid(date));
    }
}

static void check_days(int64_t year, unsigned month, unsigned day, int64_t expected)
{
    assert_int_equal(mk_date_to_days((struct mk_date){year, month, day}), expected);
}

static void date_days_of_known_dates(void **state)
{
    (void)state;
    check_days(1970, 1, 1, 0);
    check_days(1969, 12, 31, -1);
    check_days(0, 1, 1, -719528);
    check_days(-1, 12, 31, -719529);
    check_days(9999, 12, 31, 2932896);
    check_days(10000, 1, 1, 2932897);
    check_days(2000, 2, 29, 11016);
    check_days(2001, 2, 29, 11382); /* the first of March */
}

static bool is_valid(int64_t year, unsigned month, unsigned day)
{
    return mk_date_is_valid((struct mk_date){year, month, day});
}

static void date_rejects_days_that_the_month_lacks(void **state)
{
    (void)state;
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (unsigned month = 1; month <= 12; month++) {
        assert_true(is_valid(2023, month, 1) && is_valid(2023, month, days[month - 1]));
        assert_false(is_valid(2023, month, 0) || is_valid(2023, month, days[month - 1] + 1u));
    }
    assert_false(is_valid(2023, 0, 1) || is_valid(2023, 13, 1) || is_valid(2023, UINT_MAX, 1));
    assert_true(is_valid(2024, 2, 29) && is_valid(2000, 2, 29) && is_valid(0, 2, 29) && is_valid(-4, 2, 29));
    assert_false(is_valid(1900, 2, 29) || is_valid(2023, 2, 29) || is_valid(-100, 2, 29) ||
                 is_valid(10001, 2, 29));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(date_is_formatted),
        cmocka_unit_test(date_year_is_clamped_to_four_digits),
        cmocka_unit_test(date_agrees_with_libc),
        cmocka_unit_test(date_three_formats_are_parsed),
        cmocka_unit_test(date_two_digit_year_is_at_most_50_years_ahead),
        cmocka_unit_test(date_rejects_malformed),
        cmocka_unit_test(date_days_agree_with_libc),
        cmocka_unit_test(date_days_of_known_dates),
        cmocka_unit_test(date_rejects_days_that_the_month_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
