/* SPDX-License-Identifier: Apache-2.0 */
/* The table duda_migrations records the migrations that have been run. If workers start at the same time, the
 * others wait for the first one. */
#include "migrate.h"

#include <errno.h>
#include <monkey/mem.h>
#include <stdatomic.h>
#include <stdio.h>

enum { SERVICE, NUMBER, NAME, CHECKSUM };

/* A copy of the table. */
struct history {
    struct duda_sql_history is;
    struct duda_sql_applied *rows;
    char **texts;
    size_t n_texts, cap;
    int rc;
    struct sqlite_migration *migration;
};

static int exec_sql(sqlite3 *handle, const char *text)
{
    return sqlite3_exec(handle, text, NULL, NULL, NULL);
}

/* Executes a statement with a number and up to three strings as parameters. */
static int exec_with_parameters(sqlite3 *handle, const char *text, int64_t number, mk_str a, mk_str b,
                                const char *c)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(handle, text, -1, &stmt, NULL);
    if (rc)
        return rc;
    sqlite3_bind_int64(stmt, 1, number);
    sqlite3_bind_text(stmt, 2, a.p ? a.p : "", (int)a.len, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, b.p ? b.p : "", (int)b.len, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 4, c, -1, SQLITE_STATIC);
    sqlite3_step(stmt);
    return sqlite3_finalize(stmt);
}

/* ---- Reads ---- */

