/* SPDX-License-Identifier: Apache-2.0 */
/* Minimum, median and maximum of a series of numbers. */
#ifndef WR_SAMPLES_H
#define WR_SAMPLES_H

#include "base/compiler.h"

struct wr_samples {
    double *all;
    size_t n, cap;
    bool failed;
};

struct wr_range {
    double min, median, max; /* -1 each for an empty series */
};

void wr_samples_init(struct wr_samples *s);
void wr_samples_fini(struct wr_samples *s);
/* Ignores a negative number, which stands for an unknown value. */
void wr_samples_add(struct wr_samples *s, double number);
/* Sorts the numbers. The median of an even count is the mean of the middle two. All -1 if memory ran out. */
struct wr_range wr_samples_range(struct wr_samples *s);

#endif
