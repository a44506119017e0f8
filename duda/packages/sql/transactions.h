/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler is in a transaction of which database. No other place knows it: a backend knows that a session is taken, but not
 * by whom, and a handler that lives long keeps nothing of the transactions that it has ended. */
#ifndef DUDA_SQL_TRANSACTIONS_H
#define DUDA_SQL_TRANSACTIONS_H

#include <duda/sql_backend.h>

struct sql_transaction;

/* Those of a worker. They are few: each has a session of its database for itself. */
struct sql_transactions {
    struct sql_transaction *first;
};

/* The session that the transaction runs in; NULL: the handler is in none. */
void *sql_transactions_session(const struct sql_transactions *all, const struct duda_ctx *d,
                               const struct duda_sql_db *db);
/* 0; -EALREADY: the handler is in one; or the error of the backend. A handler that ends rolls it back. */
int sql_transactions_begin(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                           struct duda_sql_result *result) MK_API_MUST_USE;
/* The transaction is over, also on an error; -EINVAL: there is none. */
int sql_transactions_finish(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                            struct duda_sql_result *result, bool commits) MK_API_MUST_USE;

#endif
