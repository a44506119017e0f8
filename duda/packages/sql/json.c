/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows as JSON (RFC 8259). */
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
