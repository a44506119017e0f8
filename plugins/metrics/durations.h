/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets for durations: exact below 8 us, then 8 buckets for each doubling, up to 2^37 us (38 hours). */
#ifndef METRICS_DURATIONS_H
#define METRICS_DURATIONS_H

#include <stdint.h>

enum {
    PARTS_LOG2 = 3,
    PARTS = 1 << PARTS_LOG2,
    DOUBLINGS = 34,
    BUCKETS = PARTS * (DOUBLINGS + 1),
};

unsigned metrics_durations_bucket(uint64_t us);
/* The end of a bucket in microseconds: it counts shorter durations. */
uint64_t metrics_durations_end(unsigned bucket);

uint64_t metrics_durations_count(const uint64_t buckets[BUCKETS]);
/* The duration that `thousandths` of all requests stay below, in microseconds; 0 without requests. */
uint64_t metrics_durations_quantile(const uint64_t buckets[BUCKETS], unsigned thousandths);

#endif
