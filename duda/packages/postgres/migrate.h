/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the missing migrations on a new connection, before handlers use it. */
#ifndef DUDA_POSTGRES_MIGRATE_H
#define DUDA_POSTGRES_MIGRATE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

enum postgres_migration_state {
    POSTGRES_MIGRATION_READ,
    POSTGRES_MIGRATION_REPAIR,
    POSTGRES_MIGRATION_RUN,
    POSTGRES_MIGRATION_COMMIT,
    POSTGRES_MIGRATION_RESET
};

struct postgres_migration {
    const struct duda_sql_migration *all, *at; /* at: the running migration; NULL: none yet */
    enum postgres_migration_state step;
    bool has_migrated;
    PGresult *rows; /* the strings of `history` are in it */
    struct duda_sql_applied *done;
    struct duda_sql_history history;
    char error_text[300]; /* why a migration failed */
};

/* The caller has set u->all and the service of u->history; the other members are zero. */
bool postgres_migration_start(struct postgres_migration *u, PGconn *pg);
/* Continues with the received data. Returns 0 when it is done, -EAGAIN if it waits for more data, or
 * -EREMOTEIO with an error message in u->error_text. */
int postgres_migration_continue(struct postgres_migration *u, PGconn *pg);
/* Frees the resources of the migration. */
void postgres_migration_free(struct postgres_migration *u);

#endif
