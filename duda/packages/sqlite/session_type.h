/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a connection to an SQLite file. */
#ifndef DUDA_SQLITE_SESSION_TYPE_H
#define DUDA_SQLITE_SESSION_TYPE_H

#include <duda/sql_backend.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "migrate.h"

enum { SQLITE_STMT_CACHE_SIZE = 32, SQLITE_CURSORS_MAX = 8 };

struct sqlite_settings {
    mk_str name, file;
    uint32_t meter;
    mk_str migrations_folder, migrations_of;
    const struct duda_sql_migration *migrations;
    unsigned threads, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
    bool sync;
};

struct sqlite_cached_stmt {
    sqlite3_stmt *stmt; /* also holds the text of the statement */
    uint64_t used;
    bool is_uncached; /* prepared again on each use, because its context decides whether it is allowed */
};

/* The context that decides which statements are allowed. */
enum sqlite_use {
    SQLITE_USE_AUTOCOMMIT,  /* outside a handler's transaction: must leave no state in the session */
    SQLITE_USE_TRANSACTION, /* part of a handler's transaction */
    SQLITE_USE_INTERNAL,    /* BEGIN, COMMIT, ROLLBACK */
};

/* A query whose rows are read in batches. */
struct sqlite_cursor {
    sqlite3_stmt *stmt; /* NULL: unused */
    uint64_t number;
};

/* Begins a transaction in which the session rejects all statements that write. */
#define SQLITE_BEGIN_READ_ONLY "BEGIN DEFERRED"

struct sqlite_session {
    const struct sqlite_settings *settings;
    sqlite3 *handle; /* NULL: not open yet */
    struct sqlite_cached_stmt cached_stmts[SQLITE_STMT_CACHE_SIZE];
    struct sqlite_cursor cursors[SQLITE_CURSORS_MAX];
    uint64_t n_used, due_ms;
    atomic_bool is_cancelled; /* set by the loop: interrupt the running statement, but no migration */
    atomic_bool is_closing;   /* set by the loop: interrupt everything */
    atomic_bool is_migrating; /* set by the thread: migrations have no time limit */
    struct sqlite_migration migration;
    bool must_roll_back; /* roll back before the next statement */
    enum sqlite_use use; /* context of the running statement */
    bool is_read_only;   /* the transaction may not write */
    bool is_changed;     /* a transaction changed the session: reopen it afterwards */
    bool is_uncached;    /* is_uncached of the statement that is being prepared */
    bool is_vacuum;
    const char *refusal; /* why the authorizer has denied the statement */
    struct duda_sql_rows rows;
    enum duda_sql_constraint violated; /* by the last statement */
    char violation_text[300];          /* SQLite's message */
};

#endif
