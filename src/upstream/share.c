/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/share.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static uint64_t hash_client(const struct mk_board *b, const struct mk_peer *peer)
{
    struct mk_peer one;
    mk_peer_client(peer, &one);
    uint64_t client = mk_hash(&b->ledgers->key, mk_str_of((const char *)one.ip, sizeof one.ip));
    return client ? client : 1;
}

/* Behind a unix socket there is another server, which has clients of its own. */
uint64_t mk_share_client(struct mk_pool *p, const struct mk_peer *peer)
{
    uint64_t ip[2];
    if (!peer || peer->is_unix)
        return 0;
    memcpy(ip, peer->ip, sizeof ip);
    struct mk_share_memo *m = &p->clients[(ip[0] ^ ip[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
    if (m->client && m->ip[0] == ip[0] && m->ip[1] == ip[1])
        return m->client;
    *m = (struct mk_share_memo){{ip[0], ip[1]}, hash_client(&p->board, peer)};
    return m->client;
}

/* Of `max` connections; 0: no limit. */
static unsigned share_of(const struct mk_upstream *u, unsigned max)
{
    uint32_t set = u->settings->max_client;
    return set == MK_SETTING_UNSET ? max / 2 + max % 2 : set;
}

static unsigned max_of(const struct mk_backend *o)
{
    unsigned max = o->server->upstream->max,
             shown = LOAD(&mk_board_info(&o->pool->board, o->server->place)->max);
    return max && shown ? shown : max;
}

static unsigned count(const struct mk_backend *o, unsigned max, uint64_t client)
{
    const uint64_t *clients = mk_board_ledger(&o->pool->board, o->server->place)->clients;
    unsigned n = 0;
    for (unsigned i = 0; i < max; i++)
        n += LOAD(&clients[i]) == client;
    return n;
}

static bool is_above(const struct mk_backend *o, uint64_t client, unsigned already)
{
    unsigned n = client ? mk_board_count_at_most(&o->pool->board, o->server->place, client) : 0;
    if (MK_LIKELY(n <= already)) /* a share is at least 1 */
        return false;
    unsigned max = max_of(o), share = max ? share_of(o->server->upstream, max) : 0;
    return share && share < max && n >= share + already && count(o, max, client) >= share + already;
}

bool mk_share_is_used_up(const struct mk_backend *o, uint64_t client)
{
    return is_above(o, client, 0);
}

bool mk_share_take(const struct mk_backend *o, unsigned slot, uint64_t client)
{
    mk_board_serve(&o->pool->board, o->server->place, slot, client);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* of two workers that do this at once one sees the other */
    if (!is_above(o, client, 1))
        return true;
    mk_share_give(o, slot);
    return false;
}

void mk_share_give(const struct mk_backend *o, unsigned slot)
{
    mk_board_serve(&o->pool->board, o->server->place, slot, 0);
}

bool mk_share_holds_back(struct mk_share_pass *p, const struct mk_backend *o, uint64_t client)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->used_up[i] == client)
            return true;
    if (!mk_share_is_used_up(o, client))
        return false;
    if (p->n < MK_LEN(p->used_up))
        p->used_up[p->n++] = client;
    return true;
}

unsigned mk_share_of_queue(const struct mk_upstream *u)
{
    unsigned max = u->settings->queue_max;
    return u->settings->max_client ? max / 2 + max % 2 : max;
}
