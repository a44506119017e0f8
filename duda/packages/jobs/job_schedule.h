/* SPDX-License-Identifier: Apache-2.0 */
/* Parses schedules: "every 5m", or five fields as in crontab(5). */
#ifndef DUDA_JOBS_JOB_SCHEDULE_H
#define DUDA_JOBS_JOB_SCHEDULE_H

#include <monkey/str.h>
#include <stdint.h>

struct job_schedule {
    uint64_t every_ms; /* 0: use the following bit masks of allowed values */
    uint64_t minutes;
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday;
};

/* Returns NULL, or an error message. */
const char *job_schedule_parse(struct job_schedule *s, mk_str text);
/* Returns the first time after now_ms, in milliseconds since 1970; -1: never. */
int64_t job_schedule_next(const struct job_schedule *s, int64_t now_ms);

#endif
