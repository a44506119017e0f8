/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is parsed as a schedule or rejected. The next due time is after the current time and matches the
 * schedule, and no minute between the two does. */
#include <jobs/job_schedule.h>
#include <time.h>

#include "base/assert.h"

enum { NOW_S = 1790000000, HOUR_S = 3600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_due(const struct job_schedule *s, time_t at)
{
    struct tm t;
    MK_ASSERT(gmtime_r(&at, &t) == &t);
    bool day = s->days >> t.tm_mday & 1, weekday = s->weekdays >> t.tm_wday & 1;
    return t.tm_sec == 0 && (s->minutes >> t.tm_min & 1) && (s->hours >> t.tm_hour & 1) &&
           (s->months >> (t.tm_mon + 1) & 1) &&
           (s->any_day || s->any_weekday ? day && weekday : day || weekday);
}

static void check_fields(const struct job_schedule *s)
{
    MK_ASSERT(s->minutes && s->minutes < (uint64_t)1 << 60 && s->hours && s->hours < 1U << 24);
    MK_ASSERT(s->days && !(s->days & 1) && s->months && s->months < 1U << 13 && !(s->months & 1));
    MK_ASSERT(s->weekdays && s->weekdays < 1U << 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_schedule s;
    if (size > 200 || job_schedule_parse(&s, mk_str_of((const char *)data, size)))
        return 0;
    int64_t now = (int64_t)NOW_S * 1000 + 17, next = job_schedule_next(&s, now);
    if (s.every_ms) {
        MK_ASSERT(next > now && next - now <= (int64_t)s.every_ms && next % (int64_t)s.every_ms == 0);
        return 0;
    }
    check_fields(&s);
    MK_ASSERT(next == -1 || (next > now && is_due(&s, next / 1000)));
    for (int64_t at = now / 60000 * 60 + 60; at < NOW_S + 2 * HOUR_S && (next < 0 || at < next / 1000);
         at += 60)
        MK_ASSERT(!is_due(&s, at));
    return 0;
}
