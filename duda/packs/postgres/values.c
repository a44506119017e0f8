/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <errno.h>
#include <monkey/mem.h>
#include <stdlib.h>

#include "row.h"

/* Types of PostgreSQL, by their fixed numbers (pg_type.dat). */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701
};

static void add_bytes(struct duda_sql_rows *rows, mk_str text)
{
    struct mk_buf bytes = mk_buf_growing(text.len + 1);
    postgres_bytes_read(&bytes, text);
    struct duda_sql_value value = duda_sql_blob(mk_buf_str(&bytes));
    if (bytes.failed)
        rows->error = -ENOMEM;
    duda_sql_rows_add(rows, &value);
    mk_buf_free(&bytes);
}

static void add_cell(struct duda_sql_rows *rows, const PGresult *result, int row, int column)
{
    const char *at = PQgetvalue(result, row, column);
    mk_str text = mk_str_of(at, (size_t)PQgetlength(result, row, column));
    struct duda_sql_value value = duda_sql_text(text);
    if (PQgetisnull(result, row, column)) {
        value = duda_sql_null();
    } else {
        switch (PQftype(result, column)) {
        case OID_BOOL:
            value = duda_sql_integer(text.len && text.p[0] == 't');
            break;
        case OID_INT2:
        case OID_INT4:
        case OID_INT8:
            value = duda_sql_integer(strtoll(at, NULL, 10));
            break;
        case OID_FLOAT4:
        case OID_FLOAT8:
            value = duda_sql_real(strtod(at, NULL));
            break;
        case OID_BYTEA:
            add_bytes(rows, text);
            return;
        default:
            break;
        }
    }
    duda_sql_rows_add(rows, &value);
}

/* SQLSTATE (appendix A of PostgreSQL's manual). */
static int error_of(const char *state)
{
    mk_str s = mk_str_from_c(state);
    if (mk_str_starts(s, MK_STR("23")))
        return -EEXIST;
    if (mk_str_eq(s, MK_STR("40001")) || mk_str_eq(s, MK_STR("40P01")))
        return -ESTALE;
    if (mk_str_eq(s, MK_STR("22021"))) /* a text that is not UTF-8 */
        return -EBADMSG;
    if (mk_str_eq(s, MK_STR("57014")))
        return -ETIMEDOUT;
    if (mk_str_eq(s, MK_STR("53100")))
        return -ENOSPC;
    if (mk_str_starts(s, MK_STR("57P"))) /* it shuts down, has crashed, or is not ready */
        return -ECONNRESET;
    return -EREMOTEIO;
}

int postgres_values_copy_error(const PGresult *result, char *why, size_t size)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *where = PQresultErrorField(result, PG_DIAG_CONTEXT);
    mk_str rest = mk_str_from_c(where ? where : ""), first = mk_str_cut(&rest, '\n');
    struct mk_buf out = mk_buf_fixed(why, size - 1);
    mk_buf_add(&out, mk_str_first(mk_str_from_c(text ? text : PQresultErrorMessage(result)), size / 2));
    if (first.len)
        mk_buf_addf(&out, " (%.*s)", MK_STR_ARG(mk_str_first(first, size / 3)));
    why[out.len] = 0;
    return state && strncmp(state, "22", 2) == 0 ? -EBADMSG : error_of(state ? state : "");
}

void postgres_values_take(struct duda_sql_rows *rows, mk_str name, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    uint64_t changed = 0;
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *why = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        /* Errors without a state are libpq's own: it has lost the server. */
        int e = !state && status == PGRES_FATAL_ERROR ? -ECONNRESET : error_of(state);
        duda_sql_rows_fail(rows, e, "POSTGRES", name, why ? why : PQresultErrorMessage(result));
        return;
    }
    for (int i = 0; i < PQnfields(result); i++)
        duda_sql_rows_column(rows, mk_str_from_c(PQfname(result, i)));
    for (int row = 0; row < PQntuples(result) && !rows->error; row++)
        for (int i = 0; i < PQnfields(result) && !rows->error; i++)
            add_cell(rows, result, row, i);
    /* Of SELECT it counts what was read. */
    if (!mk_str_starts(mk_str_from_c(PQcmdStatus(result)), MK_STR("SELECT")) &&
        mk_num_parse(mk_str_from_c(PQcmdTuples(result)), &changed))
        rows->changed = (int64_t)changed;
    if (rows->error == -EMSGSIZE && !rows->problem[0])
        duda_sql_rows_fail(rows, -EMSGSIZE, "POSTGRES", name, "the result is longer than MaxResult");
}
