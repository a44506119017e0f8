/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/pool.h"

#include <errno.h>

#include "upstream/balance.h"
#include "upstream/cancelled_conn.h"
#include "upstream/client_share.h"
#include "upstream/discovery_type.h"
#include "upstream/failover.h"
#include "upstream/health.h"
#include "upstream/http2.h"
#include "upstream/wait_queue.h"

enum { SWEEP_MS = 1000 };

#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static void update_conn_counts(struct mk_backend *o, int open, int idle)
{
    o->n_open += (unsigned)open;
    o->n_idle += (unsigned)idle;
    if (o->total) {
        update_conn_counts(o->total, open, idle);
        return;
    }
    STORE(o->shown_idle, o->n_idle);
    if (!o->cells)
        return;
    mk_stat_set(&o->cells[MK_UPSTREAM_STATS_BUSY], o->n_open - o->n_idle);
    mk_stat_set(&o->cells[MK_UPSTREAM_STATS_IDLE], o->n_idle);
}

/* ---- Sweeping: timeouts of waiting requests and idle connections ---- */

/* Schedules a sweep after `ms`, unless an earlier one is scheduled. */
static void schedule_sweep(struct mk_pool *p, uint32_t ms)
{
    uint64_t at = mk_worker_now_ms(p->worker) + ms;
    if (p->sweeps_at_ms && p->sweeps_at_ms <= at)
        return;
    p->sweeps_at_ms = at;
    mk_timer_set(&p->timer, p->worker, ms);
}

void mk_pool_schedule_sweep_at(struct mk_pool *p, uint64_t now, uint64_t at)
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
    if (c->slot != MK_UPSTREAM_CONN_NO_SLOT)
        mk_conn_limit_release_slot(&o->pool->limit, o->server->stats_slot, c->slot);
    update_conn_counts(o, -1, 0);
    mk_upstream_conn_close(c);
}

static void free_conn(struct mk_upstream_conn *c)
{
    c->set->n_conns--;
    mk_freelist_push(&c->set->pool->conns, c);
}

void mk_pool_close_conn(struct mk_upstream_conn *c)
{
    close_conn(c);
    free_conn(c);
}

void mk_pool_remove_idle(struct mk_upstream_conn *c)
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
    mk_pool_remove_idle(c); /* closed by the server, or unsolicited data */
    mk_pool_close_conn(c);
    mk_wait_queue_wake_older(o);
}

MK_COLD static void record_attempt(struct mk_upstream_conn *c, struct mk_attempt *attempt)
{
    mk_conn_attempt_begin(c, attempt, mk_upstream_conn_server_name(c));
}

static inline void begin_attempt(struct mk_upstream_conn *c)
{
    struct mk_attempt *a = c->options.request ? mk_request_add_attempt(c->options.request) : NULL;
    if (MK_UNLIKELY(a != NULL))
        record_attempt(c, a);
}

/* Hands the connection, which may still be connecting, to its request. */
static void hand_conn_to_request(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        c->on_connect_end = NULL;
    mk_list_add_last(&o->lent, &c->backend_link);
    c->chosen = o->server->index;
    begin_attempt(c);
    if (o->cells)
        mk_stat_add(&o->cells[MK_UPSTREAM_STATS_REQUESTS], 1);
}

static void hand_idle_conn_to_request(struct mk_upstream_conn *idle, struct mk_upstream_conn *to)
{
    mk_upstream_conn_take_socket(to, idle);
    free_conn(idle);
    hand_conn_to_request(to);
}

bool mk_pool_is_addr_current(struct mk_upstream_conn *c)
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

