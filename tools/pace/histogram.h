/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations with 128 buckets per power of two: a percentile is at most 1/128 too high, at any
 * scale. Mean, minimum and maximum are exact. */
#ifndef PACE_HISTOGRAM_H
#define PACE_HISTOGRAM_H

#include "base/compiler.h"

enum {
    PACE_HISTOGRAM_STEP_BITS = 7,
    PACE_HISTOGRAM_BITS = 43, /* larger values (above 2.4 hours in ns) go into the last bucket */
    PACE_HISTOGRAM_STEPS = (PACE_HISTOGRAM_BITS - PACE_HISTOGRAM_STEP_BITS + 1) << PACE_HISTOGRAM_STEP_BITS,
};

#define PACE_HISTOGRAM_BEYOND UINT64_MAX

struct pace_histogram {
    uint64_t n, least, greatest;
    double sum;
    uint64_t counts[PACE_HISTOGRAM_STEPS];
};

void pace_histogram_init(struct pace_histogram *h);
void pace_histogram_add(struct pace_histogram *h, uint64_t value);
/* Returns the mean of all values; 0 for an empty histogram. */
double pace_histogram_mean(const struct pace_histogram *h);
/* Computes the smallest value that `share` (0 to 1) of `all` requests do not exceed: at most 1/128 too high,
 * and never above the maximum. Requests without a value count as infinite: PACE_HISTOGRAM_BEYOND. Returns
 * false if there are so few requests that no value is above the quantile. */
bool pace_histogram_quantile(const struct pace_histogram *h, uint64_t all, double share, uint64_t *value);

#endif
