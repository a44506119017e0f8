/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of a worker: its start and end, wakeups by other workers, and the periodic sweep. */
#include <errno.h>

#include "event/tls.h"
#include "upstream/backend_set.h"
#include "upstream/cancelled_conn.h"
#include "upstream/discovery.h"
#include "upstream/dynamic_host.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/health_check.h"
#include "upstream/http2.h"
#include "upstream/pool.h"
#include "upstream/server_control.h"
#include "upstream/wait_queue.h"

/* Handles a wakeup by another worker: a slot may be free for our queue, or a request of that worker needs an
 * idle connection of ours. */
static void handle_wake_of_backend_set(struct mk_backend_set *g)
{
    if (g->n_waiting)
        mk_wait_queue_publish(g); /* other workers may have used up or released a share */
    mk_pool_yield_idle(g);
    mk_pool_serve_queue(g);
    if (!g->n_waiting)
        mk_wait_queue_wake_for_free_slots(g, false);
}

static void on_wake_event(void *ctx, unsigned which)
{
    struct mk_pool *p = ctx;
    uint64_t woken[MK_CONN_LIMIT_WORDS];
    (void)which;
    if (!mk_conn_limit_pop_woken(&p->limit, p->row, woken))
        return;
    for (unsigned i = 0; i < p->upstreams->n; i++)
        if (mk_wait_queue_is_woken(&p->sets[i], woken))
            handle_wake_of_backend_set(&p->sets[i]);
}

/* ---- The sweep ---- */

static void close_expired_idle(struct mk_backend *o, uint64_t now)
{
    while (!mk_list_empty(&o->idle)) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(o->idle.prev, struct mk_upstream_conn, backend_link);
        if (now - c->idle_since_ms < o->server->upstream->idle_ms)
            return;
        mk_pool_remove_idle(c);
        mk_pool_close_conn(c);
    }
}

static void close_expired_cancelled(struct mk_backend *o)
{
    struct mk_upstream_conn *c;
    while ((c = mk_cancelled_conn_find_expired(o))) {
        mk_pool_close_conn(c);
        mk_pool_serve_backend(o);
    }
    mk_pool_schedule_sweep_at(o->pool, mk_worker_now_ms(o->pool->worker),
                              mk_cancelled_conn_next_expiry_ms(o));
}

static void fail_expired_waiters(struct mk_backend_set *g, uint64_t now)
{
    struct mk_upstream_conn *l;
    while ((l = mk_wait_queue_first(g)) && now - l->waits_since_ms >= g->upstream->settings->queue_ms)
        mk_pool_end_wait(l, -EBUSY);
}

/* Also looks for dead workers, because without a master, nothing reports that a worker has died. */
static void sweep_queue(struct mk_backend_set *g)
{
    mk_conn_limit_free_dead_rows(&g->pool->limit, g->pool->row);
    fail_expired_waiters(g, mk_clock_ms());
    handle_wake_of_backend_set(g);
}

/* Closes the idle connections of the backend, whatever their age. */
static void close_all_idle(struct mk_backend *o)
{
    close_expired_idle(o, UINT64_MAX);
    if (!mk_list_empty(&o->http2_sessions))
        (void)o->pool->http2->sweep(o, UINT64_MAX);
}

static void close_idle_of_host(struct mk_backend_set *g)
{
    close_all_idle(&g->backends[0]);
}

void mk_pool_release_memory(struct mk_pool *p, bool with_conns)
{
    if (with_conns) {
        for (unsigned i = 0; i < p->upstreams->n_servers; i++)
            close_all_idle(&p->backends[i]);
        mk_dynamic_host_each(p, close_idle_of_host);
    }
    mk_freelist_fini(&p->conns);
    mk_freelist_fini(&p->blocks);
}

static void sweep_host(struct mk_backend_set *g)
{
    close_expired_idle(&g->backends[0], mk_worker_now_ms(g->pool->worker));
    if (g->n_waiting)
        sweep_queue(g);
    if (g->backends[0].n_idle)
        mk_pool_schedule_sweep(g->pool);
}

/* A draining worker obeys the changes of the administrator to the configuration that now serves, as its other
 * workers do: it closes the servers that a reload or a command has removed. */
static void follow_serving_config(struct mk_pool *p)
{
    struct mk_upstreams *all = p->upstreams;
    if (!mk_upstream_stats_follow(&all->stats, &all->former))
        return;
    p->stats.admin = all->stats.admin;
    for (unsigned i = 0; i < all->n_servers; i++)
        p->backends[i].mode = &p->stats.admin[p->backends[i].server->stats_slot].mode;
}

