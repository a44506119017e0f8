/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/pool.h"

#include <errno.h>

#include "event/tls.h"
#include "upstream/balance.h"
#include "upstream/cancelled_conn.h"
#include "upstream/client_share.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/health_check.h"
#include "upstream/wait_queue.h"

enum { SWEEP_MS = 1000, LOOKUPS = 4 };

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static void update_conn_counts(struct mk_backend *o, int open, int idle)
{
    o->n_open += (unsigned)open;
    o->n_idle += (unsigned)idle;
    STORE(o->shown_idle, o->n_idle);
    if (!o->cells)
        return;
    mk_stat_set(&o->cells[MK_UPSTREAM_STATS_BUSY], o->n_open - o->n_idle);
    mk_stat_set(&o->cells[MK_UPSTREAM_STATS_IDLE], o->n_idle);
}

/* ---- Sweeping: timeouts of waiting requests and idle connections ---- */

/* Schedules a sweep; an earlier one stays scheduled. */
static void schedule_sweep(struct mk_pool *p, uint32_t ms)
{
    uint64_t at = mk_worker_now_ms(p->worker) + ms;
    if (p->sweeps_at_ms && p->sweeps_at_ms <= at)
        return;
    p->sweeps_at_ms = at;
    mk_timer_set(&p->timer, p->worker, ms);
}

/* Schedules a sweep at a point in time; UINT64_MAX: no sweep. */
static void schedule_sweep_at(struct mk_pool *p, uint64_t now, uint64_t at)
{
    if (at != UINT64_MAX)
        schedule_sweep(p, at > now ? (uint32_t)(at - now) : 1);
}

void mk_pool_schedule_sweep(struct mk_pool *p)
{
    schedule_sweep(p, SWEEP_MS);
}

/* ---- Connections ---- */

static void close_conn(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    if (c->has_slot)
        mk_conn_limit_release_slot(&o->pool->limit, o->server->stats_slot, c->slot);
    update_conn_counts(o, -1, 0);
    mk_upstream_conn_close(c);
}

static void free_conn(struct mk_upstream_conn *c)
{
    mk_freelist_push(&c->set->pool->conns, c);
}

static void close_and_free_conn(struct mk_upstream_conn *c)
{
    close_conn(c);
    free_conn(c);
}

static void remove_conn_from_idle(struct mk_upstream_conn *c)
{
    mk_list_remove(&c->backend_link);
    update_conn_counts(c->backend, 0, -1);
}

static void on_idle_conn_event(void *ctx, unsigned which)
{
    struct mk_upstream_conn *c = ctx;
    struct mk_backend *o = c->backend;
    if (mk_upstream_conn_is_harmless_event(c, which))
        return;
    remove_conn_from_idle(c); /* closed by the server, or unsolicited data */
    close_and_free_conn(c);
    mk_wait_queue_wake_older(o);
}

/* Hands the connected socket to its request. */
static void hand_conn_to_request(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        mk_upstream_conn_set_user_callback(c);
    mk_list_add_last(&o->lent, &c->backend_link);
    c->chosen = o->server->index;
    if (o->cells)
        mk_stat_add(&o->cells[MK_UPSTREAM_STATS_REQUESTS], 1);
}

static void hand_idle_conn_to_request(struct mk_upstream_conn *idle, struct mk_upstream_conn *to)
{
    mk_upstream_conn_take_socket(to, idle);
    free_conn(idle);
    hand_conn_to_request(to);
}

/* Does the server still have the address of this connection? DNS may have changed. */
static bool is_addr_current(struct mk_upstream_conn *c)
{
    const struct mk_resolver *names = &c->backend->names;
    if (c->names_version != names->version && !mk_resolver_has_addr(names, &c->to))
        return false;
    c->names_version = names->version;
    return true;
}

static void push_idle_conn(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    c->backend_link.next = o->idle.next;
    c->backend_link.prev = &o->idle;
    o->idle.next->prev = &c->backend_link;
    o->idle.next = &c->backend_link;
    update_conn_counts(o, 0, 1);
}

/* Pops the most recently used idle connection, which the server is least likely to close. */
static struct mk_upstream_conn *pop_idle_conn(struct mk_backend *o)
{
    if (mk_list_empty(&o->idle))
        return NULL;
    struct mk_upstream_conn *c = MK_LIST_ENTRY(o->idle.next, struct mk_upstream_conn, backend_link);
    remove_conn_from_idle(c);
    return c;
}

