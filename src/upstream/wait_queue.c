/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/wait_queue.h"

#include "upstream/health.h"
#include "upstream/share.h"

/* An exchange of another worker goes first if it has waited longer by this: less would only move connections
 * to and fro. */
enum { SLACK_MS = 4 };
/* A worker that is so much too late to end the waiting of its own is blocked. */
enum { LATE_MS = 1000 };

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

static struct mk_waiter *waiters_of(const struct mk_backend *o, unsigned row)
{
    return mk_board_ledger(&o->pool->board, o->server->place)->oldest[row];
}

static void show(struct mk_waiter *at, const struct mk_upstream_conn *l)
{
    uint64_t since = l ? l->waits_since_ms : 0, client = l ? l->client : 0;
    if (LOAD(&at->client) != client)
        STORE(&at->client, client);
    if (LOAD(&at->since_ms) != since)
        STORE(&at->since_ms, since);
}

/* Shares change without us: so one is shown, too, that a share holds back now. */
static void show_waiters(const struct mk_backend *o)
{
    struct mk_waiter *at = waiters_of(o, o->pool->row);
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
    show(&at[0], first);
    show(&at[1], other);
}

void mk_wait_queue_show(struct mk_backend_set *g)
{
    struct mk_pool *p = g->pool;
    STORE(&mk_board_gauge(&p->board, g->upstream->servers[0].place, p->row)->waiting, g->n_waiting);
    for (unsigned i = 0; i < g->upstream->n; i++)
        show_waiters(&g->backends[i]);
}

/* By a worker that is blocked. */
static bool is_forgotten(const struct mk_backend *o, uint64_t since_ms)
{
    uint64_t most = (uint64_t)o->server->upstream->settings->queue_ms + LATE_MS;
    return since_ms + most < mk_health_now_ms();
}

/* Of that worker; *best becomes since when it has waited. Usually none waits: then the clock is not read. */
static bool find_older_in(const struct mk_backend *o, unsigned row, uint64_t *best)
{
    const struct mk_waiter *waiters = waiters_of(o, row);
    bool found = false;
    for (unsigned k = 0; k < 2; k++) {
        uint64_t at = LOAD(&waiters[k].since_ms);
        if (MK_LIKELY(!at))
            continue;
        if (!*best)
            *best = mk_health_now_ms();
        if (at + SLACK_MS > *best || is_forgotten(o, at) || mk_share_is_used_up(o, LOAD(&waiters[k].client)))
            continue;
        *best = at;
        found = true;
    }
    return found;
}

/* The worker whose exchange gets the server before one that waits for it since then (0: from now on); -1: none. */
static int find_older(const struct mk_backend *o, uint64_t since_ms)
{
    uint32_t n = LOAD(&o->pool->board.shown->n_workers);
    uint64_t best = since_ms;
    int found = -1;
    for (uint32_t row = 0; row < n; row++)
        if (row != o->pool->row && find_older_in(o, row, &best))
            found = (int)row;
    return found;
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
        tell(mk_wait_queue_group(o), (int)LOAD(&o->pool->board.ledgers->indexes[row]));
}

/* Do other workers keep idle connections? */
static bool others_are_idle(const struct mk_backend_set *g)
{
    struct mk_upstream_info info;
    for (unsigned i = 0; i < g->upstream->n; i++) {
        const struct mk_backend *o = &g->backends[i];
        if (mk_upstream_info_at(g->pool->board.shown, o->server->place, &info) && info.idle > o->n_idle)
            return true;
    }
    return false;
}

void mk_wait_queue_ask_for_idle(const struct mk_backend_set *g)
{
    if (g->n_waiting && g->upstream->max && others_are_idle(g))
        tell(g, MK_TO_ALL);
}
