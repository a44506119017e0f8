/* SPDX-License-Identifier: Apache-2.0 */
/* Migrates a database file. */
#ifndef DUDA_SQLITE_MIGRATE_H
#define DUDA_SQLITE_MIGRATE_H

#include <duda/sql_backend.h>
#include <sqlite3.h>

/* Runs the missing migrations in one transaction, and sets *has_migrated if there were any. Returns SQLite's
 * result code; on failure, `error` says which migration failed and why. */
int sqlite_migrate(sqlite3 *handle, const struct duda_sql_migration *all, mk_str service, bool *has_migrated,
                   char *error, size_t size);

#endif