/* Tries the server's addresses in turn as long as they fail immediately. */
static int connect_to_server(struct mk_backend *o, struct mk_upstream_conn *c)
{
    int e = -EHOSTUNREACH;
    for (unsigned i = 0; e && i < o->names.n; i++) {
        const struct mk_sockaddr *to = mk_resolver_next_addr(&o->names);
        e = mk_upstream_conn_connect(c, o->server, to, o->pool->worker, &o->session);
        if (mk_health_is_local_shortage(e))
            break;
        if (e)
            (void)mk_resolver_mark_failed(&o->names, to);
    }
    c->names_version = o->names.version;
    return e;
}

/* Acquires a slot of the connection limit; if a new connection is required and no slot is free, closes an
 * idle connection for it. */
static bool acquire_slot(struct mk_backend *o, const struct mk_conn_limit_rule *rule, unsigned *slot)
{
    const struct mk_conn_limit *limit = &o->pool->limit;
    if (!rule->max || mk_conn_limit_acquire_slot(limit, rule->backend, rule->max, o->pool->row, slot))
        return true;
    struct mk_upstream_conn *idle = pop_idle_conn(o);
    if (!idle)
        return false;
    close_and_free_conn(idle);
    return mk_conn_limit_acquire_slot(limit, rule->backend, rule->max, o->pool->row, slot);
}

/* Pops an idle connection that this client may use. */
static struct mk_upstream_conn *pop_idle_for_client(struct mk_backend *o,
                                                    const struct mk_conn_limit_rule *rule,
                                                    const struct mk_upstream_conn *l)
{
    struct mk_upstream_conn *c = l->options.fresh ? NULL : pop_idle_conn(o);
    if (!c || !c->has_slot || mk_conn_limit_assign_slot(&o->pool->limit, rule, c->slot, l->client))
        return c;
    push_idle_conn(c);
    return NULL;
}

void mk_pool_report_failure(struct mk_backend *o, int error, const char *message)
{
    if (mk_health_report_failure(o->pool->worker, o->server, error, message))
        mk_failover_broadcast(o);
    mk_pool_schedule_sweep(o->pool);
}

static struct mk_conn_limit_rule limit_rule_of(const struct mk_backend *o)
{
    return o->server->upstream->max ? mk_client_share_limit_rule(o) : (struct mk_conn_limit_rule){.max = 0};
}

/* Acquires a connection to one backend. -EBUSY: no slot is free, or other requests come first; -EAGAIN: the
 * name of the server is being resolved. */
static int acquire_from_backend(struct mk_backend *o, struct mk_upstream_conn *l)
{
    const struct mk_conn_limit_rule rule = limit_rule_of(o);
    const struct mk_conn_limit *limit = &o->pool->limit;
    unsigned slot = 0;
    if (rule.max && mk_conn_limit_is_share_used_up(limit, &rule, l->client)) {
        l->is_held_back = true;
        return -EBUSY;
    }
    if (!mk_wait_queue_is_first(o, l))
        return -EBUSY;
    struct mk_upstream_conn *c = pop_idle_for_client(o, &rule, l);
    int e = 0;
    if (c) {
        hand_idle_conn_to_request(c, l);
        return 0;
    }
    if (!o->names.n)
        return -EAGAIN;
    if (!acquire_slot(o, &rule, &slot))
        return -EBUSY;
    if (rule.max && !mk_conn_limit_assign_slot(limit, &rule, slot, l->client)) {
        mk_conn_limit_release_slot(limit, rule.backend, slot);
        mk_wait_queue_wake_older(o); /* an older request may have looked for a slot while we held this one */
        return -EBUSY;
    }
    e = connect_to_server(o, l);
    if (e) {
        if (rule.max)
            mk_conn_limit_release_slot(limit, rule.backend, slot);
        mk_wait_queue_wake_older(o);
        l->chosen = o->server->index;
        if (!mk_health_is_local_shortage(e))
            mk_pool_report_failure(o, e, NULL);
        return e;
    }
    l->backend = o;
    l->has_slot = rule.max > 0;
    l->slot = slot;
    update_conn_counts(o, 1, 0);
    hand_conn_to_request(l);
    return 0;
}

