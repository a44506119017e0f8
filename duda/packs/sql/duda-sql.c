/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: databases of a worker, and which transactions its handlers have. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/sql_backend.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/plugin.h>

#include "sections.h"

MK_PLUGIN_DECLARE(duda_sql);

/* A transaction of a handler. */
struct transaction {
    struct transaction *next;
    const struct duda *d;
    struct duda_sql *db;
    struct in_worker *mine;
    void *session; /* NULL: it is over */
};

struct in_worker {
    struct duda_sql *first;
    struct transaction *transactions; /* few: one for each handler that is in one */
};

static struct in_worker *of(struct mk_worker *w)
{
    return mk_worker_data(w, &MK_PLUGIN_OF(duda_sql));
}

static int worker_start(struct mk_worker *w, void *data)
{
    struct in_worker *mine = mk_mem_zalloc(1, sizeof *mine);
    (void)data;
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_sql), mine);
    return mine ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *w, void *data)
{
    (void)data;
    mk_mem_free(of(w));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_sql), NULL);
}

int duda_sql_add(struct mk_worker *w, struct duda_sql *db)
{
    struct in_worker *mine = of(w);
    for (const struct duda_sql *other = mine->first; other; other = other->next)
        if (mk_str_eq(other->name, db->name))
            return -EEXIST;
    db->next = mine->first;
    mine->first = db;
    return 0;
}

struct duda_sql *duda_sql_find(const struct duda *d, const char *name)
{
    struct duda_sql *db = of(duda_worker(d))->first;
    while (db && !mk_str_eq(db->name, mk_str_from_c(name ? name : "main")))
        db = db->next;
    return db;
}

/* ---- Statements ---- */

static struct transaction *transaction_of(const struct duda *d, const struct duda_sql *db)
{
    struct transaction *t = of(duda_worker(d))->transactions;
    while (t && (t->d != d || t->db != db || !t->session))
        t = t->next;
    return t;
}

static int refuse(struct duda *d, struct duda_sql_result *result, int e, const char *why)
{
    result->problem = duda_copy(d, mk_str_from_c(why));
    return e;
}

int duda_sql_do(struct duda *d, struct duda_sql *db, struct duda_sql_result *result, const char *text,
                const struct duda_sql_value *parameters, size_t n)
{
    mk_str statement = mk_str_from_c(text);
    const struct transaction *t = transaction_of(d, db);
    *result = (struct duda_sql_result){0};
    if (duda_ended(d)) {
        result->problem = MK_STR("the handler has ended");
        return duda_suspend(d);
    }
    if (statement.len > DUDA_SQL_TEXT_MAX)
        return refuse(d, result, -EMSGSIZE, "the statement is too long");
    if (n > DUDA_SQL_PARAMETERS_MAX)
        return refuse(d, result, -EMSGSIZE, "the statement has too many parameters");
    uint64_t begun = pack_meter_begin(db->meter);
    int e = db->ops->run(d, db, t ? t->session : NULL, result, statement, parameters, n);
    pack_meter_end(db->meter, begun, e);
    return e;
}

/* ---- Transactions ---- */

static void end(struct transaction *t, bool over)
{
    void *session = t->session;
    t->session = NULL;
    if (session)
        t->db->ops->end(t->db, session, over);
}

static void forget(void *ctx)
{
    struct transaction *t = ctx, **at = &t->mine->transactions;
    end(t, false);
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    mk_mem_free(t);
}

int duda_sql_begin(struct duda *d, struct duda_sql *db)
{
    struct duda_sql_result result;
    struct in_worker *mine = of(duda_worker(d));
    if (duda_ended(d))
        return duda_suspend(d);
    if (transaction_of(d, db))
        return -EALREADY;
    struct transaction *t = mk_mem_zalloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct transaction){mine->transactions, d, db, mine, NULL};
    mine->transactions = t;
    if (duda_defer(d, forget, t))
        return -ENOMEM;
    int e = db->ops->begin(d, db, &result, &t->session);
    if (e)
        t->session = NULL;
    return e;
}

static int finish(struct duda *d, struct duda_sql *db, mk_str statement)
{
    struct duda_sql_result result;
    struct transaction *t = transaction_of(d, db);
    if (duda_ended(d))
        return duda_suspend(d);
    if (!t)
        return -EINVAL;
    int e = db->ops->run(d, db, t->session, &result, statement, NULL, 0);
    end(t, e == 0);
    return e;
}

int duda_sql_commit(struct duda *d, struct duda_sql *db)
{
    return finish(d, db, MK_STR("COMMIT"));
}

int duda_sql_rollback(struct duda *d, struct duda_sql *db)
{
    return finish(d, db, MK_STR("ROLLBACK"));
}

static const char *const needs[] = {"duda", NULL};

MK_PLUGIN(duda_sql) = {
    MK_PLUGIN_HEAD,
    .name = "duda-sql",
    .version = MK_VERSION,
    .help = "Databases for services of Duda; duda-sqlite and duda-postgres bring them.",
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .needs = needs,
};
