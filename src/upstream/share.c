/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/share.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

/* Behind a unix socket there is another server, which has clients of its own. */
uint64_t mk_share_client(const struct mk_board *b, const struct mk_peer *peer)
{
    struct mk_peer one;
    if (!peer || peer->is_unix)
        return 0;
    mk_peer_client(peer, &one);
    uint64_t client = mk_hash(&b->ledgers->key, mk_str_of((const char *)one.ip, sizeof one.ip));
    return client ? client : 1;
}

/* Of `max` connections; 0: no limit. */
static unsigned share_of(const struct mk_upstream *u, unsigned max)
{
    uint32_t set = u->settings->max_client;
    return set == MK_SETTING_UNSET ? max / 2 + max % 2 : set;
}

static unsigned max_of(const struct mk_outlet *o)
{
    unsigned max = o->server->upstream->max,
             shown = LOAD(&mk_board_info(&o->pool->board, o->server->place)->max);
    return max && shown ? shown : max;
}

static unsigned count(const struct mk_outlet *o, unsigned max, uint64_t client)
{
    const uint64_t *clients = mk_board_ledger(&o->pool->board, o->server->place)->clients;
    unsigned n = 0;
    for (unsigned i = 0; i < max; i++)
        n += LOAD(&clients[i]) == client;
    return n;
}

static bool is_above(const struct mk_outlet *o, uint64_t client, unsigned already)
{
    unsigned max = client ? max_of(o) : 0, share = max ? share_of(o->server->upstream, max) : 0;
    if (!share || share >= max ||
        mk_board_count_at_most(&o->pool->board, o->server->place, client) < share + already)
        return false;
    return count(o, max, client) >= share + already;
}

bool mk_share_is_used_up(const struct mk_outlet *o, uint64_t client)
{
    return is_above(o, client, 0);
}

bool mk_share_take(const struct mk_outlet *o, unsigned slot, uint64_t client)
{
    mk_board_serve(&o->pool->board, o->server->place, slot, client);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* of two workers that do this at once one sees the other */
    if (!is_above(o, client, 1))
        return true;
    mk_share_give(o, slot);
    return false;
}

void mk_share_give(const struct mk_outlet *o, unsigned slot)
{
    mk_board_serve(&o->pool->board, o->server->place, slot, 0);
}

bool mk_share_holds_back(struct mk_share_pass *p, const struct mk_outlet *o, uint64_t client)
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
