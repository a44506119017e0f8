/* SPDX-License-Identifier: Apache-2.0 */
/* CSV (RFC 4180): reading cell by cell, and writing. In monkey-duda-small.so. */
#ifndef DUDA_CSV_H
#define DUDA_CSV_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Reads a text of comma separated values. All functions of this file may be called from any thread. */
struct duda_csv {
    mk_str rest;    /**< what was not read */
    char separator; /**< ',', ';' or a tab */
    /** Gets the text of a cell with doubled quotes; other cells are slices of the input. */
    struct mk_buf *room;
    unsigned line;       /**< of the last cell, from 1; cells may hold line ends */
    unsigned column;     /**< number of the last cell in its row, from 1 */
    const char *problem; /**< what is wrong, after -EBADMSG; static text */
    bool row_ended;      /**< the last cell was the last of its row */
    unsigned next_line;  /**< its own */
};

/**
 * Begins to read `text`, which must outlive the reader. `room` limits cells, which are copied there, with a NUL behind; the caller
 * frees it.
 *
 *     struct mk_buf room = mk_buf_growing(64 * 1024);
 *     struct duda_csv csv = duda_csv_of(text, ',', &room);
 *     mk_str cell;
 *     int e;
 *     while ((e = duda_csv_next(&csv, &cell)) == 1)
 *         take(csv.line, csv.column, cell);
 *     if (e < 0)
 *         duda_printf(d, "line %u: %s\n", csv.line, csv.problem ? csv.problem : "too long");
 *     mk_buf_free(&room);
 */
MK_API struct duda_csv duda_csv_of(mk_str text, char separator, struct mk_buf *room);

/**
 * The next cell. 1: there is one, valid until the next call; csv->row_ended says whether another one follows
 * in its row. 0: the text has ended. -EBADMSG: it is not CSV (csv->line and csv->problem say where and why);
 * every later call answers so as well. -ENOMEM: a cell is longer than the room. A byte order mark at the
 * start is skipped; rows end with LF or CR LF; the end of the last one is optional.
 */
MK_API int duda_csv_next(struct duda_csv *csv, mk_str *cell) MK_API_MUST_USE;

/** Writes comma separated values. Zero all members but those wanted. */
struct duda_csv_writer {
    struct mk_buf *out;
    char separator; /**< 0 is ',' */
    /** Write a single quote before cells that a spreadsheet would run as a formula (they begin with `=`, `+`,
     * `-`, `@`, their wide forms, a tab, a CR or an LF): for files that people open, from data of others. */
    bool guard;
    bool in_row; /**< its own */
};

/** Writes one cell, in quotes if it needs them. */
MK_API void duda_csv_add(struct duda_csv_writer *w, mk_str cell);
/** Ends the row with CR LF. */
MK_API void duda_csv_end(struct duda_csv_writer *w);

#ifdef __cplusplus
}
#endif

#endif
