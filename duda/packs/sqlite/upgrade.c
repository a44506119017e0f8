/* SPDX-License-Identifier: Apache-2.0 */
/* The table duda_migrations says which ones a database has. Workers that start together wait for the first
 * one. */
#include "upgrade.h"

#include <stdio.h>

static int run(sqlite3 *handle, const char *text)
{
    return sqlite3_exec(handle, text, NULL, NULL, NULL);
}

static int read_number(void *ctx, int n, char **values, char **names)
{
    uint64_t number = 0;
    (void)names;
    if (n == 1 && values[0] && mk_num_parse(mk_str_from_c(values[0]), &number))
        *(uint64_t *)ctx = number;
    return 0;
}

/* 0 as long as there is no table. */
static uint64_t last_of(sqlite3 *handle)
{
    uint64_t last = 0;
    sqlite3_exec(handle, "SELECT max(number) FROM duda_migrations", read_number, &last, NULL);
    return last;
}

static int record(sqlite3 *handle, const struct duda_sql_migration *m)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(handle, "INSERT INTO duda_migrations (number, name) VALUES (?, ?)", -1, &stmt,
                                NULL);
    if (rc)
        return rc;
    sqlite3_bind_int64(stmt, 1, m->number);
    sqlite3_bind_text(stmt, 2, m->name.p, (int)m->name.len, SQLITE_STATIC);
    sqlite3_step(stmt);
    return sqlite3_finalize(stmt);
}

static int run_all(sqlite3 *handle, const struct duda_sql_migration *all, char *why, size_t size)
{
    int rc = run(
        handle, "CREATE TABLE IF NOT EXISTS duda_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                "done TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)");
    uint64_t last = last_of(handle);
    for (const struct duda_sql_migration *m = all; m && !rc; m = m->next) {
        if (m->number <= last)
            continue;
        rc = run(handle, m->text.p);
        rc = rc ? rc : record(handle, m);
        if (rc)
            snprintf(why, size, "%s: %s", m->name.p, sqlite3_errmsg(handle));
    }
    return rc;
}

int sqlite_upgrade(sqlite3 *handle, const struct duda_sql_migration *all, char *why, size_t size)
{
    const struct duda_sql_migration *newest = all;
    while (newest && newest->next)
        newest = newest->next;
    if (!newest || last_of(handle) >= newest->number)
        return SQLITE_OK;
    int rc = run(handle, "BEGIN IMMEDIATE");
    if (rc)
        return rc;
    rc = run_all(handle, all, why, size);
    rc = rc ? rc : run(handle, "COMMIT");
    if (rc && !sqlite3_get_autocommit(handle))
        run(handle, "ROLLBACK");
    return rc;
}
