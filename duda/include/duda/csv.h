/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CSV (RFC 4180) cell by cell, and writes CSV. In monkey-duda-small.so. */
#ifndef DUDA_CSV_H
#define DUDA_CSV_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A CSV reader. All functions in this file are thread-safe. */
struct duda_csv {
    mk_str rest;    /**< unread input */
    char separator; /**< ',', ';' or a tab */
    /** Buffer for cells that contain doubled quotes; other cells are slices of the input. */
    struct mk_buf *buf;
    unsigned line;        /**< line of the last cell, from 1; cells may contain line endings */
    unsigned column;      /**< column number of the last cell in its row, from 1 */
    const char *error;    /**< error message after -EBADMSG; static */
    bool row_ended;       /**< the last cell ended its row */
    unsigned next_line;   /**< internal */
    uint64_t reserved[2]; /**< must be zero */
};

/**
 * Creates a reader for `text`, which must outlive the reader. Cells with doubled quotes are unescaped into
 * `buf`, which limits their size; these cells are NUL-terminated. The caller frees `buf`.
 *
 *     struct mk_buf buf = mk_buf_growing(64 * 1024);
 *     struct duda_csv csv = duda_csv_of(text, ',', &buf);
 *     mk_str cell;
 *     int e;
 *     while ((e = duda_csv_next(&csv, &cell)) == 1)
 *         take(csv.line, csv.column, cell);
 *     if (e < 0)
 *         duda_printf(d, "line %u: %s\n", csv.line, csv.error ? csv.error : "too long");
 *     mk_buf_free(&buf);
 */
MK_API struct duda_csv duda_csv_of(mk_str text, char separator, struct mk_buf *buf);

/**
 * Reads the next cell. Returns 1: the cell is valid until the next call, and csv->row_ended tells whether it
 * ends its row; 0: end of the text; -EBADMSG: invalid CSV (csv->line and csv->error tell where and why),
 * repeated by every later call; -ENOMEM: a cell exceeds `buf`. A leading byte order mark is skipped. Rows end
 * with LF or CR LF; the line ending of the last row is optional.
 */
MK_API int duda_csv_next(struct duda_csv *csv, mk_str *cell) MK_API_MUST_USE;

/**
 * A CSV writer. Zero the members that you do not set. To send a file of any size, write it row by row:
 *
 *     int e = 0;
 *     struct mk_buf row = mk_buf_growing(64 * 1024);
 *     struct duda_csv_writer csv = {.out = &row, .escape_formulas = true};
 *     for (size_t i = 0; i < n_people && !e; i++) {
 *         duda_csv_add(&csv, people[i].name);
 *         duda_csv_add_int(&csv, people[i].age);
 *         duda_csv_end_row(&csv);
 *         e = row.failed ? -EMSGSIZE : duda_write(d, mk_buf_str(&row));
 *         mk_buf_clear(&row);
 *     }
 *     mk_buf_free(&row);
 */
struct duda_csv_writer {
    struct mk_buf *out;
    char separator; /**< 0: ',' */
    /** Prevents formula injection: writes a single quote before cells that a spreadsheet would evaluate as a
     * formula (they begin with `=`, `+`, `-`, `@`, their full-width forms, a tab, a CR or an LF). Use it
     * for files that users open in a spreadsheet and that contain data from untrusted sources. */
    bool escape_formulas;
    bool in_row;          /**< internal */
    uint64_t reserved[2]; /**< must be zero */
};

/** Writes a cell, quoted if necessary. */
MK_API void duda_csv_add(struct duda_csv_writer *writer, mk_str cell);
/** Writes a number; `escape_formulas` does not change it. */
MK_API void duda_csv_add_int(struct duda_csv_writer *writer, int64_t number);
/**
 * Writes a number with this many decimals, at most 17. Infinities and NaN become empty cells.
 *
 *     duda_csv_add_double(&writer, 2.5, 2); // 2.50
 */
MK_API void duda_csv_add_double(struct duda_csv_writer *writer, double number, unsigned decimals);
/** Ends the row with CR LF. */
MK_API void duda_csv_end_row(struct duda_csv_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
