/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/client_share.h"

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)

static uint64_t hash_client_addr(const struct mk_hash_key *key, const struct mk_addr *peer)
{
    struct mk_addr one;
    mk_addr_client_prefix(peer, &one);
    uint64_t client = mk_hash(key, mk_str_of((const char *)one.ip, sizeof one.ip));
    return client ? client : 1;
}

/* A peer on a unix socket has no key, because it is a proxy that forwards the requests of many clients. */
uint64_t mk_client_share_key(struct mk_pool *p, const struct mk_addr *peer)
{
    uint64_t ip[2];
    if (!peer || peer->is_unix)
        return 0;
    memcpy(ip, peer->ip, sizeof ip);
    struct mk_client_share_cache *m = &p->clients[(ip[0] ^ ip[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
    if (m->client && m->ip[0] == ip[0] && m->ip[1] == ip[1])
        return m->client;
    *m = (struct mk_client_share_cache){{ip[0], ip[1]}, hash_client_addr(&p->upstreams->client_key, peer)};
    return m->client;
}

/* A single client's share of `max` connections; 0: no limit. */
static unsigned client_share_max(const struct mk_upstream *u, unsigned max)
{
    uint32_t set = u->settings->max_client;
    return set == MK_SETTING_UNSET ? max / 2 + max % 2 : set;
}

struct mk_conn_limit_rule mk_client_share_limit_rule(const struct mk_backend *o)
{
    const struct mk_upstream *u = o->server->upstream;
    unsigned slot = o->server->stats_slot,
             shown = LOAD(&mk_upstream_stats_health(&o->pool->stats, slot)->max);
    unsigned max = u->max && shown ? shown : u->max;
    return (struct mk_conn_limit_rule){
        .backend = slot, .max = max, .share = client_share_max(u, max), .wait_ms = u->settings->queue_ms};
}

bool mk_client_share_is_used_up(const struct mk_backend *o, uint64_t client)
{
    const struct mk_conn_limit_rule rule = mk_client_share_limit_rule(o);
    return mk_conn_limit_is_share_used_up(&o->pool->limit, &rule, client);
}

bool mk_client_share_is_used_up_in_pass(struct mk_client_share_pass *p, const struct mk_backend *o,
                                        uint64_t client)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->used_up[i] == client)
            return true;
    if (!mk_client_share_is_used_up(o, client))
        return false;
    if (p->n < MK_LEN(p->used_up))
        p->used_up[p->n++] = client;
    return true;
}

unsigned mk_client_share_queue_max(const struct mk_upstream *u)
{
    unsigned max = u->settings->queue_max;
    return u->settings->max_client ? max / 2 + max % 2 : max;
}