struct mk_upstream_conn *mk_pool_pop_idle(struct mk_backend *o)
{
    if (mk_list_empty(&o->idle))
        return NULL;
    struct mk_upstream_conn *c = MK_LIST_ENTRY(o->idle.next, struct mk_upstream_conn, backend_link);
    mk_pool_remove_idle(c);
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

/* Does the request use a stream of HTTP/2? */
static bool uses_http2(const struct mk_backend *o, const struct mk_upstream_conn *c)
{
    return mk_upstream_http2_is_wanted(o->server->upstream, &c->options);
}

static int connect_or_attach(struct mk_backend *o, struct mk_upstream_conn *c)
{
    return MK_UNLIKELY(uses_http2(o, c)) ? o->pool->http2->attach(o, c, connect_to_server)
                                         : connect_to_server(o, c);
}

/* Acquires a slot of the connection limit for a new connection. If no slot is free, closes an idle connection
 * to free one. */
static bool acquire_slot(struct mk_backend *o, const struct mk_conn_limit_rule *rule, unsigned *slot)
{
    const struct mk_conn_limit *limit = &o->pool->limit;
    if (!rule->max || mk_conn_limit_acquire_slot(limit, rule->backend, rule->max, o->pool->row, slot))
        return true;
    struct mk_upstream_conn *idle = mk_pool_pop_idle(o);
    if (!idle)
        return false;
    mk_pool_close_conn(idle);
    return mk_conn_limit_acquire_slot(limit, rule->backend, rule->max, o->pool->row, slot);
}

/* Assigns the slot of the connection, if it has one, to the client of the request. False: the client's share is used up. */
static bool may_use_slot(struct mk_backend *o, const struct mk_conn_limit_rule *rule,
                         const struct mk_upstream_conn *c, const struct mk_upstream_conn *l)
{
    return c->slot == MK_UPSTREAM_CONN_NO_SLOT ||
           mk_conn_limit_assign_slot(&o->pool->limit, rule, c->slot, l->client);
}

/* Pops an idle connection that this client may use. */
static struct mk_upstream_conn *pop_idle_for_client(struct mk_backend *o,
                                                    const struct mk_conn_limit_rule *rule,
                                                    const struct mk_upstream_conn *l)
{
    struct mk_upstream_conn *c = l->options.fresh || uses_http2(o, l) ? NULL : mk_pool_pop_idle(o);
    if (!c || may_use_slot(o, rule, c, l))
        return c;
    push_idle_conn(c);
    return NULL;
}

/* Reports a failure of the server. `message`: static text; NULL: the text of `error`. */
static void report_failure(struct mk_backend *o, int error, const char *message)
{
    if (o->total) /* the request reports the failure */
        return;
    if (mk_health_report_failure(o->pool->worker, o->server, error, message))
        mk_failover_broadcast(o);
    mk_pool_schedule_sweep(o->pool);
}

static struct mk_conn_limit_rule limit_rule_of(const struct mk_backend *o)
{
    return o->server->upstream->max ? mk_client_share_limit_rule(o) : (struct mk_conn_limit_rule){.max = 0};
}

/* Acquires a connection to one backend. -EBUSY: no slot is free, the client's share is used up, or other
 * requests come first; -EAGAIN: the name of the server is being resolved. */
static int acquire_from_backend(struct mk_backend *o, struct mk_upstream_conn *l)
{
    const struct mk_conn_limit_rule rule = limit_rule_of(o);
    const struct mk_conn_limit *limit = &o->pool->limit;
    unsigned slot = MK_UPSTREAM_CONN_NO_SLOT;
    if (rule.max && mk_conn_limit_is_share_used_up(limit, &rule, l->client)) {
        l->is_held_back = true;
        return -EBUSY;
    }
    if (!mk_wait_queue_is_first(o, &rule, l))
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
    e = connect_or_attach(o, l);
    if (e) {
        if (rule.max)
            mk_conn_limit_release_slot(limit, rule.backend, slot);
        mk_wait_queue_wake_older(o);
        l->chosen = o->server->index;
        begin_attempt(l);
        mk_conn_attempt_end(l, e);
        if (!mk_health_is_local_shortage(e))
            report_failure(o, e, NULL);
        return e;
    }
    l->backend = o;
    l->slot = slot;
    update_conn_counts(o, 1, 0);
    hand_conn_to_request(l);
    return 0;
}

static int connect_to_addr(struct mk_backend_set *g, struct mk_upstream_conn *l)
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

/* A single server needs no balancing: it is used even if requests to it have failed. NULL: no server is
 * usable. */
static struct mk_backend *choose_backend(struct mk_backend_set *g, const struct mk_upstream_conn *l,
                                         uint64_t avoid)
{
    if (g->upstream->n > 1)
        return mk_balance_choose(g, &l->options, avoid);
    struct mk_backend *only = &g->backends[0];
    return mk_balance_may_try(only, avoid | l->options.tried, l->options.server == 0) ? only : NULL;
}

/* The error if the set has no usable server. */
static int no_server_error(const struct mk_backend_set *g)
{
    const struct mk_backend *o = &g->backends[0];
    return o->total && !o->names.n && o->names.error ? o->names.error : -EHOSTUNREACH;
}

/* Will the upstream have a server soon? Its sources are looked up for the first time, or a server was added whose backend
 * this worker opens when the message arrives. */
MK_COLD static bool expects_server(const struct mk_upstream *u)
{
    for (unsigned i = 0; i < u->n; i++)
        if (u->servers[i].is_spare && !u->servers[i].name.p &&
            mk_health_mode(&u->servers[i]) < MK_SERVER_REMOVED)
            return true;
    return mk_discovery_is_pending(u);
}

/* Acquires an idle or new connection to one of the servers that the request may use. -EAGAIN: the request
 * must wait. */
static int acquire_from_set(struct mk_backend_set *g, struct mk_upstream_conn *l)
{
    uint64_t avoid = 0;
    bool waits = false;
    int error = l->error ? l->error : no_server_error(g);
    l->is_held_back = false;
    for (unsigned i = 0; i < g->upstream->n; i++)
        if (!g->backends[i].names.is_fixed)
            mk_resolver_refresh(&g->backends[i].names);
    for (;;) {
        struct mk_backend *o = choose_backend(g, l, avoid);
        if (!o)
            return waits || expects_server(g->upstream) ? -EAGAIN : error;
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

/* Closes an idle connection if a waiting request of another worker needs its slot. Each worker publishes its
 * idle connections and waiting requests before it reads those of other workers: if two workers do so at the
 * same time, at least one sees the other. */
static void yield_idle_conn_of_backend(struct mk_backend *o)
{
    if (!o->server->upstream->max || mk_list_empty(&o->idle))
        return;
    if (!mk_wait_queue_has_older_elsewhere(o)) {
        mk_conn_limit_wake_unpublished(&o->pool->limit, o->server->stats_slot, o->pool->row);
        return;
    }
    mk_pool_close_conn(mk_pool_pop_idle(o));
    mk_wait_queue_wake_older(o);
}

void mk_pool_yield_idle(struct mk_backend_set *g)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < g->upstream->n; i++)
        yield_idle_conn_of_backend(&g->backends[i]);
}

/* ---- Waiting ---- */

static void notify_at_end(struct mk_pool *p, struct mk_upstream_conn *l)
{
    mk_list_remove(&l->changed);
    mk_list_add_last(&p->changed, &l->changed);
    mk_deferred_post(p->end);
}

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
    mk_pool_schedule_sweep_at(g->pool, now, mk_wait_queue_next_check_ms(g, now));
}

