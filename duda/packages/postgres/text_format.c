/* SPDX-License-Identifier: Apache-2.0 */
#include "text_format.h"

#include <math.h>
#include <monkey/text.h>

static void escape_copy_text(struct mk_buf *out, mk_str text)
{
    static const char special[] = "\\\n\r\t\b\f\v", letters[] = "\\nrtbfv";
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.p[i] ? strchr(special, text.p[i]) : NULL;
        if (at)
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, at ? letters[at - special] : text.p[i]);
    }
}

static void format_real(struct mk_buf *out, double real)
{
    size_t from = out->len;
    if (isfinite(real))
        mk_buf_addf(out, "%.17g", real);
    else
        mk_buf_add(out, isnan(real) ? MK_STR("NaN") : real > 0 ? MK_STR("Infinity") : MK_STR("-Infinity"));
    for (size_t i = from; i < out->len; i++) /* printf uses the decimal point of the locale */
        out->p[i] = out->p[i] == ',' ? '.' : out->p[i];
}

static void format_value(struct mk_buf *out, const struct duda_sql_value *v)
{
    switch (v->type) {
    case DUDA_SQL_INTEGER:
        mk_buf_addf(out, "%lld", (long long)v->number);
        break;
    case DUDA_SQL_REAL:
        format_real(out, v->real);
        break;
    case DUDA_SQL_TEXT:
        escape_copy_text(out, v->text);
        break;
    case DUDA_SQL_BLOB:
        mk_buf_add(out, MK_STR("\\\\x"));
        mk_hex_encode(out, v->text);
        break;
    case DUDA_SQL_NULL:
    default:
        mk_buf_add(out, MK_STR("\\N"));
    }
}

void postgres_copy_row_format(struct mk_buf *out, const struct duda_sql_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            mk_buf_add_char(out, '\t');
        format_value(out, &values[i]);
    }
    mk_buf_add_char(out, '\n');
}

void postgres_quote_literal(struct mk_buf *out, mk_str text)
{
    out->failed = out->failed || (text.len && memchr(text.p, 0, text.len));
    mk_buf_add(out, MK_STR("E'"));
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '\'' || text.p[i] == '\\')
            mk_buf_add_char(out, text.p[i]);
        mk_buf_add_char(out, text.p[i]);
    }
    mk_buf_add_char(out, '\'');
}

static bool is_octal_escape(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < '0' || s.p[i] > '7')
            return false;
    return s.len == 3 && s.p[0] <= '3';
}

/* Decodes the escape format: bytes stand for themselves, except for the escapes `\\` and `\ooo`. */
static void decode_bytea_escapes(struct mk_buf *out, mk_str text)
{
    while (text.len) {
        mk_str digits = mk_str_first(mk_str_skip(text, 1), 3);
        if (text.p[0] == '\\' && is_octal_escape(digits)) {
            mk_buf_add_char(
                out, (char)((digits.p[0] - '0') << 6 | (digits.p[1] - '0') << 3 | (digits.p[2] - '0')));
            text = mk_str_skip(text, 4);
            continue;
        }
        mk_buf_add_char(out, text.p[0]);
        text = mk_str_skip(text, text.p[0] == '\\' && digits.len && digits.p[0] == '\\' ? 2 : 1);
    }
}

size_t postgres_bytea_size_max(mk_str text)
{
    return mk_str_starts(text, MK_STR("\\x")) ? text.len / 2 : text.len;
}

void postgres_bytea_decode(struct mk_buf *out, mk_str text)
{
    if (!mk_str_starts(text, MK_STR("\\x"))) {
        decode_bytea_escapes(out, text);
        return;
    }
    for (size_t i = 2; i + 1 < text.len; i += 2) {
        int high = mk_char_hex(text.p[i]), low = mk_char_hex(text.p[i + 1]);
        mk_buf_add_char(out, (char)(high < 0 || low < 0 ? 0 : high << 4 | low));
    }
}
