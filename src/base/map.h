/* SPDX-License-Identifier: Apache-2.0 */
/* Hash map from text to pointer, allocated in an arena. Keys are not copied and must live as long as the map.
 * For tables that a configuration fills once and requests read often (host names, types by extension): see
 * mk_hash_trusted(). */
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
/* Sets key to value (not NULL) and replaces an old value; false when out of memory. */
bool mk_map_put(struct mk_map *m, mk_str key, void *value) MK_MUST_USE;
/* Returns the value of the key; NULL if the key is absent. */
void *mk_map_get(const struct mk_map *m, mk_str key);

#endif
