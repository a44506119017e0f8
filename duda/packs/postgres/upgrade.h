/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a database up to date, before its connection is used. */
#ifndef DUDA_POSTGRES_UPGRADE_H
#define DUDA_POSTGRES_UPGRADE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

enum postgres_upgrade_step {
    POSTGRES_READS_HISTORY,
    POSTGRES_MENDS_HISTORY,
    POSTGRES_MIGRATES,
    POSTGRES_COMMITS,
    POSTGRES_RESETS
};

struct postgres_upgrade {
    const struct duda_sql_migration *all, *at; /* at: the one that runs; NULL: none yet */
    enum postgres_upgrade_step step;
    bool has_migrated;
    PGresult *rows; /* that the history points into */
    struct duda_sql_done *done;
    struct duda_sql_history history;
    char why[300]; /* it failed */
};

/* u->all and the service of u->history are set, the rest is zero. */
bool postgres_upgrade_begin(struct postgres_upgrade *u, PGconn *pg);
/* Continues with what has arrived. 0: all is done. -EAGAIN: not yet. -EREMOTEIO: u->why. */
int postgres_upgrade(struct postgres_upgrade *u, PGconn *pg);
/* Frees what it has. */
void postgres_upgrade_end(struct postgres_upgrade *u);

#endif
