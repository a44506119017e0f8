/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about the reliability of a step's numbers. */
#ifndef WR_WARNINGS_H
#define WR_WARNINGS_H

#include "wr/sweep.h"

/* Prints the warnings, and records error responses in the sweep. */
void wr_warnings_print(struct wr_sweep *s, const struct wr_step *step);
/* Describes the side that is at its limit; returns false if neither is. */
bool wr_warnings_format_bottleneck(const struct wr_step *step, struct mk_buf *out) MK_MUST_USE;

#endif