int mk_pool_connect_to_addr(struct mk_backend_set *g, struct mk_upstream_conn *l)
{
    struct mk_backend *o = &g->backends[0];
    struct mk_sockaddr to;
    int e = mk_resolver_parse_addr(l->options.address, &to) ? 0 : -EINVAL;
    e = e ? e : mk_upstream_conn_connect(l, o->server, &to, o->pool->worker, &o->session);
    if (e)
        return e;
    l->backend = o;
    update_conn_counts(o, 1, 0);
    hand_conn_to_request(l);
    l->chosen = -1;
    return 0;
}

static void exclude_server(struct mk_upstream_conn *l, uint64_t bit)
{
    l->options.tried |= bit;
    if (l->waits_since_ms)
        mk_wait_queue_publish(l->set);
}

int mk_pool_acquire(struct mk_backend_set *g, struct mk_upstream_conn *l)
{
    uint64_t avoid = 0;
    bool waits = false;
    int error = l->error ? l->error : -EHOSTUNREACH;
    l->is_held_back = false;
    for (unsigned i = 0; i < g->upstream->n; i++)
        if (!g->backends[i].names.is_fixed)
            mk_resolver_refresh(&g->backends[i].names);
    for (;;) {
        struct mk_backend *o = mk_balance_choose(g, &l->options, avoid);
        if (!o)
            return waits ? -EAGAIN : error;
        uint64_t bit = UINT64_C(1) << o->server->index;
        int e = acquire_from_backend(o, l);
        if (e == 0)
            return 0;
        avoid |= bit;
        if (e == -EBUSY || e == -EAGAIN) {
            waits = true;
        } else {
            error = e;
            if (!mk_health_is_local_shortage(e))
                exclude_server(l, bit);
        }
    }
}

/* Releases an idle connection for another worker's waiting request. Each worker publishes its idle
 * connections and waiting requests before it reads those of other workers: if two workers do so at the same
 * time, at least one sees the other. */
static void yield_idle_conn_of_backend(struct mk_backend *o)
{
    if (!o->server->upstream->max || mk_list_empty(&o->idle))
        return;
    if (!mk_wait_queue_has_older_elsewhere(o)) {
        mk_conn_limit_wake_unpublished(&o->pool->limit, o->server->stats_slot, o->pool->row);
        return;
    }
    close_and_free_conn(pop_idle_conn(o));
    mk_wait_queue_wake_older(o);
}

static void yield_idle_conns(struct mk_backend_set *g)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < g->upstream->n; i++)
        yield_idle_conn_of_backend(&g->backends[i]);
}

/* ---- Waiting ---- */

static void remove_from_queue(struct mk_upstream_conn *l)
{
    mk_list_remove(&l->link);
    l->set->n_waiting--;
    l->waits_since_ms = 0;
    mk_wait_queue_publish(l->set);
}

static void schedule_queue_deadline(struct mk_backend_set *g)
{
    uint64_t now = mk_clock_ms();
    schedule_sweep_at(g->pool, now, mk_wait_queue_next_check_ms(g, now));
}

/* Once a client's share is used up, its other requests are skipped. */
static void serve_own_queue(struct mk_backend_set *g)
{
    uint64_t held_back = 0;
    MK_LIST_EACH_SAFE (at, &g->waiting) {
        struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (held_back && l->client == held_back)
            continue;
        int e = mk_pool_acquire(g, l);
        if (e == -EAGAIN && mk_wait_queue_may_use_any_server(l) && !l->is_held_back)
            return;
        if (e == -EAGAIN && mk_wait_queue_may_use_any_server(l))
            held_back = l->client;
        if (e == -EAGAIN)
            continue;
        l->error = e;
        remove_from_queue(l);
        mk_wait_queue_notify(g->pool, l);
    }
}

/* Serves the queue; slots that our requests do not use go to other workers. */
static void serve_queue(struct mk_backend_set *g)
{
    if (!g->n_waiting)
        return;
    unsigned before = g->n_waiting;
    serve_own_queue(g);
    mk_wait_queue_wake_for_free_slots(g, g->n_waiting != before);
    mk_wait_queue_request_idle_conns(g);
    schedule_queue_deadline(g);
}