void mk_pool_end_wait(struct mk_upstream_conn *l, int error)
{
    l->error = error;
    remove_from_queue(l);
    notify_at_end(l->set->pool, l);
}

/* Once a client's share is used up, its remaining requests in the queue are skipped. */
static void serve_own_queue(struct mk_backend_set *g)
{
    uint64_t held_back = 0;
    MK_LIST_EACH_SAFE (at, &g->waiting) {
        struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (held_back && l->client == held_back)
            continue;
        int e = acquire_from_set(g, l);
        if (e == -EAGAIN && mk_wait_queue_may_use_any_server(l) && !l->is_held_back)
            return;
        if (e == -EAGAIN && mk_wait_queue_may_use_any_server(l))
            held_back = l->client;
        if (e == -EAGAIN)
            continue;
        mk_pool_end_wait(l, e);
    }
}

void mk_pool_serve_queue(struct mk_backend_set *g)
{
    if (!g->n_waiting)
        return;
    unsigned before = g->n_waiting;
    serve_own_queue(g);
    mk_wait_queue_wake_for_free_slots(g, g->n_waiting != before);
    mk_wait_queue_request_idle_conns(g);
    schedule_queue_deadline(g);
}

/* Adds the request to the queue. Returns -EAGAIN if the request waits, -EBUSY if the queue is full, or the
 * result of acquire_from_set(). */
