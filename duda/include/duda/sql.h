/* SPDX-License-Identifier: Apache-2.0 */
/* Databases: one interface over SQLite and PostgreSQL. */
#ifndef DUDA_SQL_H
#define DUDA_SQL_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-sql.so: `#define DUDA_USE "duda-sql",` ahead of <duda.h>, and link
 * with `pkg-config --libs duda-sql`. Which database it is, the configuration says:
 *
 *     [PLUGINS]
 *         Load duda-sqlite
 *     [SQLITE]
 *         File /var/lib/shop/shop.db
 *
 * A service that keeps to the SQL that both know moves to PostgreSQL by another section.
 */

/** Limits: bytes of a statement, and its parameters. */
enum { DUDA_SQL_TEXT_MAX = 64 * 1024, DUDA_SQL_PARAMETERS_MAX = 1000 };

/** A database: one section of the configuration, in one worker. */
struct duda_sql_db;

/** The database of that Name; NULL is "main". Valid as long as the worker. NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_sql_db *duda_sql_find(struct duda_ctx *d, const char *name);

/** What a value is. */
enum duda_sql_type { DUDA_SQL_NULL, DUDA_SQL_INTEGER, DUDA_SQL_REAL, DUDA_SQL_TEXT, DUDA_SQL_BLOB };

/** A value of a parameter or a row. In rows, a NUL follows text, and all types of PostgreSQL but numbers,
 * booleans (0 or 1) and bytes are text as PostgreSQL writes it. */
struct duda_sql_value {
    enum duda_sql_type type;
    int64_t number; /**< INTEGER */
    double real;    /**< REAL */
    mk_str text;    /**< TEXT, BLOB */
};

/** Parameters of a statement. Absent text is NULL. */
static inline struct duda_sql_value duda_sql_null(void)
{
    struct duda_sql_value v = {DUDA_SQL_NULL, 0, 0, {NULL, 0}};
    return v;
}
static inline struct duda_sql_value duda_sql_integer(int64_t number)
{
    struct duda_sql_value v = {DUDA_SQL_INTEGER, number, 0, {NULL, 0}};
    return v;
}
static inline struct duda_sql_value duda_sql_real(double real)
{
    struct duda_sql_value v = {DUDA_SQL_REAL, 0, real, {NULL, 0}};
    return v;
}
static inline struct duda_sql_value duda_sql_text(mk_str text)
{
    struct duda_sql_value v = {text.p ? DUDA_SQL_TEXT : DUDA_SQL_NULL, 0, 0, text};
    return v;
}
static inline struct duda_sql_value duda_sql_blob(mk_str bytes)
{
    struct duda_sql_value v = {bytes.p ? DUDA_SQL_BLOB : DUDA_SQL_NULL, 0, 0, bytes};
    return v;
}

/** What a statement answers; all of it lives until the handler returns. */
struct duda_sql_result {
    size_t n_rows, n_columns;
    const mk_str *columns;               /**< their names */
    const struct duda_sql_value *values; /**< row after row; see duda_sql_cell() */
    int64_t changed;                     /**< rows that it inserted, updated or deleted */
    mk_str problem;                      /**< after an error: what happened where */
};

/** A value of a row. */
static inline const struct duda_sql_value *duda_sql_cell(const struct duda_sql_result *result, size_t row,
                                                         size_t column)
{
    return &result->values[row * result->n_columns + column];
}

/**
 * Runs one statement and waits for all of its result. Parameters are `$1`, `$2` and so on; their values are
 * never part of the text, so nothing in them can become SQL. Do not write values into the text.
 *
 *     struct duda_sql_result result;
 *     int e = duda_sql_query(d, db, &result, "SELECT name, price FROM goods WHERE id = $1", duda_sql_integer(id));
 *     if (e)
 *         return e;
 *     if (!result.n_rows)
 *         return 404;
 *     duda_write(d, duda_sql_cell(&result, 0, 0)->text);
 *
 * 0, or an error that result->problem explains: -EREMOTEIO: the database refuses the statement; -EEXIST: a
 * constraint (unique, foreign key, check, not null) forbids it; -ESTALE: another transaction came in between:
 * repeat the whole one; -ETIMEDOUT: it takes longer than Timeout; -ECONNRESET: the connection was lost, so
 * the statement may have been done or not; -ECONNREFUSED: the database is out of reach; -EBUSY: more than
 * MaxQueue statements wait, or SQLite's file stayed locked; -EMSGSIZE: the statement is too long or its
 * result has more than MaxResultSize bytes; -ENOSPC; -EINVAL: not one statement, or another number of parameters;
 * -EOPNOTSUPP: it would change the connection, which all handlers share: it begins or ends a transaction (see
 * duda_sql_begin()), is a COPY from or to us, or, outside of a transaction, a SET, LISTEN, temporary table or the
 * like; -ENOKEY: the database refuses our name or password, or does not exist;
 * -EBADMSG: a text has a NUL in it, or (PostgreSQL) is not UTF-8: it may be a
 * blob; -ENOMEM; or what waits answer.
 */
#define duda_sql_query(d, db, result, text, ...)                                                             \
    duda_sql_query_values(                                                                                   \
        d, db, result, text,                                                                                 \
        (const struct duda_sql_value[]){{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__} + 1,                \
        MK_LEN(((const struct duda_sql_value[]){{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__})) - 1)
/** The same with an array of parameters. */
MK_API int duda_sql_query_values(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                                 const char *text, const struct duda_sql_value *parameters,
                                 size_t n) MK_API_MUST_USE;

/** A statement of duda_sql_batch(). */
struct duda_sql_statement {
    const char *text;
    const struct duda_sql_value *parameters;
    size_t n;
};
/** The most of them in one call. */
enum { DUDA_SQL_BATCH_MAX = 1000 };
/**
 * Runs several statements, and waits for all of them; PostgreSQL is sent all before the first answer is
 * there, so that they take one way there and back. Each is for itself, as if it was run by duda_sql_query(): those
 * behind one that fails are run, too, and outside of a transaction several connections may share them, in any
 * order. There is a result for each. 0, or the error of the first that failed.
 *
 *     const struct duda_sql_statement queries[] = {{"SELECT ... WHERE id = $1", &id, 1}, {"SELECT ...", NULL,
 * 0}}; struct duda_sql_result results[2]; int e = duda_sql_batch(d, db, queries, 2, results);
 */
MK_API int duda_sql_batch(struct duda_ctx *d, struct duda_sql_db *db,
                          const struct duda_sql_statement *queries, size_t n,
                          struct duda_sql_result *results) MK_API_MUST_USE;

/**
 * Begins a transaction: until it ends, statements of this handler on this database belong to it. It is rolled
 * back when the handler returns without duda_sql_commit(). One at a time and database: -EALREADY. Other
 * errors as above. In a transaction, after any error but those of parameters, roll back.
 *
 *     int e = duda_sql_begin(d, db);
 *     e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n - 1 WHERE id = $1", from);
 *     e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n + 1 WHERE id = $1", to);
 *     return e ? e : duda_sql_commit(d, db);
 */
MK_API int duda_sql_begin(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;
/** Ends it: all is done, or after an error nothing is. -EINVAL: there is none. */
MK_API int duda_sql_commit(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;
/** Ends it: nothing is done. */
MK_API int duda_sql_rollback(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;

/** The rows as JSON: an array with an object for each row. Bytes become base64, numbers that JSON does not
 * know null. */
MK_API void duda_sql_json(struct mk_buf *out, const struct duda_sql_result *result);

#ifdef __cplusplus
}
#endif

#endif