int mk_pool_enqueue(struct mk_backend_set *g, struct mk_upstream_conn *l)
{
    if (g->n_waiting >= g->upstream->settings->queue_max || !mk_wait_queue_has_room_for(g, l))
        return -EBUSY;
    l->waits_since_ms = mk_clock_ms();
    mk_list_add_last(&g->waiting, &l->link);
    g->n_waiting++;
    mk_wait_queue_publish(g);
    yield_idle_conns(g);
    serve_queue(g); /* a slot may have become free before the others could see this request */
    return l->waits_since_ms ? -EAGAIN : l->error;
}

void mk_pool_dequeue(struct mk_upstream_conn *l)
{
    struct mk_backend_set *g = l->set;
    remove_from_queue(l);
    mk_wait_queue_wake_for_free_slots(g, true); /* the request may have blocked others */
}

/* Called when a connection was closed, whose slot waiting requests may use. */
static void serve_queues_of_backend(struct mk_backend *o)
{
    mk_wait_queue_wake_older(o);
    serve_queue(mk_wait_queue_set(o));
}

static void on_cancelled_conn_event(void *ctx, unsigned which)
{
    struct mk_upstream_conn *c = ctx;
    struct mk_backend *o = c->backend;
    mk_upstream_conn_note_event(c, which);
    if (!(which & MK_HUNG_UP) && mk_cancelled_conn_discard_input(c))
        return;
    close_and_free_conn(c);
    serve_queues_of_backend(o);
}

static bool may_keep_conn_idle(const struct mk_upstream_conn *c)
{
    const struct mk_backend *o = c->backend;
    return o->n_idle < o->server->upstream->keep;
}

static void keep_conn_idle(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_IDLE);
    c->idle_since_ms = mk_worker_now_ms(o->pool->worker);
    mk_upstream_conn_set_callback(c, on_idle_conn_event, c);
    push_idle_conn(c);
    mk_pool_schedule_sweep(o->pool);
}

/* Hands the connection to the first waiting request that can use it. If that request needs a new
 * connection, it takes over this connection's slot: otherwise, later waiters overtake it (starvation). */
static bool reuse_conn(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    struct mk_upstream_conn *taker = mk_wait_queue_first_for_backend(o);
    if (taker && taker->options.fresh)
        return false;
    const struct mk_conn_limit_rule rule = limit_rule_of(o);
    bool may_take = taker && mk_wait_queue_is_first(o, taker);
    if (may_take &&
        (!c->has_slot || mk_conn_limit_assign_slot(&o->pool->limit, &rule, c->slot, taker->client))) {
        remove_from_queue(taker);
        hand_idle_conn_to_request(c, taker);
        mk_wait_queue_notify(o->pool, taker);
        mk_wait_queue_wake_if_available(o);
        return true;
    }
    if (!may_keep_conn_idle(c))
        return false;
    keep_conn_idle(c);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    yield_idle_conn_of_backend(o);
    return true;
}

static void detach_conn_from_request(struct mk_upstream_conn *c)
{
    c->was_used = true;
    mk_list_remove(&c->backend_link);
}

void mk_pool_release(struct mk_upstream_conn *c, bool clean)
{
    struct mk_backend *o = c->backend;
    detach_conn_from_request(c);
    if (c->has_slot)
        mk_conn_limit_unassign_slot(&o->pool->limit, o->server->stats_slot, c->slot);
    if (clean && c->state.current == MK_UPSTREAM_CONN_OPEN && is_addr_current(c) && reuse_conn(c))
        return;
    close_and_free_conn(c);
    serve_queues_of_backend(o);
}

void mk_pool_close_conn(struct mk_upstream_conn *c)
{
    if (c->has_slot)
        mk_conn_limit_unassign_slot(&c->backend->pool->limit, c->backend->server->stats_slot, c->slot);
    close_conn(c);
    serve_queues_of_backend(c->backend);
}

void mk_pool_release_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams)
{
    struct mk_backend *o = c->backend;
    if (!c->has_slot || !mk_cancelled_conn_start(c, ms, streams)) {
        mk_pool_release(c, false);
        return;
    }
    detach_conn_from_request(c);
    mk_upstream_conn_set_callback(c, on_cancelled_conn_event, c);
    mk_list_add_last(&o->abandoned, &c->backend_link);
    schedule_sweep_at(o->pool, mk_worker_now_ms(o->pool->worker), mk_cancelled_conn_next_expiry_ms(o));
}

/* Another worker woke us: a slot may be free for our queue, or a request of that worker needs an idle
 * connection of ours. */
