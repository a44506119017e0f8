/* SPDX-License-Identifier: Apache-2.0 */
/* Maps handlers to their open transactions. Only this code knows which handler owns a transaction; a backend
 * only knows that a session is in use. Long-running handlers keep no memory of finished transactions. */
#ifndef DUDA_SQL_TRANSACTIONS_H
#define DUDA_SQL_TRANSACTIONS_H

#include <duda/sql_backend.h>

struct sql_transaction;

/* The transactions of a worker. There are few, because each occupies a session of its database. */
struct sql_transactions {
    struct sql_transaction *first;
};

/* Returns the session of the handler's transaction; NULL if the handler is not in one. */
void *sql_transactions_session(const struct sql_transactions *all, struct duda_ctx *d,
                               const struct duda_sql_db *db);
/* Begins a transaction, which is rolled back if it is still open when the handler ends; in a transaction, sets
 * a savepoint. Returns 0; -EINVAL: a savepoint has no isolation level; or the error of the backend. */
int sql_transactions_begin(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                           const struct duda_sql_transaction_options *options,
                           struct duda_sql_result *result) MK_API_MUST_USE;
/* Ends the innermost transaction, even if it returns an error. Returns -EINVAL if the handler is not in a
 * transaction. */
int sql_transactions_finish(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                            struct duda_sql_result *result, bool commits) MK_API_MUST_USE;

#endif
