/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/wait_queue.h"

#include "upstream/balance.h"
#include "upstream/client_share.h"
#include "upstream/health.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

struct mk_upstream_conn *mk_wait_queue_first(const struct mk_backend_set *g)
{
    return mk_list_empty(&g->waiting) ? NULL : MK_LIST_ENTRY(g->waiting.next, struct mk_upstream_conn, link);
}

static bool may_use_backend(const struct mk_upstream_conn *l, const struct mk_backend *o)
{
    unsigned index = o->server->index;
    return !(l->options.tried >> index & 1) && mk_balance_is_admitted(o, l->options.server == (int)index);
}

bool mk_wait_queue_may_use_any_server(const struct mk_upstream_conn *l)
{
    return !l->options.tried;
}

MK_COLD struct mk_upstream_conn *mk_wait_queue_find_for_backend(const struct mk_backend *o)
{
    struct mk_client_share_pass pass = {.n = 0};
    MK_LIST_EACH_SAFE (at, &mk_wait_queue_set(o)->waiting) {
        struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (may_use_backend(l, o) && !mk_client_share_is_used_up_in_pass(&pass, o, l->client))
            return l;
    }
    return NULL;
}

/* Start of the oldest wait for the server; 0: no request waits for it, or none can use it because its name
 * has no address yet. */
static uint64_t oldest_waits_since(const struct mk_backend *o)
{
    const struct mk_upstream_conn *first = o->names.n ? mk_wait_queue_first_for_backend(o) : NULL;
    return first ? first->waits_since_ms : 0;
}

static struct mk_conn_limit_waiter limit_waiter_of(const struct mk_upstream_conn *l)
{
    return l ? (struct mk_conn_limit_waiter){l->waits_since_ms, l->client}
             : (struct mk_conn_limit_waiter){0, 0};
}

/* Shows this worker's waiting requests to the other workers, even requests whose client has used up its
 * share: a connection released in another worker may free part of that share. */
static void publish_waiters(const struct mk_backend *o)
{
    struct mk_client_share_pass pass = {.n = 0};
    const struct mk_upstream_conn *first = NULL, *other = NULL;
    bool hides = false;
    MK_LIST_EACH_SAFE (entry, &mk_wait_queue_set(o)->waiting) {
        const struct mk_upstream_conn *l = MK_LIST_ENTRY(entry, struct mk_upstream_conn, link);
        if (!o->names.n || !may_use_backend(l, o) || (first && l->client == first->client) ||
            (other && l->client == other->client))
            continue;
        if (!first)
            first = l;
        else if (!other && !mk_client_share_is_used_up_in_pass(&pass, o, l->client))
            other = l;
        else
            hides = true;
        if (!first->client || (other && hides))
            break;
    }
    const struct mk_conn_limit_waiter waiters[] = {limit_waiter_of(first), limit_waiter_of(other)};
    mk_conn_limit_publish_waiters(&o->pool->limit, o->server->stats_slot, o->pool->row, waiters, hides);
}

void mk_wait_queue_publish(struct mk_backend_set *g)
{
    if (g->backends[0].cells && !g->backends[0].total)
        mk_stat_set(&g->backends[0].cells[MK_UPSTREAM_STATS_WAITING], g->n_waiting);
    for (unsigned i = 0; i < g->upstream->n; i++)
        publish_waiters(&g->backends[i]);
}

/* Row of the worker whose request precedes a request of ours that has waited since `since_ms` (0: it starts
 * waiting now); -1: none. */
static int find_older_in_other_worker(const struct mk_backend *o, uint64_t since_ms)
{
    if (mk_conn_limit_has_one_row(&o->pool->limit))
        return -1;
    const struct mk_conn_limit_rule rule = mk_client_share_limit_rule(o);
    return mk_conn_limit_find_older_waiter(&o->pool->limit, &rule, o->pool->row, since_ms);
}

static int find_older_than_own_queue(const struct mk_backend *o)
{
    uint64_t since = oldest_waits_since(o);
    return find_older_in_other_worker(o, since ? since : UINT64_MAX);
}

bool mk_wait_queue_has_older_elsewhere(const struct mk_backend *o)
{
    return o->server->upstream->max && find_older_than_own_queue(o) >= 0;
}

bool mk_wait_queue_is_first_for_slot(const struct mk_backend *o, const struct mk_conn_limit_rule *rule,
                                     const struct mk_upstream_conn *l)
{
    if (!l->waits_since_ms && mk_wait_queue_first_for_backend(o))
        return false;
    return mk_conn_limit_find_older_waiter(&o->pool->limit, rule, o->pool->row, l->waits_since_ms) < 0;
}

static bool is_share_used_up_everywhere(const struct mk_backend_set *g, const struct mk_upstream_conn *l)
{
    for (unsigned i = 0; i < g->upstream->n; i++)
        if (!mk_client_share_is_used_up(&g->backends[i], l->client))
            return false;
    return true;
}

bool mk_wait_queue_has_eligible(const struct mk_backend_set *g)
{
    uint64_t held_back = 0;
    MK_LIST_EACH_SAFE (at, &g->waiting) {
        const struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (!mk_wait_queue_may_use_any_server(l) || (held_back && l->client == held_back))
            continue;
        if (!is_share_used_up_everywhere(g, l))
            return g->upstream->max;
        held_back = l->client;
    }
    return false;
}