static void sweep_pool(struct mk_timer *t)
{
    struct mk_pool *p = MK_CONTAINER(t, struct mk_pool, timer);
    bool has_more = false;
    p->sweeps_at_ms = 0;
    if (mk_worker_is_draining(p->worker))
        follow_serving_config(p);
    for (unsigned i = 0; i < p->upstreams->n_servers; i++) {
        struct mk_backend *o = &p->backends[i];
        has_more |= mk_server_control_sweep(o) || o->server->is_spare;
        close_expired_idle(o, mk_worker_now_ms(p->worker));
        close_expired_cancelled(o);
        has_more |= !mk_backend_publish_health(o) || o->n_idle > 0;
        has_more |= !mk_list_empty(&o->http2_sessions) && p->http2->sweep(o, mk_worker_now_ms(p->worker));
    }
    for (unsigned i = 0; i < p->upstreams->n; i++) {
        struct mk_backend_set *g = &p->sets[i];
        if (g->n_waiting)
            sweep_queue(g);
    }
    mk_dynamic_host_each(p, sweep_host);
    if (has_more)
        mk_pool_schedule_sweep(p);
}

/* ---- The life of a worker ---- */

static bool watch_wake_fd(struct mk_pool *p)
{
    int event = mk_conn_limit_wake_fd(&p->limit, p->row);
    for (unsigned i = 0; i < p->upstreams->n; i++)
        mk_wait_queue_wake_all(&p->sets[i]); /* this configuration may have a higher limit */
    if (event < 0)
        return true;
    p->wakes = mk_watcher_new(p->worker, event, MK_READABLE, on_wake_event, p);
    return p->wakes;
}

static int open_pool(struct mk_pool *p)
{
    const struct mk_upstreams *all = p->upstreams;
    p->sets = mk_mem_zalloc(all->n + 1, sizeof *p->sets);
    p->backends = mk_mem_zalloc(all->n_servers + 1, sizeof *p->backends);
    mk_timer_init(&p->timer, sweep_pool);
    p->end = mk_deferred_new(p->worker, mk_pool_run_notifications, p);
    if (!p->sets || !p->backends || !p->end)
        return -ENOMEM;
    if (!mk_conn_limit_acquire_row(&p->limit, &p->row))
        return -EAGAIN;
    struct mk_backend *backends = p->backends;
    bool ok = true;
    for (const struct mk_upstream *u = all->first; u; u = u->next) {
        ok &= mk_backend_set_open(p, &p->sets[u->index], u, backends);
        backends += u->n;
    }
    mk_server_control_open_added(p);
    if (all->control)
        mk_pool_schedule_sweep(p); /* finds servers that are added later, even if no message arrives */
    return ok && watch_wake_fd(p) && mk_discovery_start(p, &p->discovery) ? 0 : -ENOMEM;
}

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, struct mk_upstreams *all)
{
    struct mk_pool *p = mk_mem_zalloc(1, sizeof *p);
    *out = p;
    if (!p)
        return -ENOMEM;
    p->worker = w;
    p->upstreams = all;
    p->find_host = mk_dynamic_host_find;
    p->stats = all->stats;
    p->limit = all->limit;
    p->row = MK_UPSTREAM_WORKERS;
    p->conns.size = sizeof(struct mk_upstream_conn);
    p->blocks.size = MK_POOL_BLOCK;
    mk_list_init(&p->changed);
    mk_list_init(&p->hosts);
    mk_list_init(&p->unflushed);
    p->http2 = all->http2;
    int e = open_pool(p);
    if (e)
        mk_pool_stop(p);
    return e;
}

void mk_pool_drain(struct mk_pool *p)
{
    mk_discovery_drain(p->discovery);
    mk_upstream_stats_drain(&p->stats, &p->upstreams->former);
    follow_serving_config(p);
    for (unsigned i = 0; i < p->upstreams->n_servers; i++) {
        mk_health_check_stop(p->backends[i].check);
        p->backends[i].check = NULL;
    }
}

void mk_pool_stop(struct mk_pool *p)
{
    mk_discovery_stop(p->discovery);
    if (p->row < MK_UPSTREAM_WORKERS) {
        mk_dynamic_host_free_all(p);
        for (unsigned i = 0; i < p->upstreams->n_servers; i++)
            mk_backend_close(p, &p->backends[i]);
        if (!mk_list_empty(&p->unflushed))
            p->http2->flush(p); /* frees failed sessions */
        mk_conn_limit_release_row(&p->limit, p->row);
    }
    mk_watcher_free(p->wakes);
    mk_thread_pool_free(p->threads);
    mk_thread_pool_free(p->host_threads);
    mk_deferred_free(p->end);
    mk_timer_stop(&p->timer);
    mk_server_control_free_names(p);
    mk_freelist_fini(&p->conns);
    mk_freelist_fini(&p->blocks);
    mk_mem_free(p->http2_scratch);
    mk_mem_free(p->backends);
    mk_mem_free(p->sets);
    mk_mem_free(p);
}
