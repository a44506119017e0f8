/* SPDX-License-Identifier: Apache-2.0 */
#include "transactions.h"

#include <duda/log.h>
#include <duda/memory.h>
#include <duda/response.h>
#include <errno.h>
#include <monkey/mem.h>
#include <stdio.h>

struct sql_transaction {
    struct sql_transaction *next;
    struct sql_transactions *all;
    struct duda_ctx *d;
    struct duda_sql_db *db;
    void *session;
    unsigned n_savepoints;
    bool is_read_only;
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

/* Runs when the handler has returned. After a success, its changes were probably meant to be committed, and
 * the client believes that they are. */
static void rollback_abandoned_transaction(void *ctx)
{
    const struct sql_transaction *t = ctx;
    bool has_succeeded = duda_result(t->d) >= 0 && duda_response_status(t->d) < 400;
    if (has_succeeded && !t->is_read_only)
        duda_log_handler(
            t->d, MK_LOG_WARN,
            "the handler returned success with an open transaction in the database `%.*s`, which is "
            "rolled back: call duda_sql_commit()",
            MK_STR_ARG(t->db->name));
    end_transaction(ctx, false);
}

/* ---- Savepoints ---- */

static int run_savepoint_statement(struct duda_ctx *d, const struct sql_transaction *t,
                                   struct duda_sql_result *result, const char *command)
{
    char text[64];
    snprintf(text, sizeof text, "%s duda_%u", command, t->n_savepoints);
    return t->db->ops->run_statement(d, t->db, t->session, result,
                                     &(struct duda_sql_statement){.text = text});
}

static int set_savepoint(struct duda_ctx *d, struct sql_transaction *t,
                         const struct duda_sql_transaction_options *options, struct duda_sql_result *result)
{
    if (options->isolation)
        return -EINVAL;
    t->n_savepoints++;
    int e = run_savepoint_statement(d, t, result, "SAVEPOINT");
    t->n_savepoints -= e != 0;
    return e;
}

/* An error rolls back to the savepoint, so that the outer transaction can continue. */
static int end_savepoint(struct duda_ctx *d, struct sql_transaction *t, struct duda_sql_result *result,
                         bool commits)
{
    struct duda_sql_result ignored = {0};
    int e = commits ? run_savepoint_statement(d, t, result, "RELEASE SAVEPOINT") : 0;
    if (!commits || e) {
        int undone = run_savepoint_statement(d, t, commits ? &ignored : result, "ROLLBACK TO SAVEPOINT");
        undone = undone ? undone : run_savepoint_statement(d, t, &ignored, "RELEASE SAVEPOINT");
        e = e ? e : undone;
    }
    t->n_savepoints--;
    return e;
}

/* ---- Transactions ---- */

int sql_transactions_begin(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                           const struct duda_sql_transaction_options *options, struct duda_sql_result *result)
{
    struct sql_transaction *t = find_transaction(all, d, db);
    void *session;
    if (t)
        return set_savepoint(d, t, options, result);
    int e = db->ops->begin(d, db, result, options, &session);
    if (e)
        return e;
    t = mk_mem_alloc(sizeof *t);
    if (!t) {
        db->ops->release(db, session, false);
        return -ENOMEM;
    }
    *t = (struct sql_transaction){all->first, all, d, db, session, 0, options->read_only};
    all->first = t;
    return duda_defer(d, rollback_abandoned_transaction, t);
}

int sql_transactions_finish(struct sql_transactions *all, struct duda_ctx *d, struct duda_sql_db *db,
                            struct duda_sql_result *result, bool commits)
{
    struct sql_transaction *t = find_transaction(all, d, db);
    if (!t)
        return -EINVAL;
    if (t->n_savepoints)
        return end_savepoint(d, t, result, commits);
    int e = db->ops->finish(d, db, t->session, result, commits);
    (void)duda_undefer(d, rollback_abandoned_transaction, t);
    end_transaction(t, e == 0);
    return e;
}
