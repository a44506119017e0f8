/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/keys_list.h"

#include <string.h>

bool mk_keys_list_grow(struct mk_arena *arena, void **at, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 8;
    void *p = mk_arena_zalloc(arena, more, size);
    if (!p)
        return false;
    if (n)
        memcpy(p, *at, n * size);
    *at = p;
    *cap = more;
    return true;
}
