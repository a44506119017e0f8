/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/histogram.h"

#include <math.h>

enum { STEPS = 1 << PACE_HISTOGRAM_STEP_BITS };

/* Values below 2 * STEPS have one bucket each; above, each power of two has STEPS buckets. */
static size_t bucket_index(uint64_t value)
{
    if (value >> PACE_HISTOGRAM_BITS)
        return PACE_HISTOGRAM_STEPS - 1;
    if (value < STEPS)
        return (size_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - PACE_HISTOGRAM_STEP_BITS;
    return ((size_t)shift << PACE_HISTOGRAM_STEP_BITS) + (size_t)(value >> shift);
}

static uint64_t bucket_upper_bound(size_t step)
{
    if (step < STEPS)
        return step;
    unsigned shift = (unsigned)(step >> PACE_HISTOGRAM_STEP_BITS) - 1;
    uint64_t mark = (step & (STEPS - 1)) | STEPS;
    return ((mark + 1) << shift) - 1;
}

void pace_histogram_init(struct pace_histogram *h)
{
    *h = (struct pace_histogram){.least = UINT64_MAX};
}

void pace_histogram_add(struct pace_histogram *h, uint64_t value)
{
    h->n++;
    h->sum += (double)value;
    h->counts[bucket_index(value)]++;
    if (value < h->least)
        h->least = value;
    if (value > h->greatest)
        h->greatest = value;
}

double pace_histogram_mean(const struct pace_histogram *h)
{
    return h->n ? h->sum / (double)h->n : 0;
}

bool pace_histogram_quantile(const struct pace_histogram *h, uint64_t all, double share, uint64_t *value)
{
    uint64_t rank = (uint64_t)ceil(share * (double)all - 1e-9), seen = 0;
    if (rank == 0 || rank >= all)
        return false;
    *value = PACE_HISTOGRAM_BEYOND;
    if (rank > h->n)
        return true;
    for (size_t i = 0; i < PACE_HISTOGRAM_STEPS; i++) {
        seen += h->counts[i];
        if (seen < rank)
            continue;
        *value = i == PACE_HISTOGRAM_STEPS - 1 || bucket_upper_bound(i) > h->greatest ? h->greatest
                                                                                      : bucket_upper_bound(i);
        return true;
    }
    return false;
}
