/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all migrations in one transaction. An advisory lock makes other workers and machines wait for its
 * end. Neither has a time limit, so the server itself checks whether the worker still exists: otherwise, the
 * migration of a dead worker would continue, and keep the lock. */
#include "migrate.h"

#include <errno.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <stdlib.h>

enum { SERVICE, NUMBER, NAME, CHECKSUM, COLUMNS, TEXT_MAX = 1 << 20 };

/* Not all systems support client_connection_check_interval. Adds the columns `service` and `checksum` to
 * tables of earlier versions, which lack them. The number of the
 * lock is "duda" in ASCII. */
static const char begin_text[] =
    "BEGIN; SET LOCAL statement_timeout = 0; "
    "DO $duda$ BEGIN PERFORM set_config('client_connection_check_interval', '1000', true); "
    "EXCEPTION WHEN OTHERS THEN NULL; END $duda$; "
    "SELECT pg_advisory_xact_lock(1685414753) IS NULL; "
    "CREATE TABLE IF NOT EXISTS duda_migrations (service TEXT NOT NULL DEFAULT '', number BIGINT NOT NULL, "
    "name TEXT NOT NULL, checksum TEXT, done TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (service, "
    "number)); "
    "DO $duda$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'duda_migrations'::regclass "
    "AND "
    "attname = 'service' AND NOT attisdropped) THEN "
    "ALTER TABLE duda_migrations ADD COLUMN service TEXT NOT NULL DEFAULT '', ADD COLUMN checksum TEXT; "
    "ALTER TABLE duda_migrations DROP CONSTRAINT duda_migrations_pkey, ADD PRIMARY KEY (service, number); "
    "END IF; END $duda$; "
    "SELECT service, number, name, checksum FROM duda_migrations ORDER BY number";

bool postgres_migration_start(struct postgres_migration *u, PGconn *pg)
{
    (void)u;
    return PQsendQuery(pg, begin_text) == 1;
}

void postgres_migration_free(struct postgres_migration *u)
{
    PQclear(u->rows);
    mk_mem_free(u->done);
    u->rows = NULL;
    u->done = NULL;
}

/* ---- Queries ---- */

static void append_literal(struct mk_buf *out, PGconn *pg, mk_str text)
{
    char *literal = PQescapeLiteral(pg, text.p ? text.p : "", text.len);
    mk_buf_add(out, mk_str_from_c(literal ? literal : ""));
    out->failed = out->failed || !literal;
    PQfreemem(literal);
}

static bool send_script(struct mk_buf *text, PGconn *pg)
{
    mk_buf_add_char(text, 0);
    bool sends = !text->failed && PQsendQuery(pg, text->p) == 1;
    mk_buf_free(text);
    return sends;
}

/* Assigns rows of earlier versions to this service, and adds missing checksums. */
static bool repair_history(struct postgres_migration *u, PGconn *pg)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct duda_sql_history *h = &u->history;
    if (h->is_adopted) {
        mk_buf_add(&text, MK_STR("UPDATE duda_migrations SET service = "));
        append_literal(&text, pg, h->service);
        mk_buf_add(&text, MK_STR(" WHERE service = ''; "));
    }
    for (const struct duda_sql_migration *m = u->all; m; m = m->next) {
        const struct duda_sql_applied *row = duda_sql_history_find(h, m->number);
        if (!row || row->checksum.p)
            continue;
        mk_buf_addf(&text, "UPDATE duda_migrations SET checksum = '%s' WHERE number = %u AND service = ",
                    m->checksum, m->number);
        append_literal(&text, pg, h->service);
        mk_buf_add(&text, MK_STR("; "));
    }
    return send_script(&text, pg);
}

/* Sends the text of the migration, and a statement that records it. If the text has ended the transaction,
 * releasing the savepoint fails, and no row is written. */
static bool run_migration(const struct postgres_migration *u, PGconn *pg)
{
    const struct duda_sql_migration *m = u->at;
    struct mk_buf text = mk_buf_growing(m->text.len + 4096);
    mk_buf_add(&text, MK_STR("SAVEPOINT duda_migration; "));
    mk_buf_add(&text, m->text);
    mk_buf_addf(&text,
                "\n; RELEASE SAVEPOINT duda_migration; INSERT INTO duda_migrations (number, checksum, "
                "service, name) VALUES (%u, '%s', ",
                m->number, m->checksum);
    append_literal(&text, pg, u->history.service);
    mk_buf_add(&text, MK_STR(", "));
    append_literal(&text, pg, m->name);
    mk_buf_add_char(&text, ')');
    return send_script(&text, pg);
}

