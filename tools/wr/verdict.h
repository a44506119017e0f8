/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be known about the numbers of a step before one believes them. */
#ifndef WR_VERDICT_H
#define WR_VERDICT_H

#include "wr/sweep.h"

/* Prints the verdict, and notes error answers in the sweep. */
void wr_verdict_say(struct wr_sweep *s, const struct wr_step *step);
/* Names the side at its limit, with the numbers that show it; false if neither is. */
bool wr_verdict_bottleneck(const struct wr_step *step, struct mk_buf *out) MK_MUST_USE;

#endif
