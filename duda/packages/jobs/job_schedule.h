/* SPDX-License-Identifier: Apache-2.0 */
/* When something is due again: "every 5m", or five fields as in crontab(5). */
#ifndef DUDA_JOBS_JOB_SCHEDULE_H
#define DUDA_JOBS_JOB_SCHEDULE_H

#include <monkey/str.h>
#include <stdint.h>

struct job_schedule {
    uint64_t every_ms; /* 0: by the fields, a bit for each number */
    uint64_t minutes;
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday;
};

/* NULL, or what is wrong with it. */
const char *job_schedule_parse(struct job_schedule *s, mk_str text);
/* The first time after `now`, both in milliseconds since 1970; -1: it never comes. */
int64_t job_schedule_next(const struct job_schedule *s, int64_t now_ms);

#endif
