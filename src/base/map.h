/* SPDX-License-Identifier: Apache-2.0 */
/* A table from text to pointer. Keys are not copied: they must live as long as the map, whose memory is an
 * arena's. For tables that are filled once and read often (names of hosts, types by suffix). */
#ifndef MK_BASE_MAP_H
#define MK_BASE_MAP_H

#include "base/arena.h"
#include "base/hash.h"

struct mk_map_slot {
    mk_str key;
    void *value;
};

struct mk_map {
    struct mk_arena *arena;
    struct mk_hash_key hash_key;
    struct mk_map_slot *slots;
    size_t n, cap;
};

void mk_map_init(struct mk_map *m, struct mk_arena *arena);
/* Sets key to value (not NULL), over an old one if there is one; false when memory is out. */
bool mk_map_put(struct mk_map *m, mk_str key, void *value) MK_MUST_USE;
/* NULL if the key is not there. */
void *mk_map_get(const struct mk_map *m, mk_str key);

#endif
