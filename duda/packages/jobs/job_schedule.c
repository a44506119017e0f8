/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules use UTC, which neither repeats nor skips an hour. Intervals count from 1970, so that all machines
 * agree. */
#include "job_schedule.h"

#include <time.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, DAYS_AHEAD = 366 * 9 };

/* ---- Parsing ---- */

static const char *parse_interval(struct job_schedule *s, mk_str text)
{
    static const struct {
        char unit;
        uint64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    uint64_t n;
    for (size_t i = 0; text.len && i < MK_LEN(units); i++)
        if (text.p[text.len - 1] == units[i].unit && mk_num_parse(mk_str_first(text, text.len - 1), &n) &&
            n && n < 100000) {
            s->every_ms = n * units[i].ms;
            return NULL;
        }
    return "expected `every` and a duration such as 30s, 5m, 2h or 1d";
}

static bool parse_range(mk_str text, uint64_t min, uint64_t max, uint64_t *bits)
{
    uint64_t step = 1, from = min, to = max;
    mk_str range = mk_str_cut(&text, '/');
    if (text.p && (!mk_num_parse(text, &step) || !step))
        return false;
    if (!mk_str_eq(range, MK_STR("*"))) {
        mk_str first = mk_str_cut(&range, '-');
        if (!mk_num_parse(first, &from))
            return false;
        if (range.p && !mk_num_parse(range, &to))
            return false;
        if (!range.p && !text.p)
            to = from;
    }
    if (from < min || to > max || from > to)
        return false;
    if (step > max)
        step = max + 1; /* ends the loop after one value, without overflow */
    for (uint64_t i = from; i <= to; i += step)
        *bits |= (uint64_t)1 << i;
    return true;
}

static bool parse_cron_field(mk_str *rest, uint64_t min, uint64_t max, uint64_t *bits, bool *is_any)
{
    mk_str field = mk_str_word(rest);
    *bits = 0;
    *is_any = mk_str_starts(field, MK_STR("*"));
    if (!field.len)
        return false;
    while (field.p)
        if (!parse_range(mk_str_cut(&field, ','), min, max, bits))
            return false;
    return true;
}

const char *job_schedule_parse(struct job_schedule *s, mk_str text)
{
    uint64_t hours, days, months, weekdays;
    bool any;
    mk_str rest = text, first = mk_str_word(&rest);
    *s = (struct job_schedule){0};
    if (mk_str_eq(first, MK_STR("every")))
        return parse_interval(s, mk_str_trim(rest));
    if (!parse_cron_field(&text, 0, 59, &s->minutes, &any))
        return "expected minutes, 0 to 59, as the first of five fields";
    if (!parse_cron_field(&text, 0, 23, &hours, &any))
        return "expected hours, 0 to 23, as the second of five fields";
    if (!parse_cron_field(&text, 1, 31, &days, &s->any_day))
        return "expected days, 1 to 31, as the third of five fields";
    if (!parse_cron_field(&text, 1, 12, &months, &any))
        return "expected months, 1 to 12, as the fourth of five fields";
    if (!parse_cron_field(&text, 0, 7, &weekdays, &s->any_weekday) || mk_str_trim(text).len)
        return "expected weekdays, 0 to 7, as the last of five fields";
    s->hours = (uint32_t)hours;
    s->days = (uint32_t)days;
    s->months = (uint32_t)months;
    s->weekdays = (uint32_t)(weekdays | weekdays >> 7); /* 7 is also Sunday */
    return NULL;
}

/* ---- The next time ---- */

/* Like cron: if both day fields are given, a match of either suffices. */
static bool matches_day(const struct job_schedule *s, const struct tm *t)
{
    bool day = s->days >> t->tm_mday & 1, weekday = s->weekdays >> t->tm_wday & 1;
    if (!(s->months >> (t->tm_mon + 1) & 1))
        return false;
    return s->any_day || s->any_weekday ? day && weekday : day || weekday;
}

/* Returns the first matching minute of the day at or after `from`, in seconds of the day; -1 if there is
 * none. */
static int64_t next_time_of_day(const struct job_schedule *s, int64_t from)
{
    for (int64_t at = from; at < DAY_S; at += MINUTE_S)
        if ((s->hours >> (at / HOUR_S) & 1) && (s->minutes >> (at % HOUR_S / MINUTE_S) & 1))
            return at;
    return -1;
}

int64_t job_schedule_next(const struct job_schedule *s, int64_t now_ms)
{
    if (s->every_ms)
        return (now_ms / (int64_t)s->every_ms + 1) * (int64_t)s->every_ms;
    int64_t minute = (now_ms / 1000 / MINUTE_S + 1) * MINUTE_S, day = minute / DAY_S, from = minute % DAY_S;
    for (int i = 0; i < DAYS_AHEAD; i++, day++, from = 0) {
        struct tm t;
        time_t begin = (time_t)(day * DAY_S);
        int64_t at = gmtime_r(&begin, &t) && matches_day(s, &t) ? next_time_of_day(s, from) : -1;
        if (at >= 0)
            return (day * DAY_S + at) * 1000;
    }
    return -1;
}
