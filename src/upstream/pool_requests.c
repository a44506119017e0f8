/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests of one worker share: memory, notifications at the end of a loop iteration, and the retry
 * budget. */
#include "upstream/pool.h"

void mk_pool_free_conn(struct mk_upstream_conn *c)
{
    mk_freelist_push(&c->set->pool->conns, c);
}

void mk_pool_notify(struct mk_pool *p, struct mk_upstream_conn *l)
{
    mk_list_remove(&l->changed);
    mk_list_add_last(&p->changed, &l->changed);
    mk_deferred_post(p->end);
}

bool mk_pool_notify_if_reused(struct mk_upstream_conn *c)
{
    bool is_kept = c->was_used && c->state.is == MK_UPSTREAM_CONN_OPEN;
    if (is_kept)
        mk_pool_notify(c->set->pool, c);
    return is_kept;
}

/* Notifications added during this pass run at the end of the next iteration. */
void mk_pool_run_notifications(void *pool)
{
    struct mk_pool *p = pool;
    struct mk_list end;
    mk_list_add_last(&p->changed, &end);
    while (p->changed.next != &end) {
        struct mk_upstream_conn *l = MK_LIST_ENTRY(p->changed.next, struct mk_upstream_conn, changed);
        mk_list_remove(&l->changed);
        l->on_ready(l->ctx, MK_WRITABLE);
    }
    mk_list_remove(&end);
}

struct mk_freelist *mk_pool_request_memory(const struct mk_upstream *u, struct mk_worker *w)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    return &p->blocks;
}

static struct mk_retry_budget *retry_budget_of(const struct mk_upstream *u, struct mk_worker *w)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    return &p->sets[u->index].retry;
}

void mk_pool_count_request(struct mk_upstream *u, struct mk_worker *w)
{
    mk_retry_budget_count_request(retry_budget_of(u, w), mk_worker_now_ms(w));
}

bool mk_pool_may_retry(struct mk_upstream *u, struct mk_worker *w)
{
    return mk_retry_budget_try_spend(retry_budget_of(u, w), mk_worker_now_ms(w), u->settings->retry_percent);
}
