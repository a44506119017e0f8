/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/backend_set.h"

#include "event/tls.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/health_check.h"
#include "upstream/http2.h"
#include "upstream/pool.h"
#include "upstream/wait_queue.h"

enum { LOOKUPS = 4 };

/* A draining worker has older settings than the workers that serve: its view of the server's health, and the results of
 * its checks, must not replace theirs. */
static bool is_draining(const struct mk_backend *o)
{
    return mk_worker_is_draining(o->pool->worker);
}

bool mk_backend_publish_health(const struct mk_backend *o)
{
    return !o->server->name.p || is_draining(o) ||
           mk_health_publish(o->server, o->names.n || !o->names.fresh_until_ms);
}

static void on_addresses_changed(struct mk_resolver *n)
{
    struct mk_backend *o = MK_CONTAINER(n, struct mk_backend, names);
    if (!is_draining(o))
        mk_health_publish(o->server, n->n > 0);
    MK_LIST_EACH_SAFE (at, &o->idle) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (mk_pool_is_addr_current(c))
            continue;
        mk_pool_remove_idle(c);
        mk_pool_close_conn(c);
    }
    if (!mk_list_empty(&o->http2_sessions))
        o->pool->http2->drain_stale(o);
    mk_wait_queue_publish(mk_wait_queue_set(o)); /* our requests may be waiting for the server's address */
    mk_wait_queue_wake_older(o);
    mk_pool_serve_queue(mk_wait_queue_set(o));
}

/* Creates a separate thread pool for name resolution, so that an unresponsive name server cannot block the
 * shared one. */
static bool ensure_resolver_threads(struct mk_pool *p, struct mk_thread_pool **threads)
{
    if (!*threads)
        *threads = mk_thread_pool_new(p->worker, LOOKUPS, MK_UPSTREAM_SERVERS);
    return *threads;
}

bool mk_backend_open(struct mk_pool *p, struct mk_backend *o, const struct mk_upstream_server *s)
{
    struct mk_thread_pool **threads = o->total ? &p->host_threads : &p->threads;
    o->pool = p;
    o->server = s;
    o->mode = &p->stats.admin[s->stats_slot].mode;
    o->shown_idle = &p->stats.memory->idle[s->stats_slot][p->row];
    mk_list_init(&o->idle);
    mk_list_init(&o->lent);
    mk_list_init(&o->cancelled);
    mk_list_init(&o->http2_sessions);
    if (!s->name.p) { /* room for a server that the administrator may add */
        o->names = (struct mk_resolver){.server = s, .is_fixed = true};
        return true;
    }
    mk_resolver_init(&o->names, s, p->worker, on_addresses_changed);
    if (!o->names.is_fixed && !ensure_resolver_threads(p, threads))
        return false;
    o->names.threads = *threads;
    o->cells = mk_worker_cells(p->worker, mk_upstream_stats_health(&p->stats, s->stats_slot)->series);
    mk_resolver_refresh(&o->names);
    mk_backend_publish_health(o); /* another configuration may have published a different state */
    if (!s->upstream->settings->check.len || mk_worker_index(p->worker) != 0 || is_draining(o))
        return true;
    o->check = mk_health_check_start(o, mk_failover_broadcast);
    return o->check;
}

bool mk_backend_set_open(struct mk_pool *p, struct mk_backend_set *g, const struct mk_upstream *u,
                         struct mk_backend *backends)
{
    bool ok = true;
    *g = (struct mk_backend_set){.pool = p, .upstream = u, .backends = backends};
    mk_list_init(&g->waiting);
    for (unsigned i = 0; i < u->n; i++) {
        backends[i].set = g;
        ok &= mk_backend_open(p, &backends[i], &u->servers[i]);
    }
    return ok;
}

void mk_backend_close(struct mk_pool *p, struct mk_backend *o)
{
    struct mk_upstream_conn *c;
    mk_health_check_stop(o->check);
    while ((c = mk_pool_pop_idle(o)))
        mk_pool_close_conn(c);
    while (!mk_list_empty(&o->cancelled))
        mk_pool_close_conn(MK_LIST_ENTRY(o->cancelled.next, struct mk_upstream_conn, backend_link));
    if (!mk_list_empty(&o->http2_sessions))
        p->http2->close_all(o);
    mk_wait_queue_wake_older(o);
    mk_resolver_fini(&o->names);
    if (o->session)
        p->upstreams->tls->session_free(o->session);
}
