/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be known about the numbers of a step before one believes them. */
#ifndef WR_WARNINGS_H
#define WR_WARNINGS_H

#include "wr/sweep.h"

/* Prints the verdict, and notes error answers in the sweep. */
void wr_warnings_print(struct wr_sweep *s, const struct wr_step *step);
/* Names the side at its limit, with the numbers that show it; false if neither is. */
bool wr_warnings_format_bottleneck(const struct wr_step *step, struct mk_buf *out) MK_MUST_USE;

#endif
