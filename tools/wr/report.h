/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as text: a table for people, CSV and JSON for programs. Does no I/O. */
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include "wr/sweep.h"

/* The lines above the table, with the names of its columns. */
void wr_table_write_header(const struct wr_sweep *s, struct mk_buf *out);
void wr_table_write_row(const struct wr_sweep *s, const struct wr_step *step, struct mk_buf *out);
void wr_table_write_footer(const struct wr_sweep *s, struct mk_buf *out);

void wr_csv_write_header(struct mk_buf *out);
/* A line for each shot. */
void wr_csv_write_rows(const struct wr_step *step, struct mk_buf *out);

/* Only the steps that are done, when it is not complete. */
void wr_json_write(const struct wr_sweep *s, bool complete, struct mk_buf *out);

#endif
