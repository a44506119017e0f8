/* SPDX-License-Identifier: Apache-2.0 */
/* Collects rows for a single allocation: as the buffer may move until then, a string is identified by its
 * offset in `text`, not by its address. */
#include <duda/memory.h>
#include <duda/sql_backend.h>
#include <errno.h>
#include <monkey/mem.h>

enum { FIRST_CELLS = 16 }; /* few enough for a fast malloc() */

static bool reserve_cell(struct duda_sql_rows *r)
{
    if (r->n < r->cap)
        return true;
    size_t cap = r->cap ? r->cap * 2 : FIRST_CELLS;
    if (cap * sizeof *r->cells > r->max * 4 + 65536) {
        r->error = r->error ? r->error : -EMSGSIZE;
        return false;
    }
    struct duda_sql_value *cells = mk_mem_realloc(r->cells, cap * sizeof *cells);
    if (!cells) {
        r->error = r->error ? r->error : -ENOMEM;
        return false;
    }
    r->cells = cells;
    r->cap = cap;
    return true;
}

/* Terminates each string with a NUL, so even an empty string occupies a byte. */
static bool copy_cell_text(struct duda_sql_rows *r, struct duda_sql_value *cell)
{
    mk_str text = cell->text;
    if (!r->text.max)
        r->text = mk_buf_growing(r->max);
    cell->number = (int64_t)r->text.len;
    cell->text.p = NULL;
    mk_buf_add(&r->text, text);
    mk_buf_add_char(&r->text, 0);
    if (r->text.failed && !r->error)
        r->error = text.len >= r->max - (size_t)cell->number ? -EMSGSIZE : -ENOMEM;
    return !r->text.failed;
}

void duda_sql_rows_add(struct duda_sql_rows *r, const struct duda_sql_value *value)
{
    struct duda_sql_value cell = *value;
    if (r->error || !reserve_cell(r))
        return;
    if (cell.type >= DUDA_SQL_TEXT && !copy_cell_text(r, &cell))
        return;
    r->cells[r->n++] = cell;
}

void duda_sql_rows_column(struct duda_sql_rows *r, mk_str name)
{
    const struct duda_sql_value cell = duda_sql_text(name);
    duda_sql_rows_add(r, &cell);
    r->n_columns++;
}

void duda_sql_rows_fail(struct duda_sql_rows *r, int error, const char *section, mk_str name,
                        const char *error_text)
{
    struct mk_buf text = mk_buf_fixed(r->message, sizeof r->message - 1);
    r->error = error;
    mk_buf_addf(&text, "[%s] %.*s: ", section, MK_STR_ARG(name));
    mk_buf_add(&text, mk_str_trim(mk_str_first(mk_str_from_c(error_text), sizeof r->message - 1 - text.len)));
    r->message[text.len] = 0;
}

void duda_sql_rows_clear(struct duda_sql_rows *r)
{
    mk_buf_clear(&r->text);
    r->n = r->n_columns = 0;
    r->rows_affected = 0;
    r->error = 0;
    r->message[0] = 0;
}

void duda_sql_rows_free(struct duda_sql_rows *r)
{
    mk_buf_free(&r->text);
    mk_mem_free(r->cells);
    r->cells = NULL;
    r->n = r->cap = 0;
}

/* The column names are the first cells. */
static int copy_rows_to_handler(const struct duda_sql_rows *r, struct duda_ctx *d,
                                struct duda_sql_result *result)
{
    size_t n = r->n_columns;
    struct duda_sql_value *cells = duda_alloc(d, (r->n + 1) * sizeof *cells);
    mk_str *columns = duda_alloc(d, (n + 1) * sizeof *columns);
    mk_str text = duda_strdup(d, mk_buf_str(&r->text));
    if (!cells || !columns || !text.p)
        return -ENOMEM;
    memcpy(cells, r->cells, r->n * sizeof *cells);
    for (size_t i = 0; i < r->n; i++)
        if (cells[i].type >= DUDA_SQL_TEXT) {
            cells[i].text.p = text.p + cells[i].number;
            cells[i].number = 0;
        }
    for (size_t i = 0; i < n; i++)
        columns[i] = cells[i].text;
    result->columns = columns;
    result->values = cells + n;
    result->n_columns = n;
    result->n_rows = n ? (r->n - n) / n : 0;
    return 0;
}

int duda_sql_rows_result(struct duda_sql_rows *r, struct duda_ctx *d, struct duda_sql_result *result)
{
    *result = (struct duda_sql_result){.rows_affected = r->rows_affected};
    if (!r->error && r->n)
        r->error = copy_rows_to_handler(r, d, result);
    if (r->error)
        result->error = duda_strdup(d, mk_str_from_c(r->message[0] ? r->message : strerror(-r->error)));
    return r->error;
}
