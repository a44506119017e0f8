/* SPDX-License-Identifier: Apache-2.0 */
/* A table, for people (aligned columns, or a line for each cell) or for programs (JSON). */
#ifndef CHEETAH_SHEET_H
#define CHEETAH_SHEET_H

#include <monkey/text.h>

struct cheetah_column {
    const char *name;
    int width; /* negative: aligned to the left; 0: the last one */
};

enum cheetah_form { CHEETAH_TABLE, CHEETAH_LIST /* of one row: a line for each cell */ };

struct cheetah_sheet {
    struct mk_buf *out;
    const struct cheetah_column *columns;
    size_t n, at; /* index of the next cell */
    enum cheetah_form form;
    bool json, has_rows;
};

/* Write the head and the foot. Rows that continue those of another worker need neither: set has_rows. Cells
 * come in the order of the columns; the last one ends the row. */
void cheetah_sheet_begin(struct cheetah_sheet *s);
void cheetah_sheet_end(struct cheetah_sheet *s);

void cheetah_cell_none(struct cheetah_sheet *s);
void cheetah_cell_num(struct cheetah_sheet *s, uint64_t n);
void cheetah_cell_bool(struct cheetah_sheet *s, bool yes);
/* Escapes the text, whatever its source. */
void cheetah_cell_text(struct cheetah_sheet *s, mk_str text);
void cheetah_cell_bytes(struct cheetah_sheet *s, uint64_t bytes);
/* Seconds since 1970. */
void cheetah_cell_time(struct cheetah_sheet *s, int64_t time);
void cheetah_cell_seconds(struct cheetah_sheet *s, uint64_t seconds);
void cheetah_cell_ms(struct cheetah_sheet *s, uint64_t ms);
void cheetah_cell_us(struct cheetah_sheet *s, uint64_t us);

/* "3d 4h 5m 6s" */
void cheetah_add_span(struct mk_buf *out, uint64_t seconds);

#endif
