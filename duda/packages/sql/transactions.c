/* SPDX-License-Identifier: Apache-2.0 */
#include "transactions.h"

#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>

struct sql_transaction {
    struct sql_transaction *next;
    struct sql_transactions *all;
    struct duda_ctx *d;
    struct duda_sql_db *db;
    void *session;
};

static struct sql_transaction *find_transaction(const struct sql_transactions *all, struct duda_ctx *d,
                                                const struct duda_sql_db *db)
{
    struct sql_transaction *t = all->first;
    while (t && (t->d != d || t->db != db))
        t = t->next;
    return t;
}

void *sql_transactions_session(const struct sql_transactions *all, struct duda_ctx *d,
                               const struct duda_sql_db *db)
{
    const struct sql_transaction *t = find_transaction(all, d, db);
    return t ? t->session : NULL;
}

static void end_transaction(struct sql_transaction *t, bool over)
{
    struct sql_transaction **at = &t->all->first;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->db->ops->release(t->db, t->session, over);
    mk_mem_free(t);
}

static void rollback_abandoned_transaction(void *ctx)
{
    end_transaction(ctx, false);
}

int sql_transactions_begin(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                           struct duda_sql_result *result)
{
    void *session;
    int e = find_transaction(all, d, db) ? -EALREADY : db->ops->begin(d, db, result, &session);
    if (e)
        return e;
    struct sql_transaction *t = mk_mem_alloc(sizeof *t);
    if (!t) {
        db->ops->release(db, session, false);
        return -ENOMEM;
    }
    *t = (struct sql_transaction){all->first, all, d, db, session};
    all->first = t;
    return duda_defer(d, rollback_abandoned_transaction, t);
}

int sql_transactions_finish(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                            struct duda_sql_result *result, bool commits)
{
    struct sql_transaction *t = find_transaction(all, d, db);
    if (!t)
        return -EINVAL;
    int e = db->ops->finish(d, db, t->session, result, commits);
    (void)duda_undefer(d, rollback_abandoned_transaction, t);
    end_transaction(t, e == 0);
    return e;
}