static void handle_wake_of_backend_set(struct mk_backend_set *g)
{
    if (g->n_waiting)
        mk_wait_queue_publish(g); /* other workers may have used up or released a share */
    yield_idle_conns(g);
    serve_queue(g);
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

/* Returns whether the server is up. */
static bool publish_health(const struct mk_backend *o)
{
    return mk_health_publish(o->server, o->names.n || !o->names.fresh_until_ms);
}

static void close_expired_idle(struct mk_backend *o, uint64_t now)
{
    while (!mk_list_empty(&o->idle)) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(o->idle.prev, struct mk_upstream_conn, backend_link);
        if (now - c->idle_since_ms < o->server->upstream->idle_ms)
            return;
        remove_conn_from_idle(c);
        close_and_free_conn(c);
    }
}

static void close_expired_cancelled(struct mk_backend *o)
{
    struct mk_upstream_conn *c;
    while ((c = mk_cancelled_conn_find_expired(o))) {
        close_and_free_conn(c);
        serve_queues_of_backend(o);
    }
    schedule_sweep_at(o->pool, mk_worker_now_ms(o->pool->worker), mk_cancelled_conn_next_expiry_ms(o));
}

static void fail_expired_waiters(struct mk_backend_set *g, uint64_t now)
{
    struct mk_upstream_conn *l;
    while ((l = mk_wait_queue_first(g)) && now - l->waits_since_ms >= g->upstream->settings->queue_ms) {
        l->error = -EBUSY;
        remove_from_queue(l);
        mk_wait_queue_notify(g->pool, l);
    }
}

/* Also looks for dead workers, because without a master, nothing reports that a worker has died. */
static void sweep_queue(struct mk_backend_set *g)
{
    mk_conn_limit_free_dead_rows(&g->pool->limit, g->pool->row);
    fail_expired_waiters(g, mk_clock_ms());
    handle_wake_of_backend_set(g);
}

static void sweep_pool(struct mk_timer *t)
{
    struct mk_pool *p = MK_CONTAINER(t, struct mk_pool, timer);
    bool has_more = false;
    p->sweeps_at_ms = 0;
    for (unsigned i = 0; i < p->upstreams->n_servers; i++) {
        struct mk_backend *o = &p->backends[i];
        close_expired_idle(o, mk_worker_now_ms(p->worker));
        close_expired_cancelled(o);
        has_more |= !publish_health(o) || o->n_idle > 0;
    }
    for (unsigned i = 0; i < p->upstreams->n; i++) {
        struct mk_backend_set *g = &p->sets[i];
        if (g->n_waiting)
            sweep_queue(g);
    }
    if (has_more)
        schedule_sweep(p, SWEEP_MS);
}

/* ---- The life of a worker ---- */

static void on_addresses_changed(struct mk_resolver *n)
{
    struct mk_backend *o = MK_CONTAINER(n, struct mk_backend, names);
    mk_health_publish(o->server, n->n > 0);
    MK_LIST_EACH_SAFE (at, &o->idle) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (is_addr_current(c))
            continue;
        remove_conn_from_idle(c);
        close_and_free_conn(c);
    }
    mk_wait_queue_publish(mk_wait_queue_set(o)); /* our requests may be waiting for the server's address */
    mk_wait_queue_wake_older(o);
    serve_queue(mk_wait_queue_set(o));
}

/* Creates a separate thread pool for name resolution, so that an unresponsive name server cannot block the
 * shared one. */
static bool ensure_resolver_threads(struct mk_pool *p)
{
    if (!p->threads)
        p->threads = mk_thread_pool_new(p->worker, LOOKUPS, MK_UPSTREAM_SERVERS);
    return p->threads;
}

static bool open_backend(struct mk_pool *p, struct mk_backend *o, const struct mk_upstream_server *s)
{
    o->pool = p;
    o->server = s;
    mk_list_init(&o->idle);
    mk_list_init(&o->lent);
    mk_list_init(&o->abandoned);
    mk_resolver_init(&o->names, s, p->worker, on_addresses_changed);
    if (!o->names.is_fixed && !ensure_resolver_threads(p))
        return false;
    o->names.threads = p->threads;
    o->shown_idle = &p->stats.memory->idle[s->stats_slot][p->row];
    o->cells = mk_worker_cells(p->worker, mk_upstream_stats_health(&p->stats, s->stats_slot)->series);
    mk_resolver_refresh(&o->names);
    publish_health(o); /* another configuration may have published a different state */
    if (!s->upstream->settings->check.len || mk_worker_index(p->worker) != 0)
        return true;
    o->check = mk_health_check_start(o, mk_failover_broadcast);
    return o->check;
}

