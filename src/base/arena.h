/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory allocated piece by piece and freed all at once.
 *
 * Blocks of the standard size come from a cache that many arenas share (one per worker), so a request that
 * fits into one block never touches the heap. Destroying the arena runs its cleanups in reverse order. */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/str.h"

enum { MK_ARENA_BLOCK = 3072, MK_ARENA_ALIGN = 16 };

struct mk_arena_block;

/* Free list of blocks of MK_ARENA_BLOCK bytes, at most `max`. */
struct mk_arena_cache {
    struct mk_arena_block *spare;
    size_t n, max;
};

struct mk_arena_cleanup;

struct mk_arena {
    char *next, *end;
    struct mk_arena_block *blocks;
    struct mk_arena_cleanup *cleanups;
    struct mk_arena_cache *cache; /* NULL: blocks come straight from the heap */
    bool failed;   /* sticky: an allocation failed, so data built in the arena may be incomplete */
    bool is_small; /* initialized with mk_arena_set_first_block() */
};

/* Initializes an arena, which allocates nothing yet. `cache` may be NULL and must outlive the arena. */
void mk_arena_init(struct mk_arena *a, struct mk_arena_cache *cache);
/* Allocates a first block with space for `size` bytes, and makes later blocks small, for a long-lived arena
 * that needs less than a standard block. False: out of memory. */
bool mk_arena_set_first_block(struct mk_arena *a, size_t size) MK_MUST_USE;
/* Runs the cleanups and frees all memory. The arena is usable again and `failed` is cleared. */
void mk_arena_fini(struct mk_arena *a);

/* Like mk_arena_fini(), but does not reinitialize the struct, which may be in the memory of the arena
 * itself. */
void mk_arena_destroy(struct mk_arena *a);

/* Returns `size` bytes, aligned for any type, not zeroed; NULL: out of memory. */
void *mk_arena_alloc(struct mk_arena *a, size_t size) MK_MUST_USE;
void *mk_arena_alloc_slow(struct mk_arena *a, size_t size) MK_MUST_USE;
/* mk_arena_alloc(), inlined, for allocations that every request makes. */
static inline void *mk_arena_alloc_inline(struct mk_arena *a, size_t size)
{
    void *p = a->next;
    if (MK_UNLIKELY(size >= (size_t)(a->end - a->next))) /* free space is a multiple of the alignment */
        return mk_arena_alloc_slow(a, size);
    a->next += (size + MK_ARENA_ALIGN - 1) & ~(size_t)(MK_ARENA_ALIGN - 1);
    return p;
}
void *mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size) MK_MUST_USE;
/* Returns a NUL-terminated copy, whose length does not include the NUL; absent: out of memory. */
mk_str mk_arena_copy(struct mk_arena *a, mk_str s) MK_MUST_USE;
mk_str mk_arena_printf(struct mk_arena *a, const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;

/* Appends a copy of `item` to a vector that only this function extends: its memory doubles when its length is
 * a power of two. `vector` is the address of a pointer to the elements, initially NULL; `n` is the number of
 * elements, `size` the size of each in bytes. False: out of memory. */
bool mk_arena_append(struct mk_arena *a, void *vector, size_t *n, const void *item, size_t size) MK_MUST_USE;

/* Registers fn(data), to be called when the arena is destroyed. False: out of memory; fn will not be
 * called. */
bool mk_arena_add_cleanup(struct mk_arena *a, void (*fn)(void *data), void *data) MK_MUST_USE;

void mk_arena_cache_init(struct mk_arena_cache *c, size_t max);
void mk_arena_cache_fini(struct mk_arena_cache *c);

#endif