static bool has_column(sqlite3 *handle, const char *name)
{
    return sqlite3_table_column_metadata(handle, "main", "duda_migrations", name, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

static mk_str copy_column_text(struct history *h, const unsigned char *text)
{
    if (!text)
        return MK_STR_NULL;
    char *copy = h->texts[h->n_texts++] = sqlite3_mprintf("%s", text);
    h->rc = copy ? h->rc : SQLITE_NOMEM;
    return copy ? mk_str_from_c(copy) : MK_STR_NULL;
}

static bool reserve_history_row(struct history *h)
{
    if (h->is.n < h->cap)
        return true;
    size_t cap = h->cap ? h->cap * 2 : 16;
    struct duda_sql_applied *rows = mk_mem_realloc(h->rows, cap * sizeof *rows);
    h->rows = rows ? rows : h->rows;
    char **texts = mk_mem_realloc(h->texts, 3 * cap * sizeof *texts);
    h->texts = texts ? texts : h->texts;
    h->rc = rows && texts ? h->rc : SQLITE_NOMEM;
    h->cap = h->rc ? h->cap : cap;
    return !h->rc;
}

static void add_history_row(struct history *h, sqlite3_stmt *stmt)
{
    if (!reserve_history_row(h))
        return;
    struct duda_sql_applied *row = &h->rows[h->is.n++];
    row->number = (uint64_t)sqlite3_column_int64(stmt, NUMBER);
    row->service = copy_column_text(h, sqlite3_column_text(stmt, SERVICE));
    row->name = copy_column_text(h, sqlite3_column_text(stmt, NAME));
    row->checksum = copy_column_text(h, sqlite3_column_text(stmt, CHECKSUM));
}

/* Reads the history, which is empty if there is no table. Tables of earlier versions have neither services
 * nor checksums. */
static int read_history(struct history *h, sqlite3 *handle)
{
    sqlite3_stmt *stmt;
    if (!has_column(handle, "number"))
        return SQLITE_OK;
    h->rc = sqlite3_prepare_v2(
        handle,
        has_column(handle, "service")
            ? "SELECT service, number, name, checksum FROM duda_migrations WHERE service IN ('', "
              "?1) ORDER BY number"
            : "SELECT '', number, name, NULL FROM duda_migrations WHERE ?1 IS NOT NULL ORDER BY "
              "number",
        -1, &stmt, NULL);
    if (h->rc)
        return h->rc;
    sqlite3_bind_text(stmt, 1, h->is.service.p ? h->is.service.p : "", (int)h->is.service.len, SQLITE_STATIC);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && !h->rc)
        add_history_row(h, stmt);
    h->rc = h->rc ? h->rc : rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
    sqlite3_finalize(stmt);
    h->is.applied = h->rows;
    return h->rc;
}

static void clear_history(struct history *h)
{
    while (h->n_texts)
        sqlite3_free(h->texts[--h->n_texts]);
    mk_mem_free(h->rows);
    mk_mem_free(h->texts);
    h->rows = NULL;
    h->texts = NULL;
    h->is.n = h->cap = 0;
}

static int check_history(struct history *h, sqlite3 *handle)
{
    int rc = read_history(h, handle);
    if (rc || duda_sql_history_check(&h->is, h->migration->all) == 0)
        return rc;
    snprintf(h->migration->error_text, sizeof h->migration->error_text, "Migrations: %s", h->is.message);
    return SQLITE_ABORT;
}

/* ---- Writes ---- */

/* Creates the table. A table of an earlier version is copied, because SQLite cannot change a primary key. */
static int create_history_table(sqlite3 *handle)
{
    static const char text[] = "CREATE TABLE IF NOT EXISTS duda_migrations (service TEXT NOT NULL DEFAULT "
                               "'', number INTEGER NOT NULL, "
                               "name TEXT NOT NULL, checksum TEXT, done TEXT NOT NULL DEFAULT "
                               "CURRENT_TIMESTAMP, PRIMARY KEY (service, number))";
    bool is_old = has_column(handle, "number") && !has_column(handle, "service");
    int rc =
        is_old ? exec_sql(handle, "ALTER TABLE duda_migrations RENAME TO duda_migrations_before") : SQLITE_OK;
    rc = rc ? rc : exec_sql(handle, text);
    if (rc || !is_old)
        return rc;
    return exec_sql(handle, "INSERT INTO duda_migrations (number, name, done) SELECT number, name, done FROM "
                            "duda_migrations_before; DROP TABLE duda_migrations_before");
}

static int repair_history(struct history *h, sqlite3 *handle)
{
    int rc = SQLITE_OK;
    if (h->is.is_adopted)
        rc = exec_with_parameters(
            handle, "UPDATE duda_migrations SET service = ?2 WHERE service = '' AND ?1 = 0 AND ?3 = ?4", 0,
            h->is.service, MK_STR(""), "");
    for (const struct duda_sql_migration *m = h->migration->all; m && !rc; m = m->next)
        rc = exec_with_parameters(
            handle,
            "UPDATE duda_migrations SET checksum = ?4 WHERE number = ?1 AND service = ?2 AND name = ?3 AND "
            "checksum IS NULL",
            m->number, h->is.service, m->name, m->checksum);
    return rc;
}

static int refuse_transactions(void *ctx, int action, const char *a, const char *b, const char *schema,
                               const char *trigger)
{
    bool *is_refused = ctx;
    (void)a, (void)b, (void)schema, (void)trigger;
    *is_refused = *is_refused || action == SQLITE_TRANSACTION;
    return action == SQLITE_TRANSACTION ? SQLITE_DENY : SQLITE_OK;
}

static int run_migration(struct history *h, sqlite3 *handle, const struct duda_sql_migration *m)
{
    bool is_refused = false;
    h->migration->has_migrated = true;
    atomic_store(&h->migration->running, m);
    sqlite3_set_authorizer(handle, refuse_transactions, &is_refused);
    int rc = exec_sql(handle, m->text.p);
    sqlite3_set_authorizer(handle, NULL, NULL);
    if (!rc)
        rc = exec_with_parameters(
            handle, "INSERT INTO duda_migrations (number, service, name, checksum) VALUES (?1, ?2, ?3, ?4)",
            m->number, h->is.service, m->name, m->checksum);
    if (rc)
        snprintf(h->migration->error_text, sizeof h->migration->error_text, "%s: %s", m->name.p,
                 is_refused ? DUDA_SQL_MIGRATION_HAS_COMMIT : sqlite3_errmsg(handle));
    return rc;
}

static int run_migrations(struct history *h, sqlite3 *handle)
{
    clear_history(h);
    int rc = create_history_table(handle);
    rc = rc ? rc : check_history(h, handle);
    rc = rc ? rc : repair_history(h, handle);
    for (const struct duda_sql_migration *m = rc ? NULL : h->is.pending; m && !rc; m = m->next)
        rc = run_migration(h, handle, m);
    return rc;
}

static bool is_migration_done(const struct history *h)
{
    return h->is.n && !h->is.pending && !h->is.is_adopted && !h->is.lacks_checksums;
}

static int migrate_in_transaction(struct history *h, sqlite3 *handle)
{
    int rc = check_history(h, handle);
    if (rc || is_migration_done(h))
        return rc;
    rc = exec_sql(handle, "BEGIN IMMEDIATE");
    if (rc)
        return rc;
    rc = run_migrations(h, handle);
    rc = rc ? rc : exec_sql(handle, "COMMIT");
    if (rc && !sqlite3_get_autocommit(handle))
        exec_sql(handle, "ROLLBACK");
    return rc;
}

int sqlite_migrate(struct sqlite_migration *u, sqlite3 *handle)
{
    if (!u->all)
        return SQLITE_OK;
    struct history *h = mk_mem_zalloc(1, sizeof *h);
    if (!h)
        return SQLITE_NOMEM;
    h->migration = u;
    h->is.service = u->service.p ? u->service : MK_STR("");
    int rc = migrate_in_transaction(h, handle);
    clear_history(h);
    mk_mem_free(h);
    return rc;
}
