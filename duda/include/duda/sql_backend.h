/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the backends of duda/sql.h. Not for services. */
#ifndef DUDA_SQL_BACKEND_H
#define DUDA_SQL_BACKEND_H

#include <duda/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A builder for result rows, for use in any thread. Zero it, and set max. */
struct duda_sql_rows {
    struct duda_sql_value *cells;
    size_t n, cap, n_columns;
    struct mk_buf text; /**< text of the cells, preceded by the column names */
    size_t max;         /**< maximum total size in bytes */
    int64_t rows_affected;
    int error;         /**< first error: -EMSGSIZE, -ENOMEM, or an error of the backend */
    char message[300]; /**< error message; empty: none */
};

/** Adds the next column name; call it for every column before any value. */
MK_API void duda_sql_rows_column(struct duda_sql_rows *rows, mk_str name);
/** Adds the next value. */
MK_API void duda_sql_rows_add(struct duda_sql_rows *rows, const struct duda_sql_value *value);
/** Records an error. */
MK_API void duda_sql_rows_fail(struct duda_sql_rows *rows, int error, const char *section, mk_str name,
                               const char *message);
/** Discards all rows, for the next statement. */
MK_API void duda_sql_rows_clear(struct duda_sql_rows *rows);
/** Copies the rows into the handler's memory. Returns the recorded error, or 0. */
MK_API int duda_sql_rows_result(struct duda_sql_rows *rows, struct duda_ctx *d,
                                struct duda_sql_result *result);
/** Frees the memory of the builder. */
MK_API void duda_sql_rows_free(struct duda_sql_rows *rows);

/** Stores a copy of the violated constraint for the handler: in the result, and for
 * duda_sql_last_violation(). Call it when a statement fails with -EEXIST or -ERANGE. */
MK_API void duda_sql_set_violation(struct duda_ctx *d, struct duda_sql_result *result,
                                   const struct duda_sql_violation *violation);

/** The functions of a backend. They may wait, like those of sql.h. */
struct duda_sql_ops {
    /** Runs a statement in `session`, or in any session if `session` is NULL. */
    int (*run_statement)(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                         struct duda_sql_result *result, const struct duda_sql_statement *query);
    /** Runs several statements, like duda_sql_batch(); all results are zeroed beforehand. NULL: the
     * statements are run one by one. */
    int (*run_batch)(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                     struct duda_sql_result *results, const struct duda_sql_statement *queries, size_t n);
    /** Acquires a session and begins a transaction in it. */
    int (*begin)(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result,
                 const struct duda_sql_transaction_options *options, void **session);
    /** Ends the transaction: commits it if `commits` is set, otherwise rolls it back. */
    int (*finish)(struct duda_ctx *d, struct duda_sql_db *db, void *session, struct duda_sql_result *result,
                  bool commits);
    /** Releases the session. Unless `finished`, the transaction must be rolled back. Must not wait. */
    void (*release)(struct duda_sql_db *db, void *session, bool finished);
    /** Opens a cursor for a query in `session`. The cursor is closed at the latest when the session is
     * released. *cursor is a number that is unique in the worker. */
    int (*open_cursor)(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                       struct duda_sql_result *result, const struct duda_sql_statement *query,
                       uint64_t *cursor);
    /** Reads the next `n` rows; fewer only at the end of the result. */
    int (*fetch)(struct duda_ctx *d, struct duda_sql_db *db, void *session, uint64_t cursor, size_t n,
                 struct duda_sql_result *result);
    /** Closes the cursor early. Must not wait. */
    void (*close_cursor)(struct duda_sql_db *db, void *session, uint64_t cursor);
    bool has_arrays;      /**< lists are passed as arrays in PostgreSQL's text format; otherwise as JSON */
    uint64_t reserved[4]; /**< must be zero */
};

/** A database; the first member of the backend's own struct. */
struct duda_sql_db {
    const struct duda_sql_ops *ops;
    mk_str name;
    struct duda_sql_db *next; /**< next database of the worker */
    uint64_t *meter;          /**< metrics of the database's section, in this worker; may be NULL */
    uint64_t reserved[4];     /**< must be zero */
};

/** Declares `section` as a database called `name`. Call this function in a backend's load(). The text of
 * `name` must live as long as the configuration. A duplicate name is reported as an error at the section's
 * `Name`. */
MK_API void duda_sql_declare(struct mk_config *config, const void *section, mk_str name);

/** Registers the database. Call it in the worker_start of a backend whose `needs` lists "duda-sql". Returns
 * 0, or -EEXIST: the name is taken. */
MK_API int duda_sql_add(struct mk_worker *worker, struct duda_sql_db *db);

/** The session of the handler's transaction; NULL if there is no transaction. */
MK_API void *duda_sql_session(struct duda_ctx *d, const struct duda_sql_db *db);

/** A migration: one step of the schema's history. */
struct duda_sql_migration {
    struct duda_sql_migration *next;
    uint32_t number;
    mk_str name, text; /**< from the file name and the file; both NUL-terminated */
    char checksum[17]; /**< checksum of the text, independent of its line endings */
};
/** The error for a migration that contains COMMIT, ROLLBACK or the like. */
#define DUDA_SQL_MIGRATION_HAS_COMMIT                                                                        \
    "a migration must not begin or end a transaction: all migrations run in one"
/** A migration that a database has applied, as recorded in its table. */
struct duda_sql_applied {
    uint64_t number;
    mk_str service, name, checksum; /**< the checksum is absent if the table had no checksum column when
                                         the migration was applied */
};
/** The migration state of a database. */
struct duda_sql_history {
    const struct duda_sql_applied *applied; /**< migrations of this service, and those of "" (recorded
                                                 without a service), by number */
    size_t n;
    mk_str service;                           /**< the service that owns the migrations */
    const struct duda_sql_migration *pending; /**< first pending migration; NULL: none */
    bool is_adopted;                          /**< the service takes over the migrations of "" */
    bool lacks_checksums;
    char message[240]; /**< error message for -EINVAL */
};
/**
 * Compares the applied migrations with the files: each must have a file of its name with unchanged contents,
 * and no pending migration may precede an applied one. Applied migrations after the last file belong to a
 * newer version of the service, and are not errors. Returns 0, or -EINVAL: history->message names up to three
 * errors.
 */
MK_API int duda_sql_history_check(struct duda_sql_history *history, const struct duda_sql_migration *all);
/** The row of the migration if the service has applied it; otherwise NULL. */
MK_API const struct duda_sql_applied *duda_sql_history_find(const struct duda_sql_history *history,
                                                            uint64_t number);
/** Reads the migration files of a folder, NUMBER-NAME.sql, in numerical order; errors are reported at `key`.
 * Returns NULL if there are none, or on error. */
MK_API struct duda_sql_migration *duda_sql_migrations_read(struct mk_config *config, const void *section,
                                                           const char *key, mk_str folder);

#ifdef __cplusplus
}
#endif

#endif
