/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

enum { FIRST_CAP = 16 };

void mk_map_init(struct mk_map *m, struct mk_arena *arena)
{
    *m = (struct mk_map){.arena = arena, .hash_key = mk_hash_key_random()};
}

/* Returns the slot with the key, or the free slot where it would be inserted. */
static struct mk_map_slot *find_slot(const struct mk_map *m, mk_str key)
{
    size_t at = (size_t)mk_hash_trusted(&m->hash_key, key) & (m->cap - 1);
    while (m->slots[at].value && !mk_str_eq(m->slots[at].key, key))
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static bool grow_slots(struct mk_map *m)
{
    struct mk_map old = *m;
    m->cap = old.cap ? old.cap * 2 : FIRST_CAP;
    m->slots = mk_arena_zalloc(m->arena, m->cap, sizeof *m->slots);
    if (!m->slots) {
        *m = old;
        return false;
    }
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].value)
            *find_slot(m, old.slots[i].key) = old.slots[i];
    return true;
}

bool mk_map_put(struct mk_map *m, mk_str key, void *value)
{
    if (m->n * 2 >= m->cap && !grow_slots(m))
        return false;
    struct mk_map_slot *slot = find_slot(m, key);
    if (!slot->value)
        m->n++;
    *slot = (struct mk_map_slot){key, value};
    return true;
}

void *mk_map_get(const struct mk_map *m, mk_str key)
{
    return m->n ? find_slot(m, key)->value : NULL;
}
