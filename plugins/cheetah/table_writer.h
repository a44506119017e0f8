/* SPDX-License-Identifier: Apache-2.0 */
/* Human-readable table output (aligned columns, or a line per cell), or JSON for programs. */
#ifndef CHEETAH_TABLE_WRITER_H
#define CHEETAH_TABLE_WRITER_H

#include <monkey/text.h>

struct cheetah_column {
    const char *name;
    int width; /* negative: left-aligned; 0: last column */
};

enum cheetah_form { CHEETAH_TABLE, CHEETAH_LIST /* single row: a line per cell */ };

struct cheetah_table_writer {
    struct mk_buf *out;
    const struct cheetah_column *columns;
    size_t n, at; /* index of the next cell */
    enum cheetah_form form;
    bool json, has_rows;
};

/* Writes the header. If the rows continue those of another worker, set has_rows instead. Write cells in
 * column order; the last cell ends the row. */
void cheetah_table_writer_begin(struct cheetah_table_writer *s);
/* Writes the footer after the last row. */
void cheetah_table_writer_end(struct cheetah_table_writer *s);

void cheetah_table_cell_null(struct cheetah_table_writer *s);
void cheetah_table_cell_num(struct cheetah_table_writer *s, uint64_t n);
void cheetah_table_cell_bool(struct cheetah_table_writer *s, bool yes);
/* Writes a string, and escapes it whatever its source. */
void cheetah_table_cell_text(struct cheetah_table_writer *s, mk_str text);
void cheetah_table_cell_bytes(struct cheetah_table_writer *s, uint64_t bytes);
/* Writes a time in seconds since 1970. */
void cheetah_table_cell_time(struct cheetah_table_writer *s, int64_t time);
void cheetah_table_cell_seconds(struct cheetah_table_writer *s, uint64_t seconds);
void cheetah_table_cell_ms(struct cheetah_table_writer *s, uint64_t ms);
void cheetah_table_cell_us(struct cheetah_table_writer *s, uint64_t us);

/* Appends a duration such as "3d 4h 5m 6s". */
void cheetah_append_duration(struct mk_buf *out, uint64_t seconds);

#endif
