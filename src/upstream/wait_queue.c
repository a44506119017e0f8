/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/wait_queue.h"

#include "upstream/health.h"
#include "upstream/share.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

struct mk_upstream_conn *mk_wait_queue_first(const struct mk_backend_set *g)
{
    return mk_list_empty(&g->waiting) ? NULL : MK_LIST_ENTRY(g->waiting.next, struct mk_upstream_conn, link);
}

static bool may_use(const struct mk_upstream_conn *l, const struct mk_upstream_server *s)
{
    return !(l->options.avoid >> s->index & 1);
}

bool mk_wait_queue_may_use_all(const struct mk_upstream_conn *l)
{
    return !l->options.avoid;
}

MK_COLD static struct mk_upstream_conn *find_first_for(const struct mk_backend *o, struct mk_list *waiting)
{
    struct mk_share_pass pass = {.n = 0};
    MK_LIST_EACH_SAFE (at, waiting) {
        struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (may_use(l, o->server) && !mk_share_holds_back(&pass, o, l->client))
            return l;
    }
    return NULL;
}

struct mk_upstream_conn *mk_wait_queue_first_for(const struct mk_backend *o)
{
    struct mk_list *waiting = &mk_wait_queue_group(o)->waiting;
    return MK_LIKELY(mk_list_empty(waiting)) ? NULL : find_first_for(o, waiting);
}

/* 0: none waits for it, or none could use it, because its name has no address yet. */
static uint64_t waits_since(const struct mk_backend *o)
{
    const struct mk_upstream_conn *first = o->names.n ? mk_wait_queue_first_for(o) : NULL;
    return first ? first->waits_since_ms : 0;
}

static struct mk_limit_waiter waiter_of(const struct mk_upstream_conn *l)
{
    return l ? (struct mk_limit_waiter){l->waits_since_ms, l->client} : (struct mk_limit_waiter){0, 0};
}

/* Shares change without us: so one is shown, too, that a share holds back now. */
static void show_waiters(const struct mk_backend *o)
{
    struct mk_share_pass pass = {.n = 0};
    const struct mk_upstream_conn *first = NULL, *other = NULL;
    MK_LIST_EACH_SAFE (entry, &mk_wait_queue_group(o)->waiting) {
        const struct mk_upstream_conn *l = MK_LIST_ENTRY(entry, struct mk_upstream_conn, link);
        if (!o->names.n || !may_use(l, o->server) || (first && l->client == first->client))
            continue;
        if (first && mk_share_holds_back(&pass, o, l->client))
            continue;
        if (first)
            other = l;
        else
            first = l;
        if (other || !first->client)
            break;
    }
    const struct mk_limit_waiter waiters[] = {waiter_of(first), waiter_of(other)};
    mk_limit_show_waiters(&o->pool->limit, o->server->stats_slot, o->pool->row, waiters);
}

void mk_wait_queue_show(struct mk_backend_set *g)
{
    struct mk_pool *p = g->pool;
    STORE(&mk_stats_cell(&p->stats, g->upstream->servers[0].stats_slot, p->row)->waiting, g->n_waiting);
    for (unsigned i = 0; i < g->upstream->n; i++)
        show_waiters(&g->backends[i]);
}

/* The row of the worker whose exchange gets the server before one of ours that waits for it since then (0: from
 * now on); -1: none. */
static int find_older(const struct mk_backend *o, uint64_t since_ms)
{
    const struct mk_limit_rule rule = mk_share_rule(o);
    return mk_limit_find_older(&o->pool->limit, &rule, o->pool->row, since_ms);
}

static int find_older_than_ours(const struct mk_backend *o)
{
    uint64_t since = waits_since(o);
    return find_older(o, since ? since : UINT64_MAX);
}

bool mk_wait_queue_has_older(const struct mk_backend *o)
{
    return o->server->upstream->max && find_older_than_ours(o) >= 0;
}

bool mk_wait_queue_is_first(const struct mk_backend *o, const struct mk_upstream_conn *l)
{
    if (!o->server->upstream->max)
        return true;
    if (!l->waits_since_ms && mk_wait_queue_first_for(o))
        return false;
    return find_older(o, l->waits_since_ms) < 0;
}

static bool is_held_back(const struct mk_backend_set *g, const struct mk_upstream_conn *l)
{
    for (unsigned i = 0; i < g->upstream->n; i++)
        if (!mk_share_is_used_up(&g->backends[i], l->client))
            return false;
    return true;
}

bool mk_wait_queue_has_waiting(const struct mk_backend_set *g)
{
    uint64_t held_back = 0;
    MK_LIST_EACH_SAFE (at, &g->waiting) {
        const struct mk_upstream_conn *l = MK_LIST_ENTRY(at, struct mk_upstream_conn, link);
        if (!mk_wait_queue_may_use_all(l) || (held_back && l->client == held_back))
            continue;
        if (!is_held_back(g, l))
            return g->upstream->max;
        held_back = l->client;
    }
    return false;
}

bool mk_wait_queue_has_room_for(const struct mk_backend_set *g, const struct mk_upstream_conn *l)
{
    unsigned n = 0, max = mk_share_of_queue(g->upstream);
    if (!l->client)
        return true;
    MK_LIST_EACH_SAFE (at, &g->waiting)
        n += MK_LIST_ENTRY(at, struct mk_upstream_conn, link)->client == l->client;
    return n < max;
}

static void tell(const struct mk_backend_set *g, int to)
{
    uint32_t index = g->upstream->index;
    mk_str message = mk_str_of((const char *)&index, sizeof index);
    /* If it does not arrive: that worker looks for itself every POLL_MS. */
    (void)mk_worker_send(g->pool->worker, g->pool->upstreams->plugin, to, message);
}

void mk_wait_queue_wake_older(const struct mk_backend *o)
{
    int row = o->server->upstream->max ? find_older_than_ours(o) : -1;
    if (row >= 0)
        tell(mk_wait_queue_group(o), (int)LOAD(&o->pool->limit.memory->indexes[row]));
}

/* Do other workers keep idle connections? */
static bool others_are_idle(const struct mk_backend_set *g)
{
    struct mk_upstream_info info;
    for (unsigned i = 0; i < g->upstream->n; i++) {
        const struct mk_backend *o = &g->backends[i];
        if (mk_upstream_info_at(g->pool->stats.shown, o->server->stats_slot, &info) && info.idle > o->n_idle)
            return true;
    }
    return false;
}

void mk_wait_queue_ask_for_idle(const struct mk_backend_set *g)
{
    if (g->n_waiting && g->upstream->max && others_are_idle(g))
        tell(g, MK_TO_ALL);
}
