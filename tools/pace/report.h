/* SPDX-License-Identifier: Apache-2.0 */
/* The report, as text or as JSON. */
#ifndef PACE_REPORT_H
#define PACE_REPORT_H

#include "pace/options.h"
#include "pace/tally.h"

enum { PACE_REPORT_MAX = 64 * 1024 };

/* `opening` is the tally of the connections opened before the measurement. */
void pace_report_write_text(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t);
/* Writes one JSON document on one line. */
void pace_report_write_json(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t);

#endif
