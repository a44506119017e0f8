/* SPDX-License-Identifier: Apache-2.0 */
/* The least, the middle and the most of some numbers. */
#ifndef WR_SPREAD_H
#define WR_SPREAD_H

#include "base/compiler.h"

struct wr_spread {
    double *all;
    size_t n, cap;
    bool failed;
};

struct wr_range {
    double min, median, max; /* -1 each when there are no numbers */
};

void wr_spread_init(struct wr_spread *s);
void wr_spread_fini(struct wr_spread *s);
/* Numbers below 0 are not known, and passed over. */
void wr_spread_add(struct wr_spread *s, double number);
/* Sorts them. The median of an even number of them is the mean of the middle two. Nothing is known of what
 * memory was too short for. */
struct wr_range wr_spread_of(struct wr_spread *s);

#endif
