/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/tally.h"

#include <stdarg.h>
#include <stdio.h>

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

void pace_tally_send(struct pace_tally *t, uint64_t late)
{
    pace_histogram_add(&t->late, late);
    t->too_late += late > PACE_TALLY_LATE;
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
    if (t->too_late > 1 && t->too_late > t->late.n / 100)
        return "more than one in a hundred of its requests left over 1 ms late";
    if (t->starved > (t->end - t->start) / 100)
        return "others had its processor for more than one hundredth of the time";
    if (pace_tally_busy(t) > BUSY_MAX)
        return "it was busy all the time, so answers waited for it";
    return NULL;
}
