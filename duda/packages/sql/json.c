/* SPDX-License-Identifier: Apache-2.0 */
/* Rows without a schema: written as JSON (RFC 8259), or as values. */
#include <duda/memory.h>
#include <duda/sql.h>
#include <monkey/json.h>
#include <monkey/text.h>

static void write_value(struct mk_json_writer *w, const struct duda_sql_value *v)
{
    switch (v->type) {
    case DUDA_SQL_INTEGER:
        mk_json_int(w, v->number);
        break;
    case DUDA_SQL_REAL:
        mk_json_double(w, v->real);
        break;
    case DUDA_SQL_TEXT:
        mk_json_string(w, v->text);
        break;
    case DUDA_SQL_BLOB:
        mk_json_begin_string(w);
        mk_base64_encode(w->out, v->text);
        mk_json_end_string(w);
        break;
    case DUDA_SQL_NULL:
    default:
        mk_json_null(w);
    }
}

void duda_sql_json(struct mk_buf *out, const struct duda_sql_result *result)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_array(&w);
    for (size_t row = 0; row < result->n_rows; row++) {
        mk_json_begin_object(&w);
        for (size_t i = 0; i < result->n_columns; i++)
            write_value(mk_json_key_str(&w, result->columns[i]), duda_sql_cell(result, row, i));
        mk_json_end_object(&w);
    }
    mk_json_end_array(&w);
}

/* ---- Values ---- */

static struct duda_value cell_value(const struct duda_sql_value *v)
{
    switch (v->type) {
    case DUDA_SQL_INTEGER:
        return duda_value_integer(v->number);
    case DUDA_SQL_REAL:
        return duda_value_number(v->real);
    case DUDA_SQL_TEXT:
        return duda_value_text(v->text);
    case DUDA_SQL_BLOB:
        return duda_value_bytes(v->text);
    case DUDA_SQL_NULL:
    default:
        return duda_value_null();
    }
}

struct duda_value duda_sql_rows_value(struct duda_ctx *d, const struct duda_sql_result *result)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    size_t n_rows = result->n_rows, n_columns = result->n_columns;
    struct duda_value *rows = (struct duda_value *)mk_allocator_zalloc(&memory, n_rows, sizeof *rows);
    struct duda_entry *cells =
        (struct duda_entry *)mk_allocator_zalloc(&memory, n_rows * n_columns, sizeof *cells);
    if (!rows || !cells)
        return duda_value_null();
    for (size_t row = 0; row < n_rows; row++) {
        struct duda_entry *entries = cells + row * n_columns;
        for (size_t i = 0; i < n_columns; i++)
            entries[i] = (struct duda_entry){result->columns[i].p, cell_value(duda_sql_cell(result, row, i))};
        rows[row] = duda_value_map(entries, n_columns);
    }
    return duda_value_list(rows, n_rows);
}
