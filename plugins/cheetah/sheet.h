/* SPDX-License-Identifier: Apache-2.0 */
/* A table, for people (aligned columns, or a line for each cell) or for programs (JSON). */
#ifndef SHELL_SHEET_H
#define SHELL_SHEET_H

#include <monkey/text.h>

struct shell_column {
    const char *name;
    int width; /* negative: aligned to the left; 0: the last one */
};

enum shell_form { SHELL_TABLE, SHELL_LIST /* of one row: a line for each cell */ };

struct shell_sheet {
    struct mk_buf *out;
    const struct shell_column *columns;
    size_t n, at; /* the next cell */
    enum shell_form form;
    bool json, has_rows;
};

/* Writes what stands above the rows, and below them. Rows that follow others somewhere else need neither:
 * set has_rows. Cells come in the order of the columns; a row ends with its last. */
void shell_sheet_begin(struct shell_sheet *s);
void shell_sheet_end(struct shell_sheet *s);

void shell_cell_none(struct shell_sheet *s);
void shell_cell_num(struct shell_sheet *s, uint64_t n);
void shell_cell_bool(struct shell_sheet *s, bool yes);
/* Whoever it comes from: it is escaped. */
void shell_cell_text(struct shell_sheet *s, mk_str text);
void shell_cell_bytes(struct shell_sheet *s, uint64_t bytes);
/* Seconds since 1970. */
void shell_cell_time(struct shell_sheet *s, int64_t time);
void shell_cell_seconds(struct shell_sheet *s, uint64_t seconds);
void shell_cell_ms(struct shell_sheet *s, uint64_t ms);

/* "3d 4h 5m 6s" */
void shell_add_span(struct mk_buf *out, uint64_t seconds);

#endif
