/* SPDX-License-Identifier: Apache-2.0 */
#include "durations.h"

unsigned metrics_durations_bucket(uint64_t us)
{
    if (us < PARTS)
        return (unsigned)us;
    unsigned log2 = 63 - (unsigned)__builtin_clzll(us), shift = log2 - PARTS_LOG2;
    unsigned bucket = (shift + 1) * PARTS + (unsigned)(us >> shift) % PARTS;
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t start_of(unsigned bucket)
{
    if (bucket < PARTS)
        return bucket;
    return (uint64_t)(PARTS + bucket % PARTS) << (bucket / PARTS - 1);
}

uint64_t metrics_durations_end(unsigned bucket)
{
    return start_of(bucket + 1);
}

uint64_t metrics_durations_count(const uint64_t buckets[BUCKETS])
{
    uint64_t n = 0;
    for (unsigned b = 0; b < BUCKETS; b++)
        n += buckets[b];
    return n;
}

uint64_t metrics_durations_quantile(const uint64_t buckets[BUCKETS], unsigned thousandths)
{
    uint64_t n = metrics_durations_count(buckets), rank = (n * thousandths + 999) / 1000, before = 0;
    if (n == 0)
        return 0;
    if (rank == 0)
        rank = 1;
    unsigned b = 0;
    while (before + buckets[b] < rank)
        before += buckets[b++];
    uint64_t width = metrics_durations_end(b) - start_of(b);
    return start_of(b) + (uint64_t)((double)width * (double)(rank - before) / (double)buckets[b]);
}
