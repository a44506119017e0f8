/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <duda/memory.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "text_format.h"

/* Fixed type OIDs of PostgreSQL (pg_type.dat). */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701
};

/* A result may need memory for values beyond its MaxResultSize bytes of text: at most a fixed amount plus a
 * multiple of MaxResultSize. */
enum { NUMBERS_LEAST = 65536, NUMBERS_SHARE = 4 };

enum { REAL_SIZE = 64 };

static mk_str cell_text(const PGresult *result, int row, int column)
{
    return mk_str_of(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

/* Returns the space that the strings of a column need, each with a NUL. */
static size_t column_size(const PGresult *result, int column)
{
    size_t space = 0;
    int n_rows = PQntuples(result);
    switch (PQftype(result, column)) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_FLOAT4:
    case OID_FLOAT8:
        return 0;
    case OID_BYTEA:
        for (int row = 0; row < n_rows; row++)
            space += postgres_bytea_size_max(cell_text(result, row, column)) + 1;
        return space;
    default:
        for (int row = 0; row < n_rows; row++)
            space += (size_t)PQgetlength(result, row, column) + 1;
        return space;
    }
}

static mk_str terminate_text(struct mk_buf *out, size_t from)
{
    mk_buf_put(out, mk_str_of("", 1));
    return mk_str_of(out->p + from, out->len - from - 1);
}

static mk_str append_text(struct mk_buf *out, mk_str text)
{
    size_t from = out->len;
    mk_buf_put(out, text);
    return terminate_text(out, from);
}

static mk_str append_bytea(struct mk_buf *out, mk_str text)
{
    size_t from = out->len;
    postgres_bytea_decode(out, text);
    return terminate_text(out, from);
}

static int64_t parse_integer(const char *at)
{
    bool is_negative = *at == '-';
    uint64_t n = 0;
    for (at += is_negative; *at; at++)
        n = n * 10 + (unsigned char)(*at - '0');
    return (int64_t)(is_negative ? ~n + 1 : n);
}

/* Parses a number with a decimal point. strtod() expects the decimal point of the locale instead. */
static double parse_real(const char *at)
{
    char text[REAL_SIZE];
    const char *point = strchr(at, '.');
    if (!point)
        return strtod(at, NULL);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(point - at), at, localeconv()->decimal_point, point + 1);
    return strtod(text, NULL);
}

static struct duda_sql_value convert_cell(const PGresult *result, int row, int column, struct mk_buf *texts)
{
    const char *at = PQgetvalue(result, row, column);
    if (!*at && PQgetisnull(result, row, column))
        return duda_sql_null();
    switch (PQftype(result, column)) {
    case OID_BOOL:
        return duda_sql_integer(*at == 't');
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        return duda_sql_integer(parse_integer(at));
    case OID_FLOAT4:
    case OID_FLOAT8:
        return duda_sql_real(parse_real(at));
    case OID_BYTEA:
        return duda_sql_blob(append_bytea(texts, cell_text(result, row, column)));
    default:
        return duda_sql_text(append_text(texts, cell_text(result, row, column)));
    }
}

/* Makes a single allocation that contains the values, the column names and the strings. */
static int copy_rows(const PGresult *from, size_t max, struct duda_ctx *d, struct duda_sql_result *to)
{
    int n_columns = PQnfields(from), n_rows = PQntuples(from);
    size_t n_cells = (size_t)n_rows * (size_t)n_columns, buf = 0;
    struct duda_sql_value *cells;
    for (int i = 0; i < n_columns; i++)
        buf += strlen(PQfname(from, i)) + 1 + column_size(from, i);
    uint64_t all = (uint64_t)n_cells * sizeof *cells; /* numbers have no text, but still need memory */
    if (buf > max || all > NUMBERS_LEAST + NUMBERS_SHARE * (uint64_t)max)
        return -EMSGSIZE;
    all += (size_t)n_columns * sizeof *to->columns + buf;
    cells = all < SIZE_MAX ? duda_alloc(d, (size_t)all) : NULL;
    if (!cells)
        return -ENOMEM;
    mk_str *columns = (mk_str *)(cells + n_cells);
    struct mk_buf texts = mk_buf_fixed((char *)(columns + n_columns), buf);
    *to = (struct duda_sql_result){.n_rows = (size_t)n_rows,
                                   .n_columns = (size_t)n_columns,
                                   .columns = columns,
                                   .values = cells,
                                   .rows_affected = to->rows_affected};
    for (int i = 0; i < n_columns; i++)
        *columns++ = append_text(&texts, mk_str_from_c(PQfname(from, i)));
    for (int row = 0; row < n_rows; row++)
        for (int i = 0; i < n_columns; i++)
            *cells++ = convert_cell(from, row, i, &texts);
    return 0;
}

