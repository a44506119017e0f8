/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/peers.h"

#include "base/assert.h"
#include "base/mem.h"

enum { FIRST_CAP = 64 };

void mk_peers_init(struct mk_peers *p, unsigned max)
{
    *p = (struct mk_peers){.hash_key = mk_hash_key_random(), .max = max};
}

void mk_peers_fini(struct mk_peers *p)
{
    mk_mem_free(p->slots);
    *p = (struct mk_peers){0};
}

static void key_of(const struct mk_addr *peer, uint8_t key[16])
{
    struct mk_addr client;
    mk_addr_client(peer, &client);
    memcpy(key, client.ip, 16);
}

static size_t home_of(const struct mk_peers *p, const uint8_t key[16])
{
    return (size_t)mk_hash(&p->hash_key, mk_str_of((const char *)key, 16)) & (p->cap - 1);
}

/* Returns the slot of the address, or the free slot where it would go. */
static struct mk_peer_count *find(const struct mk_peers *p, const uint8_t key[16])
{
    size_t at = home_of(p, key);
    while (p->slots[at].n && memcmp(p->slots[at].ip, key, 16) != 0)
        at = (at + 1) & (p->cap - 1);
    return &p->slots[at];
}

static mk_err grow(struct mk_peers *p)
{
    struct mk_peers old = *p;
    p->cap = old.cap ? old.cap * 2 : FIRST_CAP;
    p->slots = mk_mem_zalloc(p->cap, sizeof *p->slots);
    if (!p->slots) {
        *p = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].n)
            *find(p, old.slots[i].ip) = old.slots[i];
    mk_mem_free(old.slots);
    return 0;
}

mk_err mk_peers_enter(struct mk_peers *p, const struct mk_addr *peer)
{
    uint8_t key[16];
    if (!p->max || peer->is_unix)
        return 0;
    if (p->n * 2 >= p->cap) {
        mk_err e = grow(p);
        if (e)
            return e;
    }
    key_of(peer, key);
    struct mk_peer_count *slot = find(p, key);
    if (slot->n >= p->max)
        return -EDQUOT;
    if (slot->n++ == 0) {
        memcpy(slot->ip, key, 16);
        p->n++;
    }
    return 0;
}

/* Closes the gap after a freed slot, so that no search ends too early. */
static void close_gap(struct mk_peers *p, size_t gap)
{
    size_t mask = p->cap - 1;
    for (size_t at = (gap + 1) & mask; p->slots[at].n; at = (at + 1) & mask) {
        size_t home = home_of(p, p->slots[at].ip);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            p->slots[gap] = p->slots[at];
            p->slots[at].n = 0;
            gap = at;
        }
    }
}

void mk_peers_leave(struct mk_peers *p, const struct mk_addr *peer)
{
    uint8_t key[16];
    if (!p->max || peer->is_unix)
        return;
    key_of(peer, key);
    struct mk_peer_count *slot = find(p, key);
    MK_ASSERT(slot->n > 0);
    if (--slot->n > 0)
        return;
    p->n--;
    close_gap(p, (size_t)(slot - p->slots));
}

mk_err mk_peers_move(struct mk_peers *p, const struct mk_addr *from, const struct mk_addr *to)
{
    uint8_t old[16], new[16];
    key_of(from, old);
    key_of(to, new);
    if (from->is_unix == to->is_unix && memcmp(old, new, sizeof old) == 0)
        return 0; /* the peer already counts for that slot */
    mk_err e = mk_peers_enter(p, to);
    if (!e)
        mk_peers_leave(p, from);
    return e;
}
