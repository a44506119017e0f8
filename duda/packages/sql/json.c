/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON (RFC 8259). */
#include <duda/sql.h>
#include <math.h>
#include <monkey/text.h>

static void add_real(struct mk_buf *out, double real)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!isfinite(real)) {
        mk_buf_add(out, MK_STR("null"));
        return;
    }
    mk_buf_addf(&text, "%.17g", real);
    for (size_t i = 0; i < text.len; i++) /* printf uses the decimal point of the locale */
        mk_buf_add_char(out, buf[i] == ',' ? '.' : buf[i]);
}

static void add_value(struct mk_buf *out, const struct duda_sql_value *v)
{
    switch (v->type) {
    case DUDA_SQL_INTEGER:
        mk_buf_add_int(out, v->number);
        break;
    case DUDA_SQL_REAL:
        add_real(out, v->real);
        break;
    case DUDA_SQL_TEXT:
        mk_json_quote(out, v->text);
        break;
    case DUDA_SQL_BLOB:
        mk_buf_add_char(out, '"');
        mk_base64_encode(out, v->text);
        mk_buf_add_char(out, '"');
        break;
    case DUDA_SQL_NULL:
    default:
        mk_buf_add(out, MK_STR("null"));
    }
}

void duda_sql_json(struct mk_buf *out, const struct duda_sql_result *result)
{
    mk_buf_add_char(out, '[');
    for (size_t row = 0; row < result->n_rows; row++) {
        mk_buf_add(out, row ? MK_STR(",{") : MK_STR("{"));
        for (size_t i = 0; i < result->n_columns; i++) {
            if (i)
                mk_buf_add_char(out, ',');
            mk_json_quote(out, result->columns[i]);
            mk_buf_add_char(out, ':');
            add_value(out, duda_sql_cell(result, row, i));
        }
        mk_buf_add_char(out, '}');
    }
    mk_buf_add_char(out, ']');
}
