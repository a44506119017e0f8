/* SPDX-License-Identifier: Apache-2.0 */
/* How long things took: counts in 128 steps for each doubling, so that a percentile is at most 1/128 above
 * the truth, whatever its size; the mean, the least and the greatest are exact. */
#ifndef PACE_HISTOGRAM_H
#define PACE_HISTOGRAM_H

#include "base/compiler.h"

enum {
    PACE_HISTOGRAM_STEP_BITS = 7,
    PACE_HISTOGRAM_BITS = 43, /* values of more bits (2.4 hours in nanoseconds) fall into the last step */
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
/* 0 when it is empty. */
double pace_histogram_mean(const struct pace_histogram *h);
/* The least value that `share` (0 to 1) of `all` do not exceed, at most 1/128 too high and never above the
 * greatest. Those of `all` that are not in the histogram were greater than any: PACE_HISTOGRAM_BEYOND. False
 * when there are too few to tell: not one of them would be beyond it. */
bool pace_histogram_quantile(const struct pace_histogram *h, uint64_t all, double share, uint64_t *value);

#endif