static bool open_backend_set(struct mk_pool *p, struct mk_backend_set *g, const struct mk_upstream *u,
                             struct mk_backend *backends)
{
    bool ok = true;
    *g = (struct mk_backend_set){.pool = p, .upstream = u, .backends = backends};
    mk_list_init(&g->waiting);
    for (unsigned i = 0; i < u->n; i++)
        ok &= open_backend(p, &backends[i], &u->servers[i]);
    return ok;
}

static bool watch_wake_fd(struct mk_pool *p)
{
    int event = mk_conn_limit_wake_fd(&p->limit, p->row);
    for (unsigned i = 0; i < p->upstreams->n; i++)
        mk_wait_queue_wake_all(&p->sets[i]); /* requests may have waited for this configuration's limit */
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
    p->end = mk_deferred_new(p->worker, mk_wait_queue_run_notifications, p);
    if (!p->sets || !p->backends || !p->end)
        return -ENOMEM;
    if (!mk_conn_limit_acquire_row(&p->limit, &p->row))
        return -EAGAIN;
    struct mk_backend *backends = p->backends;
    bool ok = true;
    for (const struct mk_upstream *u = all->first; u; u = u->next) {
        ok &= open_backend_set(p, &p->sets[u->index], u, backends);
        backends += u->n;
    }
    return ok && watch_wake_fd(p) ? 0 : -ENOMEM;
}

int mk_pool_start(struct mk_pool **out, struct mk_worker *w, const struct mk_upstreams *all)
{
    struct mk_pool *p = mk_mem_zalloc(1, sizeof *p);
    *out = p;
    if (!p)
        return -ENOMEM;
    p->worker = w;
    p->upstreams = all;
    p->stats = all->stats;
    p->limit = all->limit;
    p->row = MK_UPSTREAM_WORKERS;
    p->conns.size = sizeof(struct mk_upstream_conn);
    p->blocks.size = MK_POOL_BLOCK;
    mk_list_init(&p->changed);
    int e = open_pool(p);
    if (e)
        mk_pool_stop(p);
    return e;
}

static void close_backend(struct mk_pool *p, struct mk_backend *o)
{
    struct mk_upstream_conn *c;
    mk_health_check_stop(o->check);
    while ((c = pop_idle_conn(o)))
        close_and_free_conn(c);
    while (!mk_list_empty(&o->abandoned))
        close_and_free_conn(MK_LIST_ENTRY(o->abandoned.next, struct mk_upstream_conn, backend_link));
    mk_wait_queue_wake_older(o);
    mk_resolver_fini(&o->names);
    if (o->session)
        p->upstreams->tls->session_free(o->session);
}

void mk_pool_stop(struct mk_pool *p)
{
    if (p->row < MK_UPSTREAM_WORKERS) {
        for (unsigned i = 0; i < p->upstreams->n_servers; i++)
            close_backend(p, &p->backends[i]);
        mk_conn_limit_release_row(&p->limit, p->row);
    }
    mk_watcher_free(p->wakes);
    mk_thread_pool_free(p->threads);
    mk_deferred_free(p->end);
    mk_timer_stop(&p->timer);
    mk_freelist_fini(&p->conns);
    mk_freelist_fini(&p->blocks);
    mk_mem_free(p->backends);
    mk_mem_free(p->sets);
    mk_mem_free(p);
}

/* ---- Shared by the requests of a worker ---- */

struct mk_freelist *mk_pool_request_freelist(const struct mk_upstream *u, struct mk_worker *w)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    return &p->blocks;
}

void mk_pool_count_request(const struct mk_upstream_conn *c)
{
    mk_retry_budget_count_request(&c->set->retry, mk_worker_now_ms(c->set->pool->worker));
}

bool mk_pool_may_retry(struct mk_upstream *u, struct mk_worker *w)
{
    struct mk_pool *p = mk_worker_data(w, u->all->plugin);
    return mk_retry_budget_try_spend(&p->sets[u->index].retry, mk_worker_now_ms(w),
                                     u->settings->retry_percent);
}
