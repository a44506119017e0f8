/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/tally.h"

#include <stdarg.h>
#include <stdio.h>

#define BUSY_MAX 0.95
/* A latency is doubtful if more than this share of it may be pace's own delay. */
#define OWN_MAX 0.1

const char *const pace_error_class_names[PACE_CLASSES] = {"connect", "read",   "write",
                                                          "timeout", "status", "content"};

const struct pace_quantile pace_quantiles[PACE_QUANTILES] = {{"p50", 0.5},  {"p75", 0.75}, {"p90", 0.9},
                                                             {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};

void pace_tally_init(struct pace_tally *t)
{
    *t = (struct pace_tally){0};
    pace_histogram_init(&t->latency);
    pace_histogram_init(&t->late);
    pace_histogram_init(&t->least);
}

void pace_tally_add_error(struct pace_tally *t, enum pace_error_class class, const char *fmt, ...)
{
    va_list args;
    if (t->errors[class]++)
        return;
    va_start(args, fmt);
    vsnprintf(t->first[class], PACE_TALLY_WHY, fmt, args);
    va_end(args);
}

void pace_tally_add_response(struct pace_tally *t, uint64_t latency, uint64_t own)
{
    t->right++;
    pace_histogram_add(&t->latency, latency);
    pace_histogram_add(&t->least, latency > own ? latency - own : 0);
}

void pace_tally_add_timeout(struct pace_tally *t, uint64_t timeout, uint64_t own)
{
    t->missed += (double)own > OWN_MAX * (double)timeout;
}

uint64_t pace_tally_errors(const struct pace_tally *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PACE_CLASSES; i++)
        sum += t->errors[i];
    return sum;
}

double pace_tally_busy_share(const struct pace_tally *t)
{
    uint64_t all = t->end - t->start;
    return all && all > t->waited ? 1 - (double)t->waited / (double)all : 0;
}

/* Returns why all latencies are doubtful because of pace itself; NULL if they are not. */
static const char *pace_tally_explain_slow_client(const struct pace_tally *t)
{
    if (pace_tally_busy_share(t) > BUSY_MAX)
        return "it was busy all the time, so responses waited for it";
    if (t->missed)
        return "requests timed out while it did not run";
    return NULL;
}

static bool is_mostly_client_time(double measured, double least)
{
    return measured - least > OWN_MAX * measured;
}

bool pace_tally_is_quantile_doubtful(const struct pace_tally *t, const struct pace_quantile *q)
{
    uint64_t measured, least;
    if (!pace_histogram_quantile(&t->latency, t->asked, q->share, &measured) ||
        !pace_histogram_quantile(&t->least, t->asked, q->share, &least) || measured == PACE_HISTOGRAM_BEYOND)
        return false;
    return pace_tally_explain_slow_client(t) || is_mostly_client_time((double)measured, (double)least);
}

bool pace_tally_is_mean_doubtful(const struct pace_tally *t)
{
    return t->latency.n &&
           (pace_tally_explain_slow_client(t) ||
            is_mostly_client_time(pace_histogram_mean(&t->latency), pace_histogram_mean(&t->least)));
}

const char *pace_tally_doubt_reason(const struct pace_tally *t)
{
    const char *all = pace_tally_explain_slow_client(t);
    bool any = pace_tally_is_mean_doubtful(t);
    for (size_t i = 0; i < PACE_QUANTILES; i++)
        any |= pace_tally_is_quantile_doubtful(t, &pace_quantiles[i]);
    return all ? all : any ? "it was late itself, which may be more than a tenth of them" : NULL;
}
