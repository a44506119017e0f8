/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/tally.h"

#include <stdarg.h>
#include <stdio.h>

#include "pace/now.h"

/* The scheduler of a busy machine may well take a millisecond; what is beyond that spoils percentiles. */
#define LATE_MAX (PACE_SECOND / 1000)
#define BUSY_MAX 0.95

const char *const pace_class_names[PACE_CLASSES] = {"connect", "read",   "write",
                                                    "timeout", "status", "content"};

void pace_tally_init(struct pace_tally *t)
{
    *t = (struct pace_tally){0};
    pace_histogram_init(&t->latency);
    pace_histogram_init(&t->late);
}

void pace_tally_fail(struct pace_tally *t, enum pace_class class, const char *fmt, ...)
{
    va_list args;
    if (t->errors[class]++)
        return;
    va_start(args, fmt);
    vsnprintf(t->first[class], PACE_TALLY_WHY, fmt, args);
    va_end(args);
}

uint64_t pace_tally_errors(const struct pace_tally *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PACE_CLASSES; i++)
        sum += t->errors[i];
    return sum;
}

double pace_tally_busy(const struct pace_tally *t)
{
    uint64_t all = t->end - t->start;
    return all && all > t->waited ? 1 - (double)t->waited / (double)all : 0;
}

const char *pace_tally_judge(const struct pace_tally *t)
{
    uint64_t late = 0;
    if (!pace_histogram_quantile(&t->late, 0.99, &late))
        late = t->late.greatest;
    if (late > LATE_MAX)
        return "one in a hundred of its requests left more than 1 ms late";
    if (pace_tally_busy(t) > BUSY_MAX)
        return "it was busy all the time, so answers waited for it";
    return NULL;
}
