/* SPDX-License-Identifier: Apache-2.0 */
/* SQL databases: one interface for SQLite and PostgreSQL. */
#ifndef DUDA_SQL_H
#define DUDA_SQL_H

#include <duda/service.h>
#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-sql.so: `#define DUDA_USE "duda-sql"` before including <duda.h>, and link
 * with `pkg-config --libs duda-sql`. The configuration selects the database:
 *
 *     [PLUGINS]
 *         Load duda-sqlite
 *     [SQLITE]
 *         File /var/lib/shop/shop.db
 *
 * A service that uses only SQL that both databases support can switch to PostgreSQL by changing only
 * the configuration.
 */

/** Limits: bytes of a statement; number of its parameters. */
enum { DUDA_SQL_TEXT_MAX = 64 * 1024, DUDA_SQL_PARAMETERS_MAX = 1000 };

/** A database: one section of the configuration, in one worker. */
struct duda_sql_db;

/** Returns the database with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The database is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is
 * no such database; functions called with NULL return -ENODEV, which becomes status 503. */
MK_API struct duda_sql_db *duda_sql_find(struct duda_ctx *d, const char *name);
/**
 * Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early.
 *
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_sql_of(worker, "shop") ? 0 : -ENODEV;
 *     }
 */
MK_API struct duda_sql_db *duda_sql_of(struct mk_worker *worker, const char *name);

/** The type of a value. */
enum duda_sql_type { DUDA_SQL_NULL, DUDA_SQL_INTEGER, DUDA_SQL_REAL, DUDA_SQL_TEXT, DUDA_SQL_BLOB };

/** A parameter, or a value of a row. In rows, text is NUL-terminated; all PostgreSQL types except numbers,
 * booleans (0 or 1) and bytes are text in PostgreSQL's output format. */
struct duda_sql_value {
    enum duda_sql_type type;
    int64_t number; /**< INTEGER */
    double real;    /**< REAL */
    mk_str text;    /**< TEXT, BLOB */
};

/**
 * Constructors for parameters. Absent text becomes NULL.
 *
 *     e = duda_sql_query(d, db, NULL, "UPDATE goods SET price = $1, note = $2 WHERE id = $3",
 *                        duda_sql_real(2.5), duda_sql_null(), duda_sql_integer(id));
 */
