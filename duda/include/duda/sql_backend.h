/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of database brings, so that duda/sql.h works over it. Not for services. */
#ifndef DUDA_SQL_BACKEND_H
#define DUDA_SQL_BACKEND_H

#include <duda/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rows that are being gathered, in any thread. Zero it, and set max. */
struct duda_sql_rows {
    struct duda_sql_value *cells;
    size_t n, cap, n_columns;
    struct mk_buf text; /**< of the cells, and of the names of columns ahead of them */
    size_t max;         /**< bytes of all */
    int64_t changed;
    int error;         /**< the first of what went wrong; -EMSGSIZE, -ENOMEM, or the backend's */
    char problem[300]; /**< in words, unless it is empty */
};

/** Begins with the names of columns: as many calls as columns, before any value. */
MK_API void duda_sql_rows_column(struct duda_sql_rows *r, mk_str name);
/** The next value. */
MK_API void duda_sql_rows_add(struct duda_sql_rows *r, const struct duda_sql_value *value);
/** Remembers an error. */
MK_API void duda_sql_rows_fail(struct duda_sql_rows *r, int error, const char *what, mk_str name,
                               const char *why);
/** Forgets all, for the next statement. */
MK_API void duda_sql_rows_clear(struct duda_sql_rows *r);
/** Copies all into the memory of the handler. The error, or 0. */
MK_API int duda_sql_rows_give(struct duda_sql_rows *r, struct duda_ctx *d, struct duda_sql_result *result);
/** Gives the memory back. */
MK_API void duda_sql_rows_free(struct duda_sql_rows *r);

/** The functions of a kind. They wait as those of sql.h do. */
struct duda_sql_ops {
    /** Runs a statement: in this session, or, if that is NULL, in any. */
    int (*run_statement)(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                         struct duda_sql_result *result, const struct duda_sql_statement *query);
    /** The same for several, as duda_sql_batch(); all of the results are zero. NULL: they are run in turn. */
    int (*run_batch)(struct duda_ctx *d, struct duda_sql_db *db, void *session,
                     struct duda_sql_result *results, const struct duda_sql_statement *queries, size_t n);
    /** Takes a session, in which a transaction has begun. */
    int (*begin)(struct duda_ctx *d, struct duda_sql_db *db, struct duda_sql_result *result, void **session);
    /** Ends the transaction: all is done (`commits`), or nothing. */
    int (*finish)(struct duda_ctx *d, struct duda_sql_db *db, void *session, struct duda_sql_result *result,
                  bool commits);
    /** Gives it back. Unless `over`, the transaction is to be rolled back. Must not wait. */
    void (*end)(struct duda_sql_db *db, void *session, bool over);
};

/** The beginning of a backend's own struct. */
struct duda_sql_db {
    const struct duda_sql_ops *ops;
    mk_str name;
    struct duda_sql_db *next; /**< of the worker */
    uint64_t *meter;          /**< of its section, in this worker; may be NULL */
};

/** In load() of a backend: `section` will be a database of that name, which lives as long as the
 * configuration. If another one has the name, that is an error at the section's `Name`. */
MK_API void duda_sql_declare(struct mk_config *config, const void *section, mk_str name);

/** In worker_start of a backend, which needs "duda-sql": makes it known. 0, or -EEXIST: the name is taken. */
MK_API int duda_sql_add(struct mk_worker *w, struct duda_sql_db *db);

/** As duda_sql_find(), without a handler. */
MK_API struct duda_sql_db *duda_sql_of(struct mk_worker *w, const char *name);
/** The session of the transaction that the handler is in; NULL: it is in none. */
MK_API void *duda_sql_session(const struct duda_ctx *d, const struct duda_sql_db *db);

/** A step of a database's history. */
struct duda_sql_migration {
    struct duda_sql_migration *next;
    uint32_t number;
    mk_str name, text; /**< of the file; a NUL follows both */
    char checksum[17]; /**< of the text, whatever its line ends are */
};
/** The reason to refuse a migration that contains COMMIT, ROLLBACK or the like. */
#define DUDA_SQL_MIGRATION_ENDS "a migration must not begin or end a transaction: all migrations run in one"
/** One that a database has run, as its table says. */
struct duda_sql_done {
    uint64_t number;
    mk_str service, name, checksum; /**< absent checksum: of a table that had none */
};
/** The state of a database. */
struct duda_sql_history {
    const struct duda_sql_done *rows; /**< of this service and of "", by number */
    size_t n;
    mk_str service;                        /**< whose migrations they are */
    const struct duda_sql_migration *next; /**< what is to be run, from here on; NULL: nothing */
    bool is_adopted;                       /**< rows of "" become the service's */
    bool lacks_checksums;
    char why[240]; /**< -EINVAL */
};
/**
 * Compares what a database has run with the files: each must be there under its name, unchanged, and none may
 * come ahead of one that was run. What the database has behind the last file is of a newer version of the
 * service, and is no mistake. 0, or -EINVAL: h->why names up to three.
 */
MK_API int duda_sql_history_check(struct duda_sql_history *h, const struct duda_sql_migration *all);
/** Has the service run it? Its row, or NULL. */
MK_API const struct duda_sql_done *duda_sql_history_find(const struct duda_sql_history *h, uint64_t number);
/** Reads the files of a folder, NUMBER-NAME.sql, in the order of their numbers; mistakes are reported at
 * `key`. NULL: there are none, or mistakes. */
MK_API struct duda_sql_migration *duda_sql_migrations_read(struct mk_config *c, const void *section,
                                                           const char *key, mk_str folder);

#ifdef __cplusplus
}
#endif

#endif
