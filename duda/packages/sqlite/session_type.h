/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a file of SQLite from inside. */
#ifndef DUDA_SQLITE_SESSION_TYPE_H
#define DUDA_SQLITE_SESSION_TYPE_H

#include <duda/sql_backend.h>
#include <sqlite3.h>
#include <stdatomic.h>

enum { SQLITE_STMT_CACHE_SIZE = 32 };

struct sqlite_settings {
    mk_str name, file;
    uint32_t meter;
    mk_str migrations_folder, migrations_of;
    const struct duda_sql_migration *migrations;
    unsigned threads, waiting_max;
    uint32_t timeout_ms;
    uint64_t result_max;
    bool durable;
};

struct sqlite_cached_stmt {
    sqlite3_stmt *stmt; /* SQLite keeps its text */
    uint64_t used;
    bool once; /* what it does is not allowed everywhere: it is looked at each time */
};

/* Which statements a session takes. */
enum sqlite_use {
    SQLITE_USE_AUTOCOMMIT,  /* of a handler, outside of a transaction: it must leave nothing in the session */
    SQLITE_USE_TRANSACTION, /* of a handler, in a transaction */
    SQLITE_USE_INTERNAL,    /* BEGIN, COMMIT, ROLLBACK */
};

struct sqlite_session {
    const struct sqlite_settings *settings;
    sqlite3 *handle; /* NULL: not open yet */
    struct sqlite_cached_stmt kept[SQLITE_STMT_CACHE_SIZE];
    uint64_t n_used, due_ms;
    atomic_bool is_cancelled; /* from the loop: stop what runs */
    bool must_roll_back;      /* ahead of what comes next */
    enum sqlite_use use;      /* of the statement that runs */
    bool is_changed;          /* a transaction has changed it: opened anew after that */
    bool is_once;             /* of the statement that is being prepared */
    bool is_vacuum;
    const char *refusal; /* why it is not allowed */
    struct duda_sql_rows rows;
};

#endif
