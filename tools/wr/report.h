/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a sweep: as a human-readable table, or as CSV or JSON for programs. Does no I/O. */
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include "wr/sweep.h"

/* Writes the lines above the table and the column titles. */
void wr_table_write_header(const struct wr_sweep *s, struct mk_buf *out);
void wr_table_write_row(const struct wr_sweep *s, const struct wr_step *step, struct mk_buf *out);
void wr_table_write_footer(const struct wr_sweep *s, struct mk_buf *out);

void wr_csv_write_header(struct mk_buf *out);
/* Writes one line per shot. */
void wr_csv_write_rows(const struct wr_step *step, struct mk_buf *out);

/* If the sweep is incomplete, writes only the finished steps. */
void wr_json_write(const struct wr_sweep *s, bool complete, struct mk_buf *out);

#endif
