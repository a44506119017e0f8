/* SPDX-License-Identifier: Apache-2.0 */
/* What is said in the end, for people and for programs. */
#ifndef PACE_REPORT_H
#define PACE_REPORT_H

#include "pace/options.h"
#include "pace/tally.h"

enum { PACE_REPORT_MAX = 64 * 1024 };

/* `opening` is how the connections were opened before the start. */
void pace_report_write_text(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t);
/* One document on one line. */
void pace_report_write_json(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t);

#endif