static int enqueue(struct mk_backend_set *g, struct mk_upstream_conn *l)
{
    if (g->n_waiting >= g->upstream->settings->queue_max || !mk_wait_queue_has_room_for(g, l))
        return -EBUSY;
    l->waits_since_ms = mk_clock_ms();
    mk_list_add_last(&g->waiting, &l->link);
    g->n_waiting++;
    mk_wait_queue_publish(g);
    mk_pool_yield_idle(g);
    mk_pool_serve_queue(g); /* a slot may have become free before the others could see this request */
    return l->waits_since_ms ? -EAGAIN : l->error;
}

static void dequeue(struct mk_upstream_conn *l)
{
    struct mk_backend_set *g = l->set;
    remove_from_queue(l);
    mk_wait_queue_wake_for_free_slots(g, true); /* the request may have blocked others */
}

void mk_pool_serve_backend(struct mk_backend *o)
{
    mk_wait_queue_wake_older(o);
    mk_pool_serve_queue(mk_wait_queue_set(o));
}

static void on_cancelled_conn_event(void *ctx, unsigned which)
{
    struct mk_upstream_conn *c = ctx;
    struct mk_backend *o = c->backend;
    if (!(which & MK_HUNG_UP) && mk_cancelled_conn_discard_input(c))
        return;
    mk_pool_close_conn(c);
    mk_pool_serve_backend(o);
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
    c->on_event = on_idle_conn_event;
    c->ctx = c;
    push_idle_conn(c);
    mk_pool_schedule_sweep(o->pool);
}

/* Hands the connection to the first request that waits for the server, or else keeps it idle. False: the
 * caller closes the connection. If the first request needs a new connection, it takes over the slot of the
 * closed one: otherwise, later waiters would overtake it (starvation). */
