/* SPDX-License-Identifier: Apache-2.0 */
/* This file has its own calendar arithmetic: gmtime() is slow, and strptime() depends on the locale and
 * accepts too much. */
#include "http/date.h"

#include "base/num.h"

#define DAY      86400LL
#define EARLIEST (-719528 * DAY)     /* 0000-01-01 00:00:00 */
#define LATEST   (2932897 * DAY - 1) /* 9999-12-31 23:59:59 */

static const char day_names[] = "SunMonTueWedThuFriSat";
static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const mk_str long_day_names[] = {
    MK_STR_INIT("Sunday"),   MK_STR_INIT("Monday"), MK_STR_INIT("Tuesday"), MK_STR_INIT("Wednesday"),
    MK_STR_INIT("Thursday"), MK_STR_INIT("Friday"), MK_STR_INIT("Saturday")};

struct calendar_time {
    struct mk_date date;
    unsigned hour, minute, second;
};

/* ---- Calendar ----
 * Here, years begin in March, so that a leap day is the last day of its year, and 400 years form an era of
 * ERA_DAYS days. */

enum { ERA_DAYS = 146097, EPOCH_DAY = 719468 }; /* the Unix epoch, in days since March 1 of the year 0 */

static int64_t divide_down(int64_t n, int64_t by)
{
    return n / by - (n % by < 0);
}

bool mk_date_is_valid(struct mk_date d)
{
    bool is_leap = d.year % 4 == 0 && (d.year % 100 != 0 || d.year % 400 == 0);
    unsigned days = d.month == 2 ? 28u + is_leap : 30u + ((d.month + (d.month > 7)) & 1);
    return d.month >= 1 && d.month <= 12 && d.day >= 1 && d.day <= days;
}

int64_t mk_date_to_days(struct mk_date d)
{
    int64_t year = d.year - (d.month <= 2), era = divide_down(year, 400), year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((d.month + 9) % 12) + 2) / 5 + d.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * ERA_DAYS + day_of_era - EPOCH_DAY;
}

struct mk_date mk_date_from_days(int64_t days)
{
    int64_t day = days + EPOCH_DAY, era = divide_down(day, ERA_DAYS), day_of_era = day - era * ERA_DAYS;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned march = (unsigned)((5 * day_of_year + 2) / 153), month = march < 10 ? march + 3 : march - 9;
    return (struct mk_date){.year = year_of_era + era * 400 + (month <= 2),
                            .month = month,
                            .day = (unsigned)day_of_year - (153 * march + 2) / 5 + 1};
}

static struct calendar_time split_time(int64_t time)
{
    int64_t days = divide_down(time, DAY);
    unsigned second = (unsigned)(time - days * DAY);
    return (struct calendar_time){
        .date = mk_date_from_days(days),
        .hour = second / 3600,
        .minute = second / 60 % 60,
        .second = second % 60,
    };
}

/* ---- Writing ---- */

/* Clamps the time to the years 0000 to 9999. */
static int64_t clamp_time(int64_t time)
{
    return time < EARLIEST ? EARLIEST : time > LATEST ? LATEST : time;
}

void mk_date_write(char out[MK_DATE_LEN], int64_t time)
{
    time = clamp_time(time);
    struct calendar_time m = split_time(time);
    int64_t weekday = (time - EARLIEST) / DAY + 6; /* the year 0 began on a Saturday */
    memcpy(out, "Day, 00 Mon 0000 00:00:00 GMT", MK_DATE_LEN);
    memcpy(out, day_names + weekday % 7 * 3, 3);
    mk_num_write_padded(out + 5, m.date.day, 2);
    memcpy(out + 8, month_names + (m.date.month - 1) * 3, 3);
    mk_num_write_padded(out + 12, (unsigned)m.date.year, 4);
    mk_num_write_padded(out + 17, m.hour, 2);
    mk_num_write_padded(out + 20, m.minute, 2);
    mk_num_write_padded(out + 23, m.second, 2);
}

/* ---- Parsing ---- */

/* The text left to parse. `failed` stays set after the first error. */
struct reader {
    mk_str rest;
    bool failed;
};

static mk_str read_chars(struct reader *r, size_t len)
{
    mk_str taken = mk_str_first(r->rest, len);
    r->failed |= taken.len != len;
    r->rest = mk_str_skip(r->rest, len);
    return taken;
}

static void expect_text(struct reader *r, mk_str text)
{
    r->failed |= !mk_str_eq(read_chars(r, text.len), text);
}

static unsigned read_number(struct reader *r, size_t digits)
{
    uint64_t n = 0;
    r->failed |= !mk_num_parse(read_chars(r, digits), &n);
    return (unsigned)n;
}

