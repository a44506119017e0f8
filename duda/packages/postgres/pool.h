/* SPDX-License-Identifier: Apache-2.0 */
/* A database in a worker: its connections, and the statements and transactions that wait for one. */
#ifndef DUDA_POSTGRES_POOL_H
#define DUDA_POSTGRES_POOL_H

#include "common/package_migration_log.h"
#include "common/package_wait_queue.h"
#include "pubsub.h"

struct postgres_pool {
    struct duda_sql_db sql; /* must be first */
    const struct postgres_settings *settings;
    struct mk_worker *worker;
    struct mk_deferred *deferred;
    struct mk_timer timer;
    struct postgres_resolver hosts;
    struct postgres_pubsub pubsub;
    struct postgres_conn *conns;
    struct package_request_queue waiting;           /* statements */
    struct package_wait_queue waiting_transactions; /* transactions that wait for an idle connection */
    uint64_t retry_ms;  /* time of the next connection attempt for waiting requests; 0: none scheduled */
    uint64_t cancel_ms; /* time to cancel abandoned statements; 0: none */
    struct package_migration_log migration_log;
    bool is_checked;    /* migrations are done, or there are none */
    uint64_t n_cursors; /* opened so far; gives each a unique number */
};

int postgres_pool_open(struct postgres_pool *b, struct mk_worker *w,
                       const struct postgres_settings *settings);
void postgres_pool_close(struct postgres_pool *b);
/* Acquires a connection for this handler, which must release it. Returns 0, or the error of the wait. */
int postgres_pool_acquire(struct duda_ctx *d, struct postgres_pool *b, struct postgres_conn **out);
/* Returns the reason why no connection was available. */
const char *postgres_pool_error_text(const struct postgres_pool *b, int e);
void postgres_pool_release(struct postgres_pool *b, struct postgres_conn *c);
/* Runs a statement over the given connection. */
int postgres_pool_query(struct duda_ctx *d, struct postgres_pool *b, struct postgres_conn *c,
                        struct duda_sql_result *result, const char *text);
/* Sends a statement over `conn` (NULL: any connection), and ignores its result. */
void postgres_pool_send_detached(struct postgres_pool *b, struct postgres_conn *conn,
                                 const struct duda_sql_statement *query);
/* Returns NULL if it is not a PostgreSQL database. */
struct postgres_pool *postgres_pool_from_sql(struct duda_sql_db *db);

#endif
