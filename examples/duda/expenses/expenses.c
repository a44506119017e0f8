/* SPDX-License-Identifier: Apache-2.0 */
/* Imports and exports a table: clients upload expenses as CSV, optionally compressed with gzip; the page
 * shows a chart, links to the CSV export, and its URL as a QR code for phones. To upload expenses: printf
 * 'rent,800\nfood,312.5\n' | curl --data-binary @- -H 'Content-Type: text/csv' localhost:2001 */
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/chart.h>
#include <duda/csv.h>
#include <duda/gzip.h>
#include <duda/kv.h>
#include <duda/mime.h>
#include <duda/qr.h>
#include <errno.h>
#include <stdlib.h>

enum { CONTENT_MAX = 64 << 10, PAGE_MAX = 1 << 20, ROWS_MAX = 100, CELL_MAX = 1024, ADDRESS_MAX = 200 };

struct table {
    mk_str names[ROWS_MAX];
    double amounts[ROWS_MAX];
    size_t n;
    unsigned line;     /* line number of the error */
    const char *error; /* error text; NULL: no error */
};

/* ---- Import ---- */

static const char *take_amount(struct table *t, const char *text)
{
    char *end;
    double amount = strtod(text, &end);
    if (end == text || *end || !(amount >= 0 && amount < 1e9))
        return "the second cell must be an amount";
    t->amounts[t->n++] = amount;
    return NULL;
}

/* A cell is valid only until the next one is read, so it is copied. */
static const char *take(struct duda_ctx *d, struct table *t, const struct duda_csv *csv, mk_str cell)
{
    mk_str text = duda_strdup(d, cell);
    if (!text.p)
        return "out of memory";
    if (csv->column == 2)
        return csv->row_ended ? take_amount(t, text.p) : "a row has more than two cells";
    if (csv->row_ended || !text.len)
        return "a row must have a name and an amount";
    if (t->n == ROWS_MAX)
        return "there are too many rows";
    t->names[t->n] = text;
    return NULL;
}

/* Parses the table. On error, sets t->error, and t->line to its line. */
static void read_table(struct duda_ctx *d, struct table *t, mk_str text)
{
    struct mk_buf buf = mk_buf_growing(CELL_MAX);
    struct duda_csv csv = duda_csv_of(text, ',', &buf);
    mk_str cell;
    int e = 1;
    *t = (struct table){.n = 0};
    while (!t->error && (e = duda_csv_next(&csv, &cell)) == 1)
        t->error = take(d, t, &csv, cell);
    if (!t->error && e < 0)
        t->error = csv.error ? csv.error : "a cell is too long";
    t->line = csv.line;
    mk_buf_free(&buf);
}

/* A small compressed body may expand to a large text: the capacity of `out` is the limit. */
static int unpack(struct duda_ctx *d, mk_str content, struct mk_buf *out)
{
    struct duda_mime mime;
    if (!duda_mime_read(duda_header(d, "Content-Type"), &mime))
        return 415;
    if (duda_mime_is(&mime, MK_STR("text/csv"))) {
        mk_buf_add(out, content);
        return out->failed ? -ENOMEM : 0;
    }
    if (!duda_mime_is(&mime, MK_STR("application/gzip")))
        return 415;
    int e = duda_gunzip(out, content);
    return e == -EBADMSG ? 422 : e == -EMSGSIZE ? 413 : e;
}

static int keep(struct duda_ctx *d, mk_str text)
{
    struct table *t = duda_alloc(d, sizeof *t);
    if (!t)
        return -ENOMEM;
    read_table(d, t, text);
    if (t->error)
        return duda_problem(d, 422, "line %u: %s", t->line, t->error);
    int e = duda_kv_set(d, duda_kv_find(d, NULL), MK_STR("table"), text, 0);
    return e ? e : 204;
}

