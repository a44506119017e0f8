/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes comma-separated values (RFC 4180). No I/O and no allocations. */
#include <duda/csv.h>

#include <errno.h>
#include <math.h>

enum { DECIMALS_MAX = 17 };

struct duda_csv duda_csv_of(mk_str text, char separator, struct mk_buf *buf)
{
    if (mk_str_starts(text, MK_STR("\xef\xbb\xbf")))
        text = mk_str_skip(text, 3);
    return (struct duda_csv){
        .rest = text, .separator = separator, .buf = buf, .line = 1, .next_line = 1, .row_ended = true};
}

static int report_csv_error(struct duda_csv *csv, const char *error)
{
    csv->error = error;
    return -EBADMSG;
}

/* Consumes the separator, the row end, or the end of the text after a cell. */
static int skip_cell_end(struct duda_csv *csv)
{
    mk_str *rest = &csv->rest;
    csv->row_ended = true;
    if (!rest->len)
        return 1;
    if (rest->p[0] == csv->separator) {
        *rest = mk_str_skip(*rest, 1);
        csv->row_ended = false;
        return 1;
    }
    size_t n = mk_str_starts(*rest, MK_STR("\r\n")) ? 2 : rest->p[0] == '\n' ? 1 : 0;
    if (!n)
        return report_csv_error(csv, rest->p[0] == '\r'
                                         ? "a CR without an LF: quote the cell"
                                         : "text after a closing quote: double the quotes inside a cell");
    *rest = mk_str_skip(*rest, n);
    csv->next_line++;
    return 1;
}

/* Terminates the cell in the buffer with a NUL, which the length excludes. */
static int finish_cell(struct duda_csv *csv, mk_str *cell)
{
    mk_buf_add_char(csv->buf, '\0');
    if (csv->buf->failed)
        return -ENOMEM;
    *cell = mk_str_first(mk_buf_str(csv->buf), csv->buf->len - 1);
    return skip_cell_end(csv);
}

static int parse_plain_cell(struct duda_csv *csv, mk_str *cell)
{
    size_t n = 0;
    mk_str rest = csv->rest;
    while (n < rest.len && rest.p[n] != csv->separator && rest.p[n] != '\n' && rest.p[n] != '\r') {
        if (rest.p[n] == '"')
            return report_csv_error(csv, "a quote inside an unquoted cell");
        n++;
    }
    mk_buf_add(csv->buf, mk_str_first(rest, n));
    csv->rest = mk_str_skip(rest, n);
    return finish_cell(csv, cell);
}

/* Splits off the text up to the next quote; the rest starts after the quote. Returns false if there is no
 * quote. */
static bool parse_quoted_part(struct duda_csv *csv, mk_str *part)
{
    size_t n = mk_str_find(csv->rest, '"');
    if (n == MK_STR_NONE)
        return false;
    *part = mk_str_first(csv->rest, n);
    csv->rest = mk_str_skip(csv->rest, n + 1);
    for (size_t i = 0; i < n; i++)
        csv->next_line += part->p[i] == '\n';
    return true;
}

static int parse_quoted_cell(struct duda_csv *csv, mk_str *cell)
{
    mk_str part;
    csv->rest = mk_str_skip(csv->rest, 1);
    if (!parse_quoted_part(csv, &part))
        return report_csv_error(csv, "an unclosed quote");
    mk_buf_add(csv->buf, part);
    while (csv->rest.len && csv->rest.p[0] == '"') { /* the second half of a doubled quote */
        csv->rest = mk_str_skip(csv->rest, 1);
        mk_buf_add_char(csv->buf, '"');
        if (!parse_quoted_part(csv, &part))
            return report_csv_error(csv, "an unclosed quote");
        mk_buf_add(csv->buf, part);
    }
    return finish_cell(csv, cell);
}

int duda_csv_next(struct duda_csv *csv, mk_str *cell)
{
    *cell = MK_STR_NULL;
    if (csv->error)
        return -EBADMSG;
    if (csv->row_ended && !csv->rest.len)
        return 0;
    csv->column = csv->row_ended ? 1 : csv->column + 1;
    csv->line = csv->next_line;
    mk_buf_clear(csv->buf);
    if (csv->rest.len && csv->rest.p[0] == '"')
        return parse_quoted_cell(csv, cell);
    return parse_plain_cell(csv, cell);
}

static bool needs_quotes(mk_str cell, char separator)
{
    for (size_t i = 0; i < cell.len; i++)
        if (cell.p[i] == separator || cell.p[i] == '"' || cell.p[i] == '\r' || cell.p[i] == '\n')
            return true;
    return cell.len && (cell.p[0] == ' ' || cell.p[cell.len - 1] == ' ');
}

/* Returns whether a spreadsheet would read the cell as a formula. In some locales, spreadsheets also accept
 * the full-width forms of `=`, `+`, `-` and `@`. */
static bool is_formula(mk_str cell)
{
    static const char wide[] = "\uff1d\uff0b\uff0d\uff20";
    if (!cell.len)
        return false;
    for (const char *each = wide; *each; each += 3)
        if (mk_str_starts(cell, mk_str_of(each, 3)))
            return true;
    return memchr("=+-@\t\r\n", cell.p[0], 7);
}

/* Writes the separator if the row has a cell already. Returns the separator. */
static char begin_cell(struct duda_csv_writer *w)
{
    char separator = w->separator ? w->separator : ',';
    if (w->in_row)
        mk_buf_add_char(w->out, separator);
    w->in_row = true;
    return separator;
}

void duda_csv_add_int(struct duda_csv_writer *w, int64_t number)
{
    (void)begin_cell(w);
    mk_buf_add_int(w->out, number);
}

void duda_csv_add_double(struct duda_csv_writer *w, double number, unsigned decimals)
{
    (void)begin_cell(w);
    if (isfinite(number))
        mk_buf_addf(w->out, "%.*f", (int)(decimals < DECIMALS_MAX ? decimals : DECIMALS_MAX), number);
}

void duda_csv_add(struct duda_csv_writer *w, mk_str cell)
{
    bool quoted = needs_quotes(cell, begin_cell(w));
    if (quoted)
        mk_buf_add_char(w->out, '"');
    if (w->escape_formulas && is_formula(cell))
        mk_buf_add_char(w->out, '\'');
    while (cell.p) {
        mk_buf_add(w->out, mk_str_cut(&cell, '"'));
        if (cell.p)
            mk_buf_add(w->out, MK_STR("\"\""));
    }
    if (quoted)
        mk_buf_add_char(w->out, '"');
}

void duda_csv_end_row(struct duda_csv_writer *w)
{
    mk_buf_add(w->out, MK_STR("\r\n"));
    w->in_row = false;
}
