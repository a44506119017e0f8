/* SPDX-License-Identifier: Apache-2.0 */
/* The least, the middle and the most of some numbers. */
#ifndef WR_SAMPLES_H
#define WR_SAMPLES_H

#include "base/compiler.h"

struct wr_samples {
    double *all;
    size_t n, cap;
    bool failed;
};

struct wr_range {
    double min, median, max; /* -1 each when there are no numbers */
};

void wr_samples_init(struct wr_samples *s);
void wr_samples_fini(struct wr_samples *s);
/* Numbers below 0 are not known, and passed over. */
void wr_samples_add(struct wr_samples *s, double number);
/* Sorts them. The median of an even number of them is the mean of the middle two. Nothing is known of what
 * memory was too short for. */
struct wr_range wr_samples_range(struct wr_samples *s);

#endif