/* ---- Results ---- */

static mk_str column_value(const PGresult *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? MK_STR_NULL : mk_str_from_c(PQgetvalue(rows, row, column));
}

/* Reads the rows of this service, and those without a service. */
static int read_history(struct postgres_migration *u)
{
    int n = u->rows ? PQntuples(u->rows) : 0;
    u->done = mk_mem_zalloc((size_t)n + 1, sizeof *u->done);
    if (!u->done)
        return -ENOMEM;
    u->history.applied = u->done;
    for (int i = 0; i < n; i++) {
        mk_str service = column_value(u->rows, i, SERVICE);
        if (service.len && !mk_str_eq(service, u->history.service))
            continue;
        u->done[u->history.n++] =
            (struct duda_sql_applied){strtoull(PQgetvalue(u->rows, i, NUMBER), NULL, 10), service,
                                      column_value(u->rows, i, NAME), column_value(u->rows, i, CHECKSUM)};
    }
    return duda_sql_history_check(&u->history, u->all);
}

/* Returns whether the migration has ended the transaction. In this case, the savepoint or the transaction is
 * missing. */
static bool is_transaction_lost(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state && (strcmp(state, "3B001") == 0 || strcmp(state, "25P01") == 0);
}

static void set_migration_error(struct postgres_migration *u, mk_str message)
{
    const char *name = u->at ? u->at->name.p : "";
    if (!u->error_text[0])
        snprintf(u->error_text, sizeof u->error_text, "%.100s%s%.*s", name, u->at ? ": " : "",
                 MK_STR_ARG(mk_str_first(message, 180)));
}

/* Reads the results of the last query. Returns false if more of them will arrive. */
static bool read_results(struct postgres_migration *u, PGconn *pg)
{
    while (!PQisBusy(pg)) {
        PGresult *result = PQgetResult(pg);
        if (!result)
            return true;
        if (PQresultStatus(result) == PGRES_FATAL_ERROR)
            set_migration_error(u, u->step == POSTGRES_MIGRATION_RUN && is_transaction_lost(result)
                                       ? MK_STR(DUDA_SQL_MIGRATION_HAS_COMMIT)
                                       : mk_str_from_c(PQresultErrorMessage(result)));
        if (u->step == POSTGRES_MIGRATION_READ && PQnfields(result) == COLUMNS && !u->rows)
            u->rows = result;
        else
            PQclear(result);
    }
    return false;
}

static bool start_next_migration_step(struct postgres_migration *u, PGconn *pg)
{
    u->at = u->step == POSTGRES_MIGRATION_RUN ? u->at->next : u->history.pending;
    u->step = u->at ? POSTGRES_MIGRATION_RUN : POSTGRES_MIGRATION_COMMIT;
    u->has_migrated = u->has_migrated || u->at;
    return u->at ? run_migration(u, pg) : PQsendQuery(pg, "COMMIT") == 1;
}

/* Discards settings of the migrations, because handlers will use this session: files of pg_dump, for example,
 * begin with SET. */
static bool reset_session(struct postgres_migration *u, PGconn *pg)
{
    u->step = POSTGRES_MIGRATION_RESET;
    return PQsendQuery(pg, "DISCARD ALL") == 1;
}

static bool is_migration_done(const struct postgres_migration *u)
{
    return u->step == POSTGRES_MIGRATION_RESET || (u->step == POSTGRES_MIGRATION_COMMIT && !u->has_migrated);
}

static bool continue_migration(struct postgres_migration *u, PGconn *pg)
{
    if (u->step == POSTGRES_MIGRATION_COMMIT)
        return reset_session(u, pg);
    if (u->step != POSTGRES_MIGRATION_READ)
        return start_next_migration_step(u, pg);
    int e = read_history(u);
    if (e) {
        snprintf(u->error_text, sizeof u->error_text, "Migrations: %s",
                 e == -EINVAL ? u->history.message : strerror(-e));
        return false;
    }
    if (!u->history.is_adopted && !u->history.lacks_checksums)
        return start_next_migration_step(u, pg);
    u->step = POSTGRES_MIGRATION_REPAIR;
    return repair_history(u, pg);
}

int postgres_migration_continue(struct postgres_migration *u, PGconn *pg)
{
    if (!read_results(u, pg))
        return -EAGAIN;
    if (u->error_text[0])
        return -EREMOTEIO;
    if (is_migration_done(u))
        return 0;
    if (continue_migration(u, pg))
        return -EAGAIN;
    set_migration_error(u, mk_str_from_c(PQerrorMessage(pg)));
    return -EREMOTEIO;
}