static inline struct duda_sql_value duda_sql_null(void)
{
    struct duda_sql_value v = {DUDA_SQL_NULL, 0, 0, {MK_API_NULL, 0}};
    return v;
}
static inline struct duda_sql_value duda_sql_integer(int64_t number)
{
    struct duda_sql_value v = {DUDA_SQL_INTEGER, number, 0, {MK_API_NULL, 0}};
    return v;
}
static inline struct duda_sql_value duda_sql_real(double real)
{
    struct duda_sql_value v = {DUDA_SQL_REAL, 0, real, {MK_API_NULL, 0}};
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

/** The kind of a constraint. */
enum duda_sql_constraint {
    DUDA_SQL_NO_CONSTRAINT,
    DUDA_SQL_UNIQUE,      /**< UNIQUE, PRIMARY KEY, or EXCLUDE of PostgreSQL */
    DUDA_SQL_FOREIGN_KEY, /**< the other row is missing, or other rows still refer to this one */
    DUDA_SQL_NOT_NULL,
    DUDA_SQL_CHECK,
    DUDA_SQL_OTHER_CONSTRAINT, /**< RAISE() in a trigger, or the type of a column in a STRICT table of
                                    SQLite */
};

/** A violated constraint. Texts that the database does not report are absent. */
struct duda_sql_violation {
    enum duda_sql_constraint kind;
    mk_str constraint;    /**< its name. SQLite: only for CHECK (or its expression, if it has no name) and for
                               an index on expressions */
    mk_str table;         /**< SQLite: only for UNIQUE and NOT NULL */
    mk_str columns;       /**< only for UNIQUE and NOT NULL: "email", or "first, last" */
    uint64_t reserved[4]; /**< for later releases */
};

/** The result of a statement. It lives until the handler returns. */
struct duda_sql_result {
    size_t n_rows, n_columns;
    const mk_str *columns;                      /**< column names */
    const struct duda_sql_value *values;        /**< row by row; see duda_sql_cell() */
    int64_t rows_affected;                      /**< number of rows inserted, updated or deleted */
    mk_str error;                               /**< after an error: a description of the error */
    const struct duda_sql_violation *violation; /**< after -EEXIST and -ERANGE: the constraint; else NULL */
    uint64_t reserved[3];                       /**< for later releases */
};

/**
 * Returns a value of a row.
 *
 *     for (size_t row = 0; row < result.n_rows; row++)
 *         duda_printf(d, "%lld %s\n", (long long)duda_sql_cell(&result, row, 0)->number,
 *                     duda_sql_cell(&result, row, 1)->text.p);
 */
static inline const struct duda_sql_value *duda_sql_cell(const struct duda_sql_result *result, size_t row,
                                                         size_t column)
{
    return &result->values[row * result->n_columns + column];
}

#ifndef __cplusplus
/** For the macros below, which are statement expressions: GCC ignores MK_API_MUST_USE of the last call in a
 * statement expression, so this function has it again. The macros expand their parameters once, so that the
 * compiler reports a parameter of a wrong type once. */
static inline MK_API_MUST_USE int duda_sql_use(int result)
{
    return result;
}
#endif

/**
 * Runs one SQL query or other statement, and waits for its complete result. Parameters are `$1`, `$2` and
 * so on; their values are sent separately from the text, which rules out SQL injection. Never write values
 * into the text. `result` may be NULL if the handler needs only the return value.
 *
 *     struct duda_sql_result result;
 *     int e = duda_sql_query(d, db, &result, "UPDATE goods SET price = $1 WHERE id = $2",
 *                            duda_sql_integer(price), duda_sql_integer(id));
 *     if (e)
 *         return e;
 *     if (!result.rows_affected)
 *         return 404;
 *
 * duda_sql_query_rows() and duda_sql_query_row() store the selected rows in structs, and
 * duda_sql_query_cell() returns a single value.
 *
 * Returns 0, or an error that result->error describes: -EREMOTEIO: the database rejected the statement;
 * -EEXIST (409): it violates a unique constraint, so the row exists already; -ERANGE (422): it violates a
 * foreign key, NOT NULL, CHECK or other constraint: see duda_sql_last_violation(); -ESTALE: a concurrent
 * transaction interfered (serialization failure): repeat the whole transaction; -ETIMEDOUT: it takes longer
 * than Timeout; -ECONNRESET: the connection was lost, so the statement may or may not have run;
 * -ECONNREFUSED: the database is unreachable; -EBUSY: more than MaxQueue statements are queued, or SQLite's
 * file stayed locked; -EMSGSIZE: the statement is too long, or its result exceeds MaxResultSize; -ENOSPC;
 * -EINVAL: not exactly one statement, or a wrong number of parameters; -EOPNOTSUPP: the statement would
 * change the state of the shared connection: it begins or ends a transaction (see duda_sql_begin()), is a
 * COPY from or to the client, or, outside a transaction, is a SET, LISTEN, CREATE TEMPORARY TABLE or the
 * like; -ENOKEY: the database does not exist, or rejects the user name or password; -EBADMSG: a string
 * contains a NUL, or (PostgreSQL) is not UTF-8: consider a blob; -ENOMEM; or the error of a failed wait.
 */
#ifndef __cplusplus
#define duda_sql_query(d, db, result, text, ...)                                                             \
    duda_sql_use(__extension__({                                                                             \
        const struct duda_sql_value duda_values[] = {{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__};       \
        duda_sql_query_values(d, db, result, text, duda_values + 1,                                          \
                              sizeof duda_values / sizeof *duda_values - 1);                                 \
    }))
#endif
/**
 * Runs a statement with an array of parameters.
 *
 *     const struct duda_sql_value values[] = {duda_sql_integer(price), duda_sql_text(who)};
 *     e = duda_sql_query_values(d, db, &result, "SELECT * FROM goods WHERE price < $1 AND owner = $2", values, 2);
 */
MK_API int duda_sql_query_values(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                                 const char *text, const struct duda_sql_value *parameters,
                                 size_t n) MK_API_MUST_USE;

/**
 * Returns the constraint that this handler violated last, for functions without a result, such as
 * duda_sql_query_cell() and duda_sql_commit() (deferred constraints). A later success, a rollback or another
 * error does not change it, so call this function after -EEXIST or -ERANGE. Never returns NULL: `kind` is
 * DUDA_SQL_NO_CONSTRAINT if the handler has violated none. Valid until the next violation, or until the
 * handler returns.
 *
 *     int e = duda_sql_query(d, db, NULL, "INSERT INTO users (name, email) VALUES ($1, $2)",
 *                            duda_sql_text(duda_form(d, "name")), duda_sql_text(duda_form(d, "email")));
 *     if (e == -EEXIST && mk_str_eq(duda_sql_last_violation(d)->columns, MK_STR("email")))
 *         return duda_problem(d, 409, "This address has an account.");
 *     return e ? e : 201;
 *
 * To remove a row that other rows may refer to:
 *
 *     int e = duda_sql_query(d, db, NULL, "DELETE FROM users WHERE id = $1", duda_sql_integer(id));
 *     if (e == -ERANGE && duda_sql_last_violation(d)->kind == DUDA_SQL_FOREIGN_KEY)
 *         return duda_problem(d, 409, "This user still has issues.");
 */
MK_API const struct duda_sql_violation *duda_sql_last_violation(struct duda_ctx *d);

/** A statement of duda_sql_batch(). */
struct duda_sql_statement {
    const char *text;
    const struct duda_sql_value *parameters;
    size_t n;
};
/** Maximum number of statements in a batch. */
enum { DUDA_SQL_BATCH_MAX = 1000 };
/**
 * Runs several statements and waits for all of them; PostgreSQL gets them as one pipeline (one round trip).
 * Each statement is independent, as if run by duda_sql_query(): statements after a failed one still run, and
 * outside a transaction several connections may run them, in any order. Each has its own result. Returns 0,
 * or the error of the first statement that failed.
 *
 *     const struct duda_sql_value key = duda_sql_integer(id);
 *     const struct duda_sql_statement queries[] = {{"SELECT ... WHERE id = $1", &key, 1},
 *                                                  {"SELECT ...", NULL, 0}};
 *     struct duda_sql_result results[2];
 *     int e = duda_sql_batch(d, db, queries, 2, results);
 */
MK_API int duda_sql_batch(struct duda_ctx *d, struct duda_sql_db *db,
                          const struct duda_sql_statement *queries, size_t n,
                          struct duda_sql_result *results) MK_API_MUST_USE;

/* ---- Transactions ---- */

/** Isolation levels. Transactions of SQLite are always serializable. */
enum duda_sql_isolation {
    DUDA_SQL_DEFAULT_ISOLATION, /**< the default of the database; of PostgreSQL: READ COMMITTED */
    DUDA_SQL_READ_COMMITTED,
    DUDA_SQL_REPEATABLE_READ,
    DUDA_SQL_SERIALIZABLE
};

/** Options of a transaction; zeros are the defaults. */
struct duda_sql_transaction_options {
    enum duda_sql_isolation isolation;
    /** Statements that write fail with -EREMOTEIO. In SQLite, a read-only transaction does not wait for
     * writers. */
    bool read_only;
    unsigned attempts; /**< for duda_sql_transaction(): maximum number of attempts; 0: 3 */
};

/**
 * Begins a transaction: until it ends, this handler's statements on this database belong to it. The
 * transaction is rolled back if the handler returns without duda_sql_commit(); if the handler returns
 * success, this is logged as a warning, unless the transaction is read-only. Returns 0, or an error as above.
 * After any error inside a transaction, except an error in the parameters, roll back.
 *
 *     int e = duda_sql_begin(d, db);
 *     e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n - 1 WHERE id = $1", from);
 *     e = e ? e : duda_sql_query(d, db, &result, "UPDATE accounts SET n = n + 1 WHERE id = $1", to);
 *     return e ? e : duda_sql_commit(d, db);
 *
 * Transactions nest: duda_sql_begin() inside a transaction sets a savepoint. The matching duda_sql_commit()
 * makes the changes since the savepoint part of the outer transaction, and duda_sql_rollback() undoes them,
 * so the outer transaction can continue after an error such as -EEXIST.
 */
MK_API int duda_sql_begin(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;
/**
 * Begins a transaction with options. -EINVAL: a nested transaction cannot have an isolation level.
 *
 *     const struct duda_sql_transaction_options report = {.read_only = true};
 *     e = duda_sql_begin_with(d, db, &report);
 */
MK_API int duda_sql_begin_with_sized(struct duda_ctx *d, struct duda_sql_db *db,
                                     const struct duda_sql_transaction_options *options,
                                     size_t options_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_sql_begin_with(struct duda_ctx *d, struct duda_sql_db *db,
                                                      const struct duda_sql_transaction_options *options)
{
    return duda_sql_begin_with_sized(d, db, options, sizeof *options);
}
/** Commits the transaction; on error it is rolled back. -EINVAL: no transaction is active. */
MK_API int duda_sql_commit(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;
/**
 * Rolls the transaction back.
 *
 *     int e = duda_sql_begin(d, db);
 *     e = e ? e : duda_sql_query(d, db, NULL, "UPDATE items SET stock = stock - 1 WHERE id = $1", duda_sql_integer(id));
 *     if (e) {
 *         int undone = duda_sql_rollback(d, db);
 *         return undone ? undone : e;
 *     }
 *     return duda_sql_commit(d, db);
 */
MK_API int duda_sql_rollback(struct duda_ctx *d, struct duda_sql_db *db) MK_API_MUST_USE;

/** Runs the statements of a transaction. Returns 0 to commit; any other result rolls back. */
typedef duda_verdict duda_sql_transaction_fn(struct duda_ctx *d, struct duda_sql_db *db, void *ctx);
/**
 * Runs fn(d, db, ctx) in a transaction. After a conflict with a concurrent transaction (-ESTALE), rolls back
 * and tries again after a few milliseconds, so fn() must have no effects besides its statements. Returns the
 * result of fn(), which may be a status, or the error of the transaction. `options` may be NULL. Inside a
 * transaction, runs fn() once in a nested transaction, because only the outermost transaction can be
 * repeated.
 *
 *     const struct duda_sql_transaction_options options = {.isolation = DUDA_SQL_SERIALIZABLE};
 *     return duda_sql_transaction(d, db, &options, move_money, &transfer);
 */
MK_API duda_verdict duda_sql_transaction_sized(struct duda_ctx *d, struct duda_sql_db *db,
                                               const struct duda_sql_transaction_options *options,
                                               size_t options_size, duda_sql_transaction_fn *fn,
                                               void *ctx) MK_API_MUST_USE;
static inline MK_API_MUST_USE duda_verdict duda_sql_transaction(
    struct duda_ctx *d, struct duda_sql_db *db, const struct duda_sql_transaction_options *options,
    duda_sql_transaction_fn *fn, void *ctx)
{
    return duda_sql_transaction_sized(d, db, options, sizeof *options, fn, ctx);
}

/* ---- Rows as structs ---- */

/**
 * Runs a query, and stores all its rows in an array of structs: sets *list to the array and *n to the number
 * of its elements. The array is valid until the handler returns. `list` is the address of a pointer to the
 * struct that the schema describes. A column is stored in the member that has its name, in C or in JSON; the
 * column `home.street` is stored in the member `street` of the struct `home`.
 *
 *     struct good {
 *         int64_t id;
 *         mk_str name;
 *     };
 *     static const struct duda_schema_field good_members[] = {
 *         DUDA_INTEGER(struct good, id),
 *         DUDA_STRING(struct good, name),
 *     };
 *     static const struct duda_schema good_schema = DUDA_SCHEMA(struct good, good_members);
 *
 *     static int list(struct duda_ctx *d)
 *     {
 *         struct good *goods;
 *         size_t n;
 *         int e = duda_sql_query_rows(d, duda_sql_find(d, NULL), &good_schema, &goods, &n,
 *                                     "SELECT id, name FROM goods WHERE price < $1", duda_sql_integer(100));
 *         return e ? e : duda_send_json(d, duda_value_structs(&good_schema, goods, n));
 *     }
 *
 * NULL in a column, and a member without a column, are errors unless the member is optional. An optional
 * member then stays zero, and its presence flag (DUDA_OPTIONAL()) becomes false. Columns without a member are
 * ignored. Values must fit into the C type, but the rules for input, such as DUDA_MAXIMUM(), do not apply to
 * them.
 *
 * | member | column |
 * |---|---|
 * | integer, double | a number, or text that is a number (NUMERIC of PostgreSQL) |
 * | bool | true, false, 0, 1 |
 * | string, JSON | text, and all types of PostgreSQL that duda_sql_query() returns as text |
 * | bytes | BYTEA, BLOB, or text |
 * | enum | text that is one of the values, or the index of a value |
 * | timestamp | a date and time as text, in UTC unless it names an offset; or seconds since 1970 |
 * | list | an array of PostgreSQL, or a JSON array as text |
 * | object, map | a JSON object as text |
 *
 * JSON in a column must conform to the schema, including its rules. Returns 0; an error of duda_sql_query();
 * -ENOMEM; -EPROTO: a column is missing, or a value does not fit; or -EFAULT: the schema describes a struct
 * of another size. On error, *list is NULL and *n is 0. The recorded reason (see duda_reason()) describes the
 * error: "row 3: the column `price` is NULL, but the member is not optional".
 */
MK_API int duda_sql_query_rows_values(struct duda_ctx *d, struct duda_sql_db *db,
                                      const struct duda_schema *schema, void *list, size_t size, size_t *n,
                                      const char *text, const struct duda_sql_value *parameters,
                                      size_t n_parameters) MK_API_MUST_USE;
/**
 * Runs a query, and stores its first row in the struct at `out`, like duda_sql_query_rows(), except that
 * optional members without a value are left unchanged, so set their defaults first. Returns -ENOENT if there
 * is no row; if the handler returns this error, the client gets 404.
 *
 *     struct person person = {.age = 18};
 *     int e = duda_sql_query_row(d, db, &person_schema, &person,
 *                                "SELECT name, age FROM people WHERE id = $1", duda_sql_integer(id));
 *     return e ? e : duda_send_json_struct(d, &person_schema, &person);
 */
MK_API int duda_sql_query_row_values(struct duda_ctx *d, struct duda_sql_db *db,
                                     const struct duda_schema *schema, void *out, size_t size,
                                     const char *text, const struct duda_sql_value *parameters,
                                     size_t n) MK_API_MUST_USE;
/**
 * Runs a query, and sets *cell to the first value of its first row. Returns -ENOENT if there is no row. After
 * this or any other error, *cell is an SQL NULL (DUDA_SQL_NULL).
 *
 *     struct duda_sql_value n;
 *     int e = duda_sql_query_cell(d, db, &n, "SELECT count(*) FROM orders WHERE who = $1",
 *                                 duda_sql_text(who));
 *     return e ? e : duda_printf(d, "%lld orders\n", (long long)n.number);
 */
MK_API int duda_sql_query_cell_values(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_value *cell,
                                      const char *text, const struct duda_sql_value *parameters,
                                      size_t n) MK_API_MUST_USE;
/** Stores all rows of a result in an array of structs, like duda_sql_query_rows(): the array has
 * result->n_rows elements. If an error occurs, result->error also describes it. Use this function after
 * duda_sql_query_struct(), duda_sql_query_named() or duda_sql_batch(). */
MK_API int duda_sql_bind_rows_checked(struct duda_ctx *d, struct duda_sql_result *result,
                                      const struct duda_schema *schema, void *list,
                                      size_t size) MK_API_MUST_USE;
/** Stores one row of a result in the struct at `out`, like duda_sql_query_row(). Returns -ENOENT if the
 * result has no such row. */
MK_API int duda_sql_bind_row_checked(struct duda_ctx *d, struct duda_sql_result *result, size_t row,
                                     const struct duda_schema *schema, void *out,
                                     size_t size) MK_API_MUST_USE;
#ifndef __cplusplus
/** Call the functions above with the parameters as a variable number of arguments, and with the size of the
 * struct. The compiler rejects a `list` that is not the address of a pointer to a struct. */
#define duda_sql_query_rows(d, db, schema, list, n, text, ...)                                               \
    duda_sql_use(__extension__({                                                                             \
        const struct duda_sql_value duda_values[] = {{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__};       \
        duda_sql_query_rows_values(d, db, schema, list, sizeof **(list), n, text, duda_values + 1,           \
                                   sizeof duda_values / sizeof *duda_values - 1);                            \
    }))
#define duda_sql_query_row(d, db, schema, out, text, ...)                                                    \
    duda_sql_use(__extension__({                                                                             \
        const struct duda_sql_value duda_values[] = {{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__};       \
        duda_sql_query_row_values(d, db, schema, out, sizeof *(out), text, duda_values + 1,                  \
                                  sizeof duda_values / sizeof *duda_values - 1);                             \
    }))
#define duda_sql_query_cell(d, db, cell, text, ...)                                                          \
    duda_sql_use(__extension__({                                                                             \
        const struct duda_sql_value duda_values[] = {{DUDA_SQL_NULL, 0, 0, {NULL, 0}}, ##__VA_ARGS__};       \
        duda_sql_query_cell_values(d, db, cell, text, duda_values + 1,                                       \
                                   sizeof duda_values / sizeof *duda_values - 1);                            \
    }))
#define duda_sql_bind_rows(d, result, schema, list)                                                          \
    duda_sql_bind_rows_checked(d, result, schema, list, sizeof **(list))
#define duda_sql_bind_row(d, result, row, schema, out)                                                       \
    duda_sql_bind_row_checked(d, result, row, schema, out, sizeof *(out))
#endif

/**
 * Converts the rows to a value for templates and JSON, without structs and a schema: a list of maps, whose
 * members are named after the columns. The value is valid until the handler returns; it is null if memory is
 * exhausted. Use structs if the handler itself reads the rows, or if clients depend on the types of the
 * members, because column types differ between databases.
 *
 *     int e = duda_sql_query(d, db, &result, "SELECT name, price FROM goods");
 *     return e ? e
 *              : duda_render(d, "goods.html", duda_value_members({"goods", duda_sql_rows_value(d, &result)}));
 */
MK_API struct duda_value duda_sql_rows_value(struct duda_ctx *d, const struct duda_sql_result *result);

/* ---- Named parameters ---- */

/**
 * Runs a statement whose parameters are members of a struct: `:name` takes the value of the member `name`,
 * and `:home.street` that of a member of a nested struct.
 *
 *     struct person person = {.age = 18};
 *     int e = duda_bind_json(d, &person_schema, &person, NULL);
 *     e = e ? e
 *           : duda_sql_query_struct(d, db, NULL, "INSERT INTO people (name, age) VALUES (:name, :age)",
 *                                   &person_schema, &person);
 *     return e ? e : 201;
 *
 * A member that is not present, and an absent string, become NULL. Enums become text, timestamps text such as
 * "2026-03-01 12:30:00+00:00", objects and maps JSON. A list becomes an array for PostgreSQL, and JSON for
 * SQLite. `result` may be NULL. Returns the result of duda_sql_query(), or -EINVAL if the schema lacks a
 * named member, or the statement also has numbered parameters.
 */
MK_API int duda_sql_query_struct(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                                 const char *text, const struct duda_schema *schema,
                                 const void *object) MK_API_MUST_USE;

/** The value of a named parameter. */
struct duda_sql_named_value {
    const char *name; /**< without the colon */
    struct duda_sql_value value;
};
/**
 * Runs a statement with named parameters, whose values are in an array. `result` may be NULL. Returns the
 * result of duda_sql_query(), or -EINVAL if the array lacks a parameter, or the statement also has numbered
 * parameters.
 *
 *     const struct duda_sql_named_value values[] = {{"who", duda_sql_text(duda_query(d, "who"))},
 *                                                   {"max", duda_sql_integer(100)}};
 *     int e = duda_sql_query_named(d, db, &result, "SELECT id FROM orders WHERE who = :who LIMIT :max",
 *                                  values, MK_LEN(values));
 */
MK_API int duda_sql_query_named(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                                const char *text, const struct duda_sql_named_value *values,
                                size_t n) MK_API_MUST_USE;

/**
 * Escapes the wildcards `%` and `_` in a text for LIKE ... ESCAPE '!', so that they match only themselves.
 * Returns a copy that lives until the handler returns; absent: out of memory.
 *
 *     int e = duda_sql_query(d, db, &result,
 *                            "SELECT id FROM goods WHERE name LIKE '%' || $1 || '%' ESCAPE '!'",
 *                            duda_sql_text(duda_sql_like_escape(d, duda_query(d, "q"))));
 */
MK_API mk_str duda_sql_like_escape(struct duda_ctx *d, mk_str text);

/* ---- Large results ---- */

/** A query whose rows are read in batches. */
struct duda_sql_cursor;

/**
 * Runs a query whose result may be larger than memory: rows are read from the database on demand, in batches
 * of about 64 KB, so a slow client slows down the query instead of filling memory. *result must stay valid
 * until the cursor is closed; if this function or one of those below fails, result->error describes the
 * error. The parameters are as for duda_sql_query_values().
 *
 * Outside of a transaction, the cursor occupies a connection, in its own read-only transaction, and reads a
 * snapshot of the database. Inside a transaction, it belongs to that transaction. The cursor is closed at the
 * latest when the handler returns or is cancelled, for example because the client has disconnected. `Timeout`
 * limits the time for each batch, and `MaxResultSize` its size.
 *
 *     struct duda_sql_cursor *cursor;
 *     struct person person;
 *     int e = duda_sql_cursor_open(d, db, &result, "SELECT name, age FROM people", NULL, 0, &cursor);
 *     while (!e && (e = duda_sql_cursor_bind(d, cursor, &person_schema, &person)) == 1)
 *         e = duda_printf(d, "%.*s,%u\n", MK_STR_ARG(person.name), person.age);
 *     return e;
 */
MK_API int duda_sql_cursor_open(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                                const char *text, const struct duda_sql_value *parameters, size_t n,
                                struct duda_sql_cursor **out) MK_API_MUST_USE;
/**
 * Reads the next row: sets *row to its values, result->n_columns in number, which are valid until the next
 * call. Returns 1; 0: there are no more rows; or a negative errno value.
 *
 *     const struct duda_sql_value *row;
 *     while (!e && (e = duda_sql_cursor_next(d, cursor, &row)) == 1)
 *         e = duda_printf(d, "%.*s\n", MK_STR_ARG(row[0].text));
 */
MK_API int duda_sql_cursor_next(struct duda_ctx *d, struct duda_sql_cursor *cursor,
                                const struct duda_sql_value **row) MK_API_MUST_USE;
/** Reads the next row into a struct. Returns the same values as duda_sql_cursor_next(), or an error of
 * duda_sql_bind_row(). Unlike there, optional members without a value become zero. Strings and lists in the
 * struct are valid until the next call. Use the same schema in all calls for a cursor. */
MK_API int duda_sql_cursor_bind_checked(struct duda_ctx *d, struct duda_sql_cursor *cursor,
                                        const struct duda_schema *schema, void *out,
                                        size_t size) MK_API_MUST_USE;
#ifndef __cplusplus
/** Calls the function above with the size of the struct. */
#define duda_sql_cursor_bind(d, cursor, schema, out)                                                         \
    duda_sql_cursor_bind_checked(d, cursor, schema, out, sizeof *(out))
#endif
/** Closes the cursor early. Does nothing if the cursor is closed already or NULL. */
MK_API void duda_sql_cursor_close(struct duda_sql_cursor *cursor);

/**
 * Writes the rows as JSON: an array with an object for each row. Bytes become base64, and numbers that JSON
 * cannot represent become null.
 *
 *     duda_sql_json(&out, &result); // [{"id":1,"name":"tea"}]
 */
MK_API void duda_sql_json(struct mk_buf *out, const struct duda_sql_result *result);

#ifdef __cplusplus
}

template <typename... values>
static inline MK_API_MUST_USE int duda_sql_query(struct duda_ctx *d, struct duda_sql_db *db,
                                                 struct duda_sql_result *result, const char *text,
                                                 values... given)
{
    const struct duda_sql_value all[] = {given..., duda_sql_value()};
    return duda_sql_query_values(d, db, result, text, all, sizeof...(given));
}
template <typename type, typename... values>
static inline MK_API_MUST_USE int duda_sql_query_rows(struct duda_ctx *d, struct duda_sql_db *db,
                                                      const struct duda_schema *schema, type **list,
                                                      size_t *n, const char *text, values... given)
{
    const struct duda_sql_value all[] = {given..., duda_sql_value()};
    return duda_sql_query_rows_values(d, db, schema, list, sizeof **list, n, text, all, sizeof...(given));
}
template <typename type, typename... values>
static inline MK_API_MUST_USE int duda_sql_query_row(struct duda_ctx *d, struct duda_sql_db *db,
                                                     const struct duda_schema *schema, type *out,
                                                     const char *text, values... given)
{
    const struct duda_sql_value all[] = {given..., duda_sql_value()};
    return duda_sql_query_row_values(d, db, schema, out, sizeof *out, text, all, sizeof...(given));
}
template <typename... values>
static inline MK_API_MUST_USE int duda_sql_query_cell(struct duda_ctx *d, struct duda_sql_db *db,
                                                      struct duda_sql_value *cell, const char *text,
                                                      values... given)
{
    const struct duda_sql_value all[] = {given..., duda_sql_value()};
    return duda_sql_query_cell_values(d, db, cell, text, all, sizeof...(given));
}
template <typename type>
static inline MK_API_MUST_USE int duda_sql_bind_rows(struct duda_ctx *d, struct duda_sql_result *result,
                                                     const struct duda_schema *schema, type **list)
{
    return duda_sql_bind_rows_checked(d, result, schema, list, sizeof **list);
}
template <typename type>
static inline MK_API_MUST_USE int duda_sql_bind_row(struct duda_ctx *d, struct duda_sql_result *result,
                                                    size_t row, const struct duda_schema *schema, type *out)
{
    return duda_sql_bind_row_checked(d, result, row, schema, out, sizeof *out);
}
template <typename type>
static inline MK_API_MUST_USE int duda_sql_cursor_bind(struct duda_ctx *d, struct duda_sql_cursor *cursor,
                                                       const struct duda_schema *schema, type *out)
{
    return duda_sql_cursor_bind_checked(d, cursor, schema, out, sizeof *out);
}
#endif

#endif
