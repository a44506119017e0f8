/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a file up to date. */
#ifndef DUDA_SQLITE_MIGRATE_H
#define DUDA_SQLITE_MIGRATE_H

#include <duda/sql_backend.h>
#include <sqlite3.h>

/* Runs the migrations that the database does not have, all in one transaction, and tells whether there were any.
 * SQLite's result; `why` then says which one failed. */
int sqlite_migrate(sqlite3 *handle, const struct duda_sql_migration *all, mk_str service, bool *has_migrated,
                   char *why, size_t size);

#endif
