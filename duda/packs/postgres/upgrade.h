/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a database up to date, before its connection is used. */
#ifndef DUDA_POSTGRES_UPGRADE_H
#define DUDA_POSTGRES_UPGRADE_H

#include <duda/sql_backend.h>
#include <libpq-fe.h>

struct postgres_upgrade {
    const struct duda_sql_migration *all, *at; /* at: the one that runs; NULL: none yet */
    uint64_t last;                             /* that the database has */
    bool commits;
    char why[240]; /* it failed */
};

/* u->all is set, the rest is zero. */
bool postgres_upgrade_begin(struct postgres_upgrade *u, PGconn *pg);
/* Goes on, with what has arrived. 0: all is done. -EAGAIN: not yet. -EREMOTEIO: u->why. */
int postgres_upgrade(struct postgres_upgrade *u, PGconn *pg);

#endif