/* Reads a three-letter name, and returns its index in `names`, counted from 1. */
static unsigned read_name_index(struct reader *r, const char *names, size_t n)
{
    mk_str name = read_chars(r, 3);
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq(name, mk_str_of(names + 3 * i, 3)))
            return (unsigned)i + 1;
    r->failed = true;
    return 1;
}

static unsigned read_month(struct reader *r)
{
    return read_name_index(r, month_names, 12);
}

static void read_time(struct reader *r, struct calendar_time *m)
{
    m->hour = read_number(r, 2);
    expect_text(r, MK_STR(":"));
    m->minute = read_number(r, 2);
    expect_text(r, MK_STR(":"));
    m->second = read_number(r, 2);
}

/* A leap second (60) becomes the first second of the next minute. */
static bool to_unix_time(const struct reader *r, const struct calendar_time *m, int64_t *time)
{
    if (r->failed || r->rest.len || !mk_date_is_valid(m->date))
        return false;
    if (m->hour > 23 || m->minute > 59 || m->second > 60)
        return false;
    *time = mk_date_to_days(m->date) * DAY + m->hour * 3600 + m->minute * 60 + m->second;
    return true;
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool parse_fixdate(mk_str s, int64_t *time)
{
    struct reader r = {.rest = s};
    struct calendar_time m;
    read_name_index(&r, day_names, 7);
    expect_text(&r, MK_STR(", "));
    m.date.day = read_number(&r, 2);
    expect_text(&r, MK_STR(" "));
    m.date.month = read_month(&r);
    expect_text(&r, MK_STR(" "));
    m.date.year = read_number(&r, 4);
    expect_text(&r, MK_STR(" "));
    read_time(&r, &m);
    expect_text(&r, MK_STR(" GMT"));
    return to_unix_time(&r, &m, time);
}

/* Sun Nov  6 08:49:37 1994 */
static bool parse_asctime(mk_str s, int64_t *time)
{
    struct reader r = {.rest = s};
    struct calendar_time m;
    read_name_index(&r, day_names, 7);
    expect_text(&r, MK_STR(" "));
    m.date.month = read_month(&r);
    expect_text(&r, MK_STR(" "));
    bool padded = r.rest.len && r.rest.p[0] == ' ';
    if (padded)
        expect_text(&r, MK_STR(" "));
    m.date.day = read_number(&r, padded ? 1 : 2);
    expect_text(&r, MK_STR(" "));
    read_time(&r, &m);
    expect_text(&r, MK_STR(" "));
    m.date.year = read_number(&r, 4);
    return to_unix_time(&r, &m, time);
}

static void read_long_day_name(struct reader *r)
{
    for (size_t i = 0; i < MK_LEN(long_day_names); i++) {
        if (mk_str_starts(r->rest, long_day_names[i])) {
            read_chars(r, long_day_names[i].len);
            return;
        }
    }
    r->failed = true;
}

/* Returns the latest year that ends with these two digits and is at most 50 years after the year of `now`. */
static int64_t expand_two_digit_year(unsigned digits, int64_t now)
{
    int64_t latest = split_time(clamp_time(now)).date.year + 50;
    return latest - (latest + 100 - digits) % 100;
}

static int64_t add_50_years(int64_t now)
{
    struct mk_date today = split_time(clamp_time(now)).date, later = today;
    later.year += 50;
    return clamp_time(now) + (mk_date_to_days(later) - mk_date_to_days(today)) * DAY;
}

/* Sunday, 06-Nov-94 08:49:37 GMT. The two digits stand for the latest year with which the date is at most
 * 50 years after `now`. */
static bool parse_rfc850(mk_str s, int64_t now, int64_t *time)
{
    struct reader r = {.rest = s};
    struct calendar_time m;
    read_long_day_name(&r);
    expect_text(&r, MK_STR(", "));
    m.date.day = read_number(&r, 2);
    expect_text(&r, MK_STR("-"));
    m.date.month = read_month(&r);
    expect_text(&r, MK_STR("-"));
    unsigned year = read_number(&r, 2);
    expect_text(&r, MK_STR(" "));
    read_time(&r, &m);
    expect_text(&r, MK_STR(" GMT"));
    m.date.year = expand_two_digit_year(year, now);
    if (!to_unix_time(&r, &m, time))
        return false;
    if (*time <= add_50_years(now))
        return true;
    m.date.year -= 100;
    return to_unix_time(&r, &m, time);
}

bool mk_date_parse(mk_str s, int64_t now, int64_t *time)
{
    if (s.len == MK_DATE_LEN && s.p[3] == ',')
        return parse_fixdate(s, time);
    return s.len == 24 ? parse_asctime(s, time) : parse_rfc850(s, now, time);
}
