/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a worker: its connections, and statements and transactions that wait for one. */
#ifndef DUDA_POSTGRES_BASE_H
#define DUDA_POSTGRES_BASE_H

#include "hub.h"
#include "waiters/waiters.h"

struct postgres_base {
    struct duda_sql sql; /* the first */
    const struct postgres_settings *settings;
    struct mk_worker *worker;
    struct mk_turn_end *turn;
    struct mk_timer timer;
    struct postgres_hosts hosts;
    struct postgres_hub hub;
    struct postgres_conn *conns;
    struct pack_requests waiting; /* statements */
    struct pack_waiters wanting;  /* transactions, for a connection of their own */
    uint64_t retry_ms;            /* when a connection may be opened for them; 0: none is to be */
    uint64_t cancel_ms;           /* when statements that were abandoned are cancelled; 0: there are none */
    bool is_checked;              /* its migrations were, or it has none */
};

int postgres_base_open(struct postgres_base *b, struct mk_worker *w,
                       const struct postgres_settings *settings);
void postgres_base_close(struct postgres_base *b);
/* A connection for this handler alone, until it is given back: 0, or as waits. */
int postgres_base_take(struct duda *d, struct postgres_base *b, struct postgres_conn **out);
/* Why it had none. */
const char *postgres_base_why(const struct postgres_base *b, int e);
void postgres_base_give(struct postgres_base *b, struct postgres_conn *c);
/* A statement in that connection. */
int postgres_base_run(struct duda *d, struct postgres_base *b, struct postgres_conn *c,
                      struct duda_sql_result *result, const char *text);
/* A statement whose result nobody waits for, in that connection; NULL: in any. */
void postgres_base_send(struct postgres_base *b, struct postgres_conn *conn,
                        const struct duda_sql_query *query);
/* NULL: it is another kind of database. */
struct postgres_base *postgres_base_of(struct duda_sql *db);

#endif