static bool reuse_conn(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    struct mk_upstream_conn *taker = mk_wait_queue_first_for_backend(o);
    if (taker && (taker->options.fresh || uses_http2(o, taker)))
        return false;
    const struct mk_conn_limit_rule rule = limit_rule_of(o);
    bool may_take = taker && mk_wait_queue_is_first(o, &rule, taker);
    if (may_take && may_use_slot(o, &rule, c, taker)) {
        remove_from_queue(taker);
        hand_idle_conn_to_request(c, taker);
        notify_at_end(o->pool, taker);
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

/* Hands a `clean` connection to a waiting request or keeps it idle; closes any other connection. */
static void release_conn(struct mk_upstream_conn *c, bool clean)
{
    struct mk_backend *o = c->backend;
    detach_conn_from_request(c);
    if (c->slot != MK_UPSTREAM_CONN_NO_SLOT)
        mk_conn_limit_unassign_slot(&o->pool->limit, o->server->stats_slot, c->slot);
    if (clean && !c->h2 && c->state.current == MK_UPSTREAM_CONN_OPEN && mk_pool_is_addr_current(c) &&
        reuse_conn(c))
        return;
    mk_pool_close_conn(c);
    mk_pool_serve_backend(o);
}

/* Closes the socket after a failure to connect. */
static void close_failed_conn(struct mk_upstream_conn *c)
{
    if (c->slot != MK_UPSTREAM_CONN_NO_SLOT)
        mk_conn_limit_unassign_slot(&c->backend->pool->limit, c->backend->server->stats_slot, c->slot);
    close_conn(c);
    mk_pool_serve_backend(c->backend);
}

/* The server may still be working on the request: see cancelled_conn.h. HTTP/2 tells the server instead. */
static void release_cancelled_conn(struct mk_upstream_conn *c)
{
    struct mk_backend *o = c->backend;
    if (c->slot == MK_UPSTREAM_CONN_NO_SLOT || c->h2 || !mk_cancelled_conn_start(c)) {
        release_conn(c, false);
        return;
    }
    detach_conn_from_request(c);
    c->on_event = on_cancelled_conn_event;
    c->ctx = c;
    mk_list_add_last(&o->cancelled, &c->backend_link);
    mk_pool_schedule_sweep_at(o->pool, mk_worker_now_ms(o->pool->worker),
                              mk_cancelled_conn_next_expiry_ms(o));
}

/* ---- Notifications at the end of a loop iteration ---- */

bool mk_pool_notify_if_reused(struct mk_upstream_conn *c)
{
    bool is_kept = c->was_used && c->state.current == MK_UPSTREAM_CONN_OPEN;
    if (is_kept)
        notify_at_end(c->set->pool, c);
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
        l->on_event(l->ctx, MK_WRITABLE);
    }
    mk_list_remove(&end);
    if (MK_UNLIKELY(!mk_list_empty(&p->unflushed)))
        p->http2->flush(p);
}

/* ---- Connections of requests ---- */

static const struct mk_upstream_server *chosen_server(const struct mk_upstream_conn *c)
{
    return c->chosen < 0 ? NULL : &c->set->upstream->servers[c->chosen];
}

static void report_server_failure(const struct mk_upstream_conn *c, int error, const char *message)
{
    report_failure(&c->set->backends[c->chosen], error, message);
}

static void acquire_or_enqueue(struct mk_upstream_conn *c)
{
    struct mk_backend_set *g = c->set;
    if (c->options.address.p) {
        c->error = connect_to_addr(g, c);
        return;
    }
    if (MK_UNLIKELY(g->upstream->max_hosts && !g->backends[0].total)) { /* all hosts are in use */
        c->error = -EBUSY;
        return;
    }
    int e = mk_wait_queue_has_waiting(g) ? -EAGAIN : acquire_from_set(g, c);
    if (e == -EAGAIN)
        e = enqueue(g, c);
    c->error = e == -EAGAIN ? 0 : e;
}

/* Marks the address as failed. Does the server's name have addresses that were not tried? */
static bool has_untried_addr(struct mk_upstream_conn *c)
{
    return mk_resolver_mark_failed(&c->backend->names, &c->to) && ++c->n_failed < MK_ADDRESSES_MAX;
}

static void exclude_failed_server(struct mk_upstream_conn *c)
{
    if (!mk_health_is_local_shortage(c->error)) {
        if (has_untried_addr(c))
            return;
        report_server_failure(c, c->error, NULL);
    }
    c->n_failed = 0;
    c->options.tried |= UINT64_C(1) << c->chosen;
}

/* Called when connecting has failed: tries the next address or server, waits, or fails. */
static void connect_to_next(struct mk_upstream_conn *c)
{
    mk_conn_attempt_end(c, c->error);
    if (!c->options.address.p)
        exclude_failed_server(c);
    close_failed_conn(c);
    if (!c->options.address.p)
        acquire_or_enqueue(c);
}

static void on_connect_end(struct mk_upstream_conn *c)
{
    if (c->state.current == MK_UPSTREAM_CONN_BROKEN)
        connect_to_next(c);
    if (c->state.current == MK_UPSTREAM_CONN_OPEN) {
        mk_conn_attempt_connected(c);
        c->on_connect_end = NULL;
    }
}

struct mk_pool *mk_pool_of_worker(const struct mk_worker *w, const struct mk_upstream *u)
{
    return mk_worker_data(w, u->all->plugin);
}

static struct mk_upstream_conn *new_conn(struct mk_pool *p, struct mk_upstream *u,
                                         const struct mk_upstream_conn_options *options,
                                         void (*on_event)(void *ctx, unsigned which), void *ctx)
{
    struct mk_backend_set *set = &p->sets[u->index], *host = NULL;
    if (MK_UNLIKELY(u->max_hosts))
        host = p->find_host(p, u, options->host, options->port);
    struct mk_upstream_conn *c = mk_freelist_pop(&p->conns);
    if (!c)
        return NULL;
    memset(c, 0, offsetof(struct mk_upstream_conn, to));
    mk_state_init(&c->state, &mk_upstream_conn_machine, MK_UPSTREAM_CONN_WAITING);
    c->set = host ? host : set;
    c->set->n_conns++;
    c->options = *options;
    c->on_event = on_event;
    c->ctx = ctx;
    c->on_connect_end = on_connect_end;
    c->began_us = mk_clock_us();
    c->chosen = -1;
    c->slot = MK_UPSTREAM_CONN_NO_SLOT;
    if (u->max)
        c->client = mk_client_share_key(p, options->client);
    mk_list_init(&c->backend_link);
    mk_list_init(&c->link);
    mk_list_init(&c->changed);
    return c;
}

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    struct mk_upstream_conn *c = new_conn(mk_pool_of_worker(w, u), u, options, on_ready, ctx);
    if (c)
        acquire_or_enqueue(c);
    return c;
}

