/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/balance.h"

/* The rounds of the search for a server: primary servers that are up, backups that are up, then any
 * server. */
enum round { PRIMARY, BACKUP, ANY, ROUNDS };

static bool backend_suits(const struct mk_backend *o, enum round round, uint64_t now)
{
    const struct mk_upstream_server *s = o->server;
    return round == ANY || (s->backup == (round == BACKUP) && mk_health_is_up(s, now));
}

static bool may_use_backend(const struct mk_backend *o, enum round round, uint64_t avoid, uint64_t now)
{
    return backend_suits(o, round, now) && mk_balance_may_try(o, avoid, false);
}

/* Smooth weighted round robin: in each search, every candidate gains its weight as credit. The candidate with
 * the most credit is chosen, and the sum of all weights is subtracted from its credit. */
static struct mk_backend *choose_round_robin(struct mk_backend_set *g, enum round round, uint64_t avoid,
                                             uint64_t now)
{
    struct mk_backend *best = NULL;
    int64_t total = 0;
    for (unsigned i = 0; i < g->upstream->n; i++) {
        struct mk_backend *o = &g->backends[i];
        if (!may_use_backend(o, round, avoid, now))
            continue;
        int64_t weight = mk_health_weight(o->server, now);
        o->credit += weight;
        total += weight;
        if (!best || o->credit > best->credit)
            best = o;
    }
    if (best)
        best->credit -= total;
    return best;
}

static uint64_t count_conns_in_use(const struct mk_backend *o)
{
    const struct mk_upstream_stats *s = &o->pool->stats;
    return mk_stat_sum(s->registry, mk_upstream_stats_health(s, o->server->stats_slot)->series,
                       MK_UPSTREAM_STATS_BUSY);
}

/* The server with the fewest connections in use relative to its weight. Idle servers are equal whatever their
 * weights. Weighted round robin chooses among equal servers. */
static struct mk_backend *choose_least_conn(struct mk_backend_set *g, enum round round, uint64_t avoid,
                                            uint64_t now)
{
    struct mk_backend *best = NULL;
    uint64_t best_busy = 0, best_weight = 1, equal = 0;
    for (unsigned i = 0; i < g->upstream->n; i++) {
        struct mk_backend *o = &g->backends[i];
        if (!may_use_backend(o, round, avoid, now))
            continue;
        uint64_t weight = mk_health_weight(o->server, now), busy = count_conns_in_use(o);
        if (best && busy * best_weight > best_busy * weight)
            continue;
        bool is_less = !best || busy * best_weight < best_busy * weight;
        equal = (is_less ? 0 : equal) | (uint64_t)1 << o->server->index;
        if (!is_less)
            continue;
        best = o;
        best_busy = busy;
        best_weight = weight;
    }
    return equal & (equal - 1) ? choose_round_robin(g, round, avoid | ~equal, now) : best;
}

/* SplitMix64 finalizer. */
static uint64_t splitmix64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Rendezvous hashing: when a server goes away, only its own clients are assigned to other servers. */
static struct mk_backend *choose_by_hash(struct mk_backend_set *g, uint64_t hash, enum round round,
                                         uint64_t avoid, uint64_t now)
{
    struct mk_backend *best = NULL;
    uint64_t best_score = 0;
    for (unsigned i = 0; i < g->upstream->n; i++) {
        struct mk_backend *o = &g->backends[i];
        if (!may_use_backend(o, round, avoid, now))
            continue;
        uint64_t key = o->server->key;
        for (unsigned point = 0, n = mk_health_full_weight(o->server); point < n; point++) {
            uint64_t score = splitmix64(hash ^ splitmix64(key + point));
            if (!best || score > best_score) {
                best = o;
                best_score = score;
            }
        }
    }
    return best;
}

static struct mk_backend *choose_by_policy(struct mk_backend_set *g,
                                           const struct mk_upstream_conn_options *options, enum round round,
                                           uint64_t avoid, uint64_t now)
{
    enum mk_balance how = g->upstream->settings->balance;
    if (how == MK_BALANCE_HASH && options->has_hash)
        return choose_by_hash(g, options->hash, round, avoid, now);
    if (how == MK_BALANCE_LEAST_CONN)
        return choose_least_conn(g, round, avoid, now);
    return choose_round_robin(g, round, avoid, now);
}

static bool has_usable_primary(struct mk_backend_set *g, uint64_t avoid, uint64_t now)
{
    for (unsigned i = 0; i < g->upstream->n; i++)
        if (may_use_backend(&g->backends[i], PRIMARY, avoid, now))
            return true;
    return false;
}

/* Backend of a sticky session. A backup serves only while no primary server is up. */
static struct mk_backend *find_sticky_backend(struct mk_backend_set *g,
                                              const struct mk_upstream_conn_options *options, uint64_t avoid,
                                              uint64_t now)
{
    if (options->server < 0 || (unsigned)options->server >= g->upstream->n)
        return NULL;
    struct mk_backend *o = &g->backends[options->server];
    if (o->server->backup && has_usable_primary(g, avoid, now))
        return NULL;
    bool suits = backend_suits(o, o->server->backup ? BACKUP : PRIMARY, now);
    return suits && mk_balance_may_try(o, avoid, true) ? o : NULL;
}

struct mk_backend *mk_balance_choose(struct mk_backend_set *g, const struct mk_upstream_conn_options *options,
                                     uint64_t avoid)
{
    avoid |= options->tried;
    uint64_t now = mk_clock_ms();
    struct mk_backend *wished = find_sticky_backend(g, options, avoid, now);
    if (wished)
        return wished;
    for (enum round round = PRIMARY; round < ROUNDS; round++) {
        struct mk_backend *o = choose_by_policy(g, options, round, avoid, now);
        if (o)
            return o;
    }
    return NULL;
}