int postgres_result_copy(PGresult *from, size_t max, struct duda_ctx *d, struct duda_sql_result *to)
{
    uint64_t changed = 0;
    /* For a SELECT, PQcmdTuples() is the number of rows read. */
    if (!mk_str_starts(mk_str_from_c(PQcmdStatus(from)), MK_STR("SELECT")) &&
        mk_num_parse(mk_str_from_c(PQcmdTuples(from)), &changed))
        to->rows_affected = (int64_t)changed;
    return PQnfields(from) ? copy_rows(from, max, d, to) : 0;
}

/* ---- Errors ---- */

/* Maps an SQLSTATE (appendix A of PostgreSQL's manual) to a constraint. */
static enum duda_sql_constraint sqlstate_to_constraint(mk_str state)
{
    static const struct {
        mk_str state;
        enum duda_sql_constraint kind;
    } all[] = {
        {MK_STR("23505"), DUDA_SQL_UNIQUE},      {MK_STR("23P01"), DUDA_SQL_UNIQUE},
        {MK_STR("23503"), DUDA_SQL_FOREIGN_KEY}, {MK_STR("23001"), DUDA_SQL_FOREIGN_KEY}, /* RESTRICT */
        {MK_STR("23502"), DUDA_SQL_NOT_NULL},    {MK_STR("23514"), DUDA_SQL_CHECK},
        {MK_STR("44000"), DUDA_SQL_CHECK}, /* WITH CHECK OPTION of a view */
    };
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (mk_str_eq(state, all[i].state))
            return all[i].kind;
    return mk_str_starts(state, MK_STR("23")) ? DUDA_SQL_OTHER_CONSTRAINT : DUDA_SQL_NO_CONSTRAINT;
}

/* Maps an SQLSTATE to a negative errno value. */
static int sqlstate_to_errno(const char *state)
{
    mk_str s = mk_str_from_c(state);
    enum duda_sql_constraint constraint = sqlstate_to_constraint(s);
    if (constraint)
        return constraint == DUDA_SQL_UNIQUE ? -EEXIST : -ERANGE;
    if (mk_str_eq(s, MK_STR("40001")) || mk_str_eq(s, MK_STR("40P01")))
        return -ESTALE;
    if (mk_str_eq(s, MK_STR("22021"))) /* a string that is not UTF-8 */
        return -EBADMSG;
    if (mk_str_eq(s, MK_STR("57014")))
        return -ETIMEDOUT;
    if (mk_str_eq(s, MK_STR("53100")))
        return -ENOSPC;
    if (mk_str_starts(s, MK_STR("57P"))) /* shutting down, crashed, or not ready */
        return -ECONNRESET;
    return -EREMOTEIO;
}

static mk_str result_field(const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);
    return text ? mk_str_from_c(text) : MK_STR_NULL;
}

/* Returns the columns in the detail 'Key (first, "Last")=(Ada, L.) already exists.', and removes their quotes
 * in place. The server may translate the words of the detail, and omits it if the user may not read the columns. */
static mk_str key_columns(char *detail)
{
    char *begin = detail ? strchr(detail, '(') : NULL, *end = begin ? strstr(begin, ")=(") : NULL;
    if (!end)
        return MK_STR_NULL;
    char *to = ++begin;
    for (const char *at = begin; at < end; at++)
        if (*at != '"')
            *to++ = *at;
    return mk_str_of(begin, (size_t)(to - begin));
}

bool postgres_result_violation(const PGresult *result, struct duda_sql_violation *violation)
{
    *violation = (struct duda_sql_violation){
        .kind = sqlstate_to_constraint(result_field(result, PG_DIAG_SQLSTATE)),
        .constraint = result_field(result, PG_DIAG_CONSTRAINT_NAME),
        .table = result_field(result, PG_DIAG_TABLE_NAME),
        .columns = result_field(result, PG_DIAG_COLUMN_NAME),
    };
    if (violation->kind == DUDA_SQL_UNIQUE)
        violation->columns = key_columns(PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
    return violation->kind != DUDA_SQL_NO_CONSTRAINT;
}

int postgres_copy_result_errno(const PGresult *result, char *error, size_t size)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);
    mk_str rest = mk_str_from_c(context ? context : ""), first = mk_str_cut(&rest, '\n');
    struct mk_buf out = mk_buf_fixed(error, size - 1);
    mk_buf_add(&out, mk_str_first(mk_str_from_c(text ? text : PQresultErrorMessage(result)), size / 2));
    if (first.len)
        mk_buf_addf(&out, " (%.*s)", MK_STR_ARG(mk_str_first(first, size / 3)));
    error[out.len] = 0;
    return state && strncmp(state, "22", 2) == 0 ? -EBADMSG : sqlstate_to_errno(state ? state : "");
}

int postgres_result_errno(const PGresult *result, const char **error)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return 0;
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    *error = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!*error)
        *error = PQresultErrorMessage(result);
    /* Errors without an SQLSTATE come from libpq itself: it has lost the server. */
    return state ? sqlstate_to_errno(state) : status == PGRES_FATAL_ERROR ? -ECONNRESET : -EREMOTEIO;
}
