/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/client_limits.h"

#include "base/assert.h"
#include "base/mem.h"

enum { FIRST_CAP = 64 };

void mk_client_limits_init(struct mk_client_limits *p, unsigned max)
{
    *p = (struct mk_client_limits){.hash_key = mk_hash_key_random(), .max = max};
}

void mk_client_limits_fini(struct mk_client_limits *p)
{
    mk_mem_free(p->slots);
    *p = (struct mk_client_limits){0};
}

static void client_key(const struct mk_addr *peer, uint8_t key[16])
{
    struct mk_addr client;
    mk_addr_client_prefix(peer, &client);
    memcpy(key, client.ip, 16);
}

static size_t hash_slot(const struct mk_client_limits *p, const uint8_t key[16])
{
    return (size_t)mk_hash(&p->hash_key, mk_str_of((const char *)key, 16)) & (p->cap - 1);
}

/* Returns the slot of the address, or the free slot where it would be inserted. */
static struct mk_client_limits_slot *find_slot(const struct mk_client_limits *p, const uint8_t key[16])
{
    size_t at = hash_slot(p, key);
    while (p->slots[at].n && memcmp(p->slots[at].ip, key, 16) != 0)
        at = (at + 1) & (p->cap - 1);
    return &p->slots[at];
}

static mk_err grow_slots(struct mk_client_limits *p)
{
    struct mk_client_limits old = *p;
    p->cap = old.cap ? old.cap * 2 : FIRST_CAP;
    p->slots = mk_mem_zalloc(p->cap, sizeof *p->slots);
    if (!p->slots) {
        *p = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].n)
            *find_slot(p, old.slots[i].ip) = old.slots[i];
    mk_mem_free(old.slots);
    return 0;
}

mk_err mk_client_limits_acquire(struct mk_client_limits *p, const struct mk_addr *peer)
{
    uint8_t key[16];
    if (!p->max || peer->is_unix)
        return 0;
    if (p->n * 2 >= p->cap) {
        mk_err e = grow_slots(p);
        if (e)
            return e;
    }
    client_key(peer, key);
    struct mk_client_limits_slot *slot = find_slot(p, key);
    if (slot->n >= p->max)
        return -EDQUOT;
    if (slot->n++ == 0) {
        memcpy(slot->ip, key, 16);
        p->n++;
    }
    return 0;
}

/* Closes the gap that a freed slot leaves: moves later entries, so that linear probing still finds them. */
static void close_probe_gap(struct mk_client_limits *p, size_t gap)
{
    size_t mask = p->cap - 1;
    for (size_t at = (gap + 1) & mask; p->slots[at].n; at = (at + 1) & mask) {
        size_t home = hash_slot(p, p->slots[at].ip);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            p->slots[gap] = p->slots[at];
            p->slots[at].n = 0;
            gap = at;
        }
    }
}

void mk_client_limits_release(struct mk_client_limits *p, const struct mk_addr *peer)
{
    uint8_t key[16];
    if (!p->max || peer->is_unix)
        return;
    client_key(peer, key);
    struct mk_client_limits_slot *slot = find_slot(p, key);
    MK_ASSERT(slot->n > 0);
    if (--slot->n > 0)
        return;
    p->n--;
    close_probe_gap(p, (size_t)(slot - p->slots));
}

mk_err mk_client_limits_transfer(struct mk_client_limits *p, const struct mk_addr *from,
                                 const struct mk_addr *to)
{
    uint8_t old[16], new[16];
    client_key(from, old);
    client_key(to, new);
    if (from->is_unix == to->is_unix && memcmp(old, new, sizeof old) == 0)
        return 0; /* already counted there */
    mk_err e = mk_client_limits_acquire(p, to);
    if (!e)
        mk_client_limits_release(p, from);
    return e;
}