static int receive(struct duda_ctx *d)
{
    struct mk_buf text = mk_buf_growing(CONTENT_MAX);
    mk_str content;
    int e = duda_read_all(d, CONTENT_MAX, &content);
    e = e ? e : unpack(d, content, &text);
    e = e ? e : keep(d, mk_buf_str(&text));
    mk_buf_free(&text);
    return e;
}

/* ---- The page ---- */

static int load(struct duda_ctx *d, struct table **out)
{
    mk_str text = MK_STR("");
    struct table *t = duda_alloc(d, sizeof *t);
    int e = t ? duda_kv_get(d, duda_kv_find(d, NULL), MK_STR("table"), &text) : -ENOMEM;
    if (e && e != -ENOENT)
        return e;
    read_table(d, t, e ? MK_STR("") : text);
    *out = t;
    return 0;
}

static int write_page(struct duda_ctx *d, struct mk_buf *out, const struct table *t)
{
    const struct duda_chart_series series = {.values = t->amounts, .n = t->n};
    const struct duda_chart chart = {.kind = DUDA_CHART_BARS,
                                     .title = MK_STR("Expenses"),
                                     .labels = t->names,
                                     .n_labels = t->n,
                                     .series = &series,
                                     .n_series = 1};
    mk_str address = duda_sprintf(d, "http://%.*s/expenses.csv",
                                  MK_STR_ARG(mk_str_first(duda_header(d, "Host"), ADDRESS_MAX)));
    mk_buf_add(out, MK_STR("<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>expenses</title>\n"));
    int e = t->n ? duda_chart_svg(out, &chart) : 0;
    mk_buf_add(out, t->n ? MK_STR("\n<p><a href=/expenses.csv>CSV</a>, <a href=/expenses.csv.gz>packed</a>\n")
                         : MK_STR("<p>There are no expenses.\n"));
    return e ? e : duda_qr_svg(out, address, DUDA_QR_MEDIUM, 200);
}

static int show(struct duda_ctx *d)
{
    struct mk_buf page = mk_buf_growing(PAGE_MAX);
    struct table *t;
    int e = load(d, &t);
    e = e ? e : write_page(d, &page, t);
    e = e ? e : page.failed ? -ENOMEM : duda_html(d, mk_buf_str(&page));
    mk_buf_free(&page);
    return e;
}

/* ---- Export ---- */

/* A spreadsheet would evaluate a name such as =1+1 as a formula: escape_formulas prevents that. */
static int write_csv(struct duda_ctx *d, struct mk_buf *out)
{
    struct duda_csv_writer w = {.out = out, .escape_formulas = true};
    struct table *t;
    int e = load(d, &t);
    for (size_t i = 0; !e && i < t->n; i++) {
        duda_csv_add(&w, t->names[i]);
        duda_csv_add(&w, duda_sprintf(d, "%.2f", t->amounts[i]));
        duda_csv_end_row(&w);
    }
    return e ? e : out->failed ? -ENOMEM : 0;
}

static int export(struct duda_ctx *d, bool packs)
{
    struct mk_buf text = mk_buf_growing(PAGE_MAX), packed = mk_buf_growing(PAGE_MAX);
    int e = write_csv(d, &text);
    e = e || !packs ? e : duda_gzip(&packed, mk_buf_str(&text), 0);
    e = e ? e
          : duda_content_type(d, packs ? MK_STR("application/gzip")
                                       : MK_STR("text/csv; charset=utf-8; header=absent"));
    e = e ? e : duda_write(d, mk_buf_str(packs ? &packed : &text));
    mk_buf_free(&text);
    mk_buf_free(&packed);
    return e;
}

static int export_plain(struct duda_ctx *d)
{
    return export(d, false);
}

static int export_packed(struct duda_ctx *d)
{
    return export(d, true);
}

DUDA_SERVICE(expenses, DUDA_GET("/", show, "The page."),
             DUDA_POST("/", receive, "Takes CSV, or CSV packed by gzip."),
             DUDA_GET("/expenses.csv", export_plain, "The table."),
             DUDA_GET("/expenses.csv.gz", export_packed, "The table, packed."));
