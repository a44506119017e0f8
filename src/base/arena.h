/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory allocated piece by piece and freed all at once.
 *
 * Blocks of the standard size come from a cache that many arenas share (one per worker), so a request that
 * fits into one block never touches the heap. Cleanups run in reverse order when the arena ends. */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/str.h"

enum { MK_ARENA_BLOCK = 4096, MK_ARENA_ALIGN = 16 };

struct mk_arena_block;

/* Spare blocks of MK_ARENA_BLOCK bytes; at most `max` are kept. */
struct mk_arena_cache {
    struct mk_arena_block *spare;
    size_t n, max;
};

struct mk_arena_cleanup;

struct mk_arena {
    char *next, *end;
    struct mk_arena_block *blocks;
    struct mk_arena_cleanup *cleanups;
    struct mk_arena_cache *cache; /* NULL: blocks go straight to the heap */
    bool failed;   /* sticky: an allocation failed, so whatever was built here may be incomplete */
    bool is_small; /* it was begun with mk_arena_set_first_block() */
};

/* Allocates nothing yet. `cache` may be NULL and must outlive the arena. */
void mk_arena_init(struct mk_arena *a, struct mk_arena_cache *cache);
/* Makes the first block one for `size` bytes, and further ones small, for an arena that lives long and needs
 * less than a usual block. False when out of memory. */
bool mk_arena_set_first_block(struct mk_arena *a, size_t size) MK_MUST_USE;
/* Runs the cleanups and frees all memory. The arena is usable again and `failed` is cleared. */
void mk_arena_fini(struct mk_arena *a);

/* The same for the last time: it may be in its own memory. */
void mk_arena_destroy(struct mk_arena *a);

/* `size` bytes, aligned for any type, not zeroed; NULL when out of memory. */
void *mk_arena_alloc(struct mk_arena *a, size_t size) MK_MUST_USE;
void *mk_arena_alloc_slow(struct mk_arena *a, size_t size) MK_MUST_USE;
/* The same, inlined: for what every request allocates. */
static inline void *mk_arena_alloc_inline(struct mk_arena *a, size_t size)
{
    void *p = a->next;
    if (MK_UNLIKELY(size >= (size_t)(a->end - a->next))) /* the room is a multiple of the alignment */
        return mk_arena_alloc_slow(a, size);
    a->next += (size + MK_ARENA_ALIGN - 1) & ~(size_t)(MK_ARENA_ALIGN - 1);
    return p;
}
void *mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size) MK_MUST_USE;
/* A NUL-terminated copy (the NUL is not counted in its length); absent when out of memory. */
mk_str mk_arena_copy(struct mk_arena *a, mk_str s) MK_MUST_USE;
mk_str mk_arena_printf(struct mk_arena *a, const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;

/* Copies `item` to the end of a vector that only this function makes longer: its memory doubles when its
 * length is a power of two. `vector` is the address of a pointer to the elements, NULL at first; `n` is their
 * number, `size` that of bytes in each. False when out of memory. */
bool mk_arena_append(struct mk_arena *a, void *vector, size_t *n, const void *item, size_t size) MK_MUST_USE;

/* Calls fn(data) when the arena ends. False when out of memory: fn will not be called. */
bool mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data) MK_MUST_USE;

void mk_arena_cache_init(struct mk_arena_cache *c, size_t max);
void mk_arena_cache_fini(struct mk_arena_cache *c);

#endif