struct mk_upstream_conn *mk_pool_acquire_for_request(struct mk_pool *p, struct mk_upstream *u,
                                                     const struct mk_upstream_conn_options *options,
                                                     void (*on_event)(void *ctx, unsigned which),
                                                     void (*on_down)(void *ctx), void *ctx)
{
    struct mk_upstream_conn *c = new_conn(p, u, options, on_event, ctx);
    if (!c)
        return NULL;
    c->on_down = on_down;
    acquire_or_enqueue(c);
    return c;
}

mk_str mk_upstream_conn_server_name(const struct mk_upstream_conn *c)
{
    const struct mk_upstream_server *s = chosen_server(c);
    if (s && c->options.host.p)
        return c->options.host; /* lives longer than a dynamic host */
    return s ? s->name : mk_str_of(NULL, 0);
}

void mk_upstream_conn_mark_first_byte(struct mk_upstream_conn *c)
{
    if (c->is_answered)
        return;
    c->is_answered = true;
    if (c->attempt)
        c->attempt->first_byte_us = mk_clock_us();
    if (c->chosen >= 0)
        mk_upstream_stats_add_latency(chosen_server(c)->shared, mk_clock_us() - c->began_us);
}

void mk_upstream_conn_release(struct mk_upstream_conn *c, enum mk_upstream_conn_disposition how)
{
    if (!c)
        return;
    mk_conn_attempt_end(c, c->fault);
    mk_list_remove(&c->changed);
    if (c->waits_since_ms)
        dequeue(c);
    if (!mk_upstream_conn_has_socket(c)) {
        free_conn(c);
        return;
    }
    if (how == MK_UPSTREAM_CONN_FAILED && c->chosen >= 0)
        report_server_failure(c, c->fault_text ? c->fault : -EPROTO,
                              c->fault_text ? c->fault_text : "a request to it failed");
    else if (c->is_answered && c->chosen >= 0)
        mk_health_report_success(c->set->pool->worker, chosen_server(c));
    if (c->cancelled_ms)
        release_cancelled_conn(c);
    else
        release_conn(c, how == MK_UPSTREAM_CONN_KEEP && !c->options.address.p);
}

/* ---- Shared by the requests of a worker ---- */

struct mk_freelist *mk_pool_request_freelist(struct mk_pool *p)
{
    return &p->blocks;
}

void mk_pool_count_request(const struct mk_upstream_conn *c)
{
    mk_retry_budget_count_request(&c->set->retry, mk_worker_now_ms(c->set->pool->worker));
}

void mk_pool_count_status(const struct mk_upstream_conn *c, unsigned status)
{
    if (MK_LIKELY(!c->set->upstream->settings->outlier_percent) || c->chosen < 0)
        return;
    const struct mk_backend *o = &c->set->backends[c->chosen];
    if (!mk_health_count_response(o->pool->worker, o->server, status >= 500))
        return;
    mk_health_publish(o->server, true);
    mk_pool_schedule_sweep(o->pool);
}

bool mk_pool_has_untried(const struct mk_upstream *u, uint64_t tried)
{
    for (unsigned i = 0; i < u->n; i++)
        if (!(tried >> i & 1) && mk_health_mode(&u->servers[i]) == MK_SERVER_ENABLED)
            return true;
    return false;
}

bool mk_pool_may_retry(struct mk_pool *p, const struct mk_upstream *u)
{
    return mk_retry_budget_try_spend(&p->sets[u->index].retry, mk_worker_now_ms(p->worker),
                                     u->settings->retry_percent);
}