bool mk_wait_queue_has_room_for(const struct mk_backend_set *g, const struct mk_upstream_conn *l)
{
    unsigned n = 0, max = mk_client_share_queue_max(g->upstream);
    if (!l->client)
        return true;
    MK_LIST_EACH_SAFE (at, &g->waiting)
        n += MK_LIST_ENTRY(at, struct mk_upstream_conn, link)->client == l->client;
    return n < max;
}

/* Wakes the worker whose request has waited longest, unless it is this worker. `all`: also wakes workers with
 * unpublished requests; must be false if nothing has changed in this worker, or workers would keep waking
 * each other. */
static void wake_older_waiter(const struct mk_backend *o, bool all)
{
    const struct mk_pool *p = o->pool;
    unsigned slot = o->server->stats_slot;
    if (!o->server->upstream->max)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint64_t since = oldest_waits_since(o);
    int row = find_older_in_other_worker(o, since ? since : UINT64_MAX);
    if (row >= 0)
        mk_conn_limit_wake_row(&p->limit, slot, (unsigned)row);
    else if (!since && all)
        mk_conn_limit_wake_unpublished(&p->limit, slot, p->row);
}

void mk_wait_queue_wake_older(const struct mk_backend *o)
{
    wake_older_waiter(o, true);
}

static bool has_free_slot(const struct mk_backend *o)
{
    const struct mk_conn_limit_rule rule = mk_client_share_limit_rule(o);
    return mk_conn_limit_has_free_slot(&o->pool->limit, &rule);
}

void mk_wait_queue_wake_for_free_slots(const struct mk_backend_set *g, bool has_changed)
{
    for (unsigned i = 0; g->upstream->max && i < g->upstream->n; i++)
        if (has_free_slot(&g->backends[i]))
            wake_older_waiter(&g->backends[i], has_changed);
}

/* Calls fn (may be NULL) for each other worker with idle connections. Returns whether there are any. */
static bool each_worker_with_idle(const struct mk_backend *o,
                                  void (*fn)(const struct mk_conn_limit *l, unsigned backend, unsigned row))
{
    const struct mk_pool *p = o->pool;
    unsigned slot = o->server->stats_slot;
    bool found = false;
    for (unsigned row = 0; row < LOAD(&p->limit.memory->n_rows) && row < MK_UPSTREAM_WORKERS; row++) {
        if (row == p->row || !LOAD(&p->stats.memory->idle[slot][row]))
            continue;
        found = true;
        if (fn)
            fn(&p->limit, slot, row);
    }
    return found;
}

void mk_wait_queue_wake_if_available(const struct mk_backend *o)
{
    if (o->server->upstream->max && (has_free_slot(o) || each_worker_with_idle(o, NULL)))
        mk_wait_queue_wake_older(o);
}

void mk_wait_queue_request_idle_conns(const struct mk_backend_set *g)
{
    for (unsigned i = 0; g->n_waiting && g->upstream->max && i < g->upstream->n; i++)
        (void)each_worker_with_idle(&g->backends[i], mk_conn_limit_wake_row);
}

void mk_wait_queue_wake_all(const struct mk_backend_set *g)
{
    for (unsigned i = 0; g->upstream->max && i < g->upstream->n; i++)
        mk_conn_limit_wake_waiters(&g->pool->limit, g->upstream->servers[i].stats_slot);
}

bool mk_wait_queue_is_woken(const struct mk_backend_set *g, const uint64_t woken[MK_CONN_LIMIT_WORDS])
{
    for (unsigned i = 0; i < g->upstream->n; i++) {
        unsigned slot = g->upstream->servers[i].stats_slot;
        if (woken[slot / 64] >> slot % 64 & 1)
            return true;
    }
    return false;
}

/* ---- Time ---- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The time at which an unusable server may become usable without an event. UINT64_MAX: an event will report
 * it. */
static uint64_t backend_usable_at_ms(const struct mk_backend *o, uint64_t now)
{
    const struct mk_resolver *names = &o->names;
    uint64_t worker_now = mk_worker_now_ms(o->pool->worker), down_ms = mk_health_down_ms(o->server, now);
    if (!names->n && !names->lookup && !names->is_fixed) /* the name is resolved again at that time */
        return now + (names->fresh_until_ms > worker_now ? names->fresh_until_ms - worker_now : 0);
    return down_ms ? now + down_ms : UINT64_MAX;
}

static uint64_t next_stale_waiter_ms(const struct mk_backend *o)
{
    const struct mk_conn_limit_rule rule = mk_client_share_limit_rule(o);
    return rule.max ? mk_conn_limit_next_stale_waiter_ms(&o->pool->limit, &rule, o->pool->row) : UINT64_MAX;
}

uint64_t mk_wait_queue_next_check_ms(const struct mk_backend_set *g, uint64_t now_ms)
{
    const struct mk_upstream_conn *first = mk_wait_queue_first(g);
    uint64_t at = first ? first->waits_since_ms + g->upstream->settings->queue_ms : UINT64_MAX;
    for (unsigned i = 0; first && i < g->upstream->n; i++)
        at = min_u64(at, min_u64(next_stale_waiter_ms(&g->backends[i]),
                                 backend_usable_at_ms(&g->backends[i], now_ms)));
    return at;
}
