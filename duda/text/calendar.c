/* SPDX-License-Identifier: Apache-2.0 */
#include "text/calendar.h"

#include <duda/schema.h>
#include <monkey/text.h>

enum { SECOND_US = 1000000, DAY_S = 86400, FRACTION_DIGITS = 6 };

static const int64_t first_us = INT64_C(-62135596800) * SECOND_US; /* 0001-01-01T00:00:00Z */
static const int64_t end_us = INT64_C(253402300800) * SECOND_US;   /* 10000-01-01T00:00:00Z */

/* ---- Dates ---- */

/* Consumes exactly n digits. */
static bool take_digits(mk_str *text, size_t n, unsigned *out)
{
    if (text->len < n)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!mk_char_is_digit(text->p[i]))
            return false;
        *out = *out * 10 + (unsigned)(text->p[i] - '0');
    }
    *text = mk_str_skip(*text, n);
    return true;
}

static bool take_char(mk_str *text, char c)
{
    if (!text->len || text->p[0] != c)
        return false;
    *text = mk_str_skip(*text, 1);
    return true;
}

bool duda_calendar_parse_date(mk_str *text, int64_t *days)
{
    unsigned year, month, day;
    if (!take_digits(text, 4, &year) || !take_char(text, '-') || !take_digits(text, 2, &month) ||
        !take_char(text, '-') || !take_digits(text, 2, &day))
        return false;
    const struct mk_date date = {.year = year, .month = month, .day = day};
    if (!year || !mk_date_is_valid(date))
        return false;
    *days = mk_date_to_days(date);
    return true;
}

/* ---- Times ---- */

/* Consumes ".25", if the text begins with a point. */
static bool parse_fraction(mk_str *text, int64_t *us)
{
    int64_t unit = SECOND_US;
    *us = 0;
    if (!take_char(text, '.'))
        return true;
    if (!text->len || !mk_char_is_digit(text->p[0]))
        return false;
    for (; text->len && mk_char_is_digit(text->p[0]); *text = mk_str_skip(*text, 1)) {
        unit /= 10;
        *us += unit * (text->p[0] - '0');
    }
    return true;
}

/* Consumes "12:30:00.25". The second may be 60, a leap second. */
static bool parse_time(mk_str *text, int64_t *us, bool *is_leap)
{
    unsigned hour, minute, second;
    int64_t fraction;
    if (!take_digits(text, 2, &hour) || !take_char(text, ':') || !take_digits(text, 2, &minute) ||
        !take_char(text, ':') || !take_digits(text, 2, &second) || hour > 23 || minute > 59 || second > 60 ||
        !parse_fraction(text, &fraction))
        return false;
    *is_leap = second == 60;
    *us = ((int64_t)hour * 3600 + minute * 60 + second) * SECOND_US + fraction;
    return true;
}

/* Consumes "Z" or "+01:00". */
static bool parse_offset(mk_str *text, int64_t *us)
{
    unsigned hours, minutes;
    *us = 0;
    if (take_char(text, 'Z') || take_char(text, 'z'))
        return true;
    bool is_negative = take_char(text, '-');
    if ((!is_negative && !take_char(text, '+')) || !take_digits(text, 2, &hours) || !take_char(text, ':') ||
        !take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    int64_t offset = ((int64_t)hours * 3600 + minutes * 60) * SECOND_US;
    *us = is_negative ? -offset : offset;
    return true;
}

/* Leap seconds occur only at the end of a day in UTC. This function counts a leap second as the first second
 * of the next day, as POSIX does. */
bool duda_timestamp_parse(mk_str text, int64_t *out)
{
    int64_t days, time, offset, midnight = DAY_S;
    bool is_leap;
    if (!duda_calendar_parse_date(&text, &days) || !(take_char(&text, 'T') || take_char(&text, 't')) ||
        !parse_time(&text, &time, &is_leap) || !parse_offset(&text, &offset) || text.len)
        return false;
    if (is_leap && (time - offset) / SECOND_US % midnight != 0)
        return false;
    *out = days * DAY_S * SECOND_US + time - offset;
    return *out >= first_us && *out < end_us;
}

void duda_timestamp_write(struct mk_buf *out, int64_t time)
{
    if (time < first_us || time >= end_us)
        return;
    int64_t since = time - first_us, days = since / SECOND_US / DAY_S; /* first_us is a midnight */
    unsigned second = (unsigned)(since / SECOND_US % DAY_S), fraction = (unsigned)(since % SECOND_US);
    const struct mk_date date = mk_date_from_days(days + first_us / SECOND_US / DAY_S);
    mk_buf_addf(out, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)date.year, date.month, date.day,
                second / 3600, second / 60 % 60, second % 60);
    int digits = FRACTION_DIGITS;
    for (; fraction && fraction % 10 == 0; digits--)
        fraction /= 10;
    if (fraction)
        mk_buf_addf(out, ".%0*u", digits, fraction);
    mk_buf_add_char(out, 'Z');
}
