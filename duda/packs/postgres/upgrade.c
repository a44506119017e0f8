/* SPDX-License-Identifier: Apache-2.0 */
/* All in one transaction. A lock of the database lets other workers, and other machines, wait. */
#include "upgrade.h"

#include <errno.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <stdlib.h>

/* The last statement answers the last number. The number of the lock is "duda" in ASCII. */
static const char begin_text[] =
    "BEGIN; SELECT pg_advisory_xact_lock(1685414753) IS NULL; CREATE TABLE IF NOT EXISTS duda_migrations "
    "(number BIGINT PRIMARY "
    "KEY, name TEXT NOT NULL, done TIMESTAMPTZ NOT NULL DEFAULT now()); SELECT coalesce(max(number), 0) FROM "
    "duda_migrations";

bool postgres_upgrade_begin(struct postgres_upgrade *u, PGconn *pg)
{
    (void)u;
    return PQsendQuery(pg, begin_text) == 1;
}

/* The text of the migration, and the line that says that it was run. */
static bool send(PGconn *pg, const struct duda_sql_migration *m)
{
    struct mk_buf text = mk_buf_growing(m->text.len + 4096);
    char *name = PQescapeLiteral(pg, m->name.p, m->name.len);
    mk_buf_add(&text, m->text);
    mk_buf_addf(&text, "\n; INSERT INTO duda_migrations (number, name) VALUES (%u, ", m->number);
    mk_buf_add(&text, mk_str_from_c(name ? name : "''"));
    mk_buf_add(&text, MK_STR(")"));
    mk_buf_add_char(&text, 0);
    bool sends = name && !text.failed && PQsendQuery(pg, text.p) == 1;
    PQfreemem(name);
    mk_buf_free(&text);
    return sends;
}

/* False: not all of the last query has arrived. */
static bool take_results(struct postgres_upgrade *u, PGconn *pg)
{
    while (!PQisBusy(pg)) {
        PGresult *result = PQgetResult(pg);
        if (!result)
            return true;
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 && !u->at)
            u->last = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
        else if (PQresultStatus(result) == PGRES_FATAL_ERROR && !u->why[0])
            snprintf(u->why, sizeof u->why, "%.*s%s%.*s", u->at ? (int)u->at->name.len : 0,
                     u->at ? u->at->name.p : "", u->at ? ": " : "", 180, PQresultErrorMessage(result));
        PQclear(result);
    }
    return false;
}

int postgres_upgrade(struct postgres_upgrade *u, PGconn *pg)
{
    if (!take_results(u, pg))
        return -EAGAIN;
    if (u->why[0])
        return -EREMOTEIO;
    if (u->commits)
        return 0;
    const struct duda_sql_migration *next = u->at ? u->at->next : u->all;
    while (!u->at && next && next->number <= u->last)
        next = next->next;
    u->at = next;
    u->commits = !next;
    if (next ? send(pg, next) : PQsendQuery(pg, "COMMIT") == 1)
        return -EAGAIN;
    snprintf(u->why, sizeof u->why, "%s", PQerrorMessage(pg));
    return -EREMOTEIO;
}
