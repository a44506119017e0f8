/* SPDX-License-Identifier: Apache-2.0 */
/* A statement with its parameters in the format of libpq: as text, except for blobs. PostgreSQL infers the
 * types. */
#include <monkey/mem.h>
#include <stdio.h>

#include "conn.h"

enum { NUMBER_SIZE = 32, BINARY = 1 };

static size_t formatted_value_size(const struct duda_sql_value *v)
{
    return v->type >= DUDA_SQL_TEXT ? v->text.len + 1 : NUMBER_SIZE;
}

static int format_value(char *at, const struct duda_sql_value *v)
{
    struct mk_buf text = mk_buf_fixed(at, formatted_value_size(v) - 1);
    if (v->type == DUDA_SQL_INTEGER) {
        mk_buf_add_int(&text, v->number);
    } else if (v->type == DUDA_SQL_REAL) {
        mk_buf_addf(&text, "%.17g", v->real);
        for (size_t i = 0; i < text.len; i++) /* printf uses the decimal point of the locale */
            at[i] = at[i] == ',' ? '.' : at[i];
    } else {
        mk_buf_add(&text, v->text);
    }
    at[text.len] = 0;
    return (int)text.len;
}

/* Makes a single allocation that contains the arrays and then the strings. */
struct postgres_query *postgres_query_new(mk_str text, const struct duda_sql_value *values, size_t n)
{
    size_t arrays = (n + 1) * (sizeof(char *) + 2 * sizeof(int)), buf = text.len + 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(buf, formatted_value_size(&values[i]), &buf) || buf > INT32_MAX)
            return NULL;
    struct postgres_query *query = mk_mem_alloc(sizeof *query + arrays + buf);
    if (!query)
        return NULL;
    memset(query, 0, offsetof(struct postgres_query, error_text));
    query->error_text[0] = 0;
    query->values = (void *)(query + 1);
    query->lengths = (void *)(query->values + n + 1);
    query->formats = query->lengths + n + 1;
    memset(query->values, 0, arrays);
    char *at = (char *)(query->formats + n + 1);
    memcpy(at, text.p, text.len);
    at[text.len] = 0;
    query->text = mk_str_of(at, text.len);
    at += text.len + 1;
    query->n = n;
    for (size_t i = 0; i < n; i++) {
        if (values[i].type == DUDA_SQL_NULL)
            continue;
        query->values[i] = at;
        query->lengths[i] = format_value(at, &values[i]);
        query->formats[i] = values[i].type == DUDA_SQL_BLOB ? BINARY : 0;
        at += formatted_value_size(&values[i]);
    }
    return query;
}

void postgres_query_fail(struct postgres_query *query, int error, mk_str section, const char *message)
{
    struct mk_buf text = mk_buf_fixed(query->error_text, sizeof query->error_text - 1);
    query->error = error;
    mk_buf_addf(&text, "[POSTGRES] %.*s: ", MK_STR_ARG(section));
    mk_buf_add(&text,
               mk_str_trim(mk_str_first(mk_str_from_c(message), sizeof query->error_text - 1 - text.len)));
    query->error_text[text.len] = 0;
}

void postgres_query_free(struct postgres_query *query)
{
    if (!query)
        return;
    PQclear(query->result);
    mk_mem_free(query);
}
