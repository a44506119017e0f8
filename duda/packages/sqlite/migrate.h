/* SPDX-License-Identifier: Apache-2.0 */
/* Migrates a database file. */
#ifndef DUDA_SQLITE_MIGRATE_H
#define DUDA_SQLITE_MIGRATE_H

#include <duda/sql_backend.h>
#include <sqlite3.h>

/* Zero it, and set `all` and `service`. */
struct sqlite_migration {
    const struct duda_sql_migration *all;
    mk_str service;
    _Atomic(const struct duda_sql_migration *) running; /* any thread may read it; NULL: none yet */
    bool has_migrated;
    char error_text[300]; /* which migration failed and why; empty: see SQLite's error */
};

/* Runs the missing migrations in one transaction. Blocks. Returns SQLite's result code. */
int sqlite_migrate(struct sqlite_migration *u, sqlite3 *handle);

#endif
