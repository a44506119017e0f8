/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with one end: what is taken piece by piece is given back all at once.
 *
 * Blocks of the standard size come from a cache that many arenas share (one per worker), so that a request
 * that fits into one block never meets the heap. Cleanups run in reverse order when the arena ends. */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <stdarg.h>

#include "base/str.h"

enum { MK_ARENA_BLOCK = 4096 };

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
};

/* Takes no memory yet. `cache` may be NULL and must outlive the arena. */
void mk_arena_init(struct mk_arena *a, struct mk_arena_cache *cache);
/* Runs the cleanups and gives all memory back; the arena is usable again. */
void mk_arena_fini(struct mk_arena *a);

/* `size` bytes, aligned for any type, not set to zero; NULL when memory is out. */
void *mk_arena_alloc(struct mk_arena *a, size_t size) MK_MUST_USE;
void *mk_arena_zalloc(struct mk_arena *a, size_t n, size_t size) MK_MUST_USE;
/* A copy that is followed by a NUL (not counted in its length); absent when memory is out. */
mk_str mk_arena_copy(struct mk_arena *a, mk_str s) MK_MUST_USE;
mk_str mk_arena_printf(struct mk_arena *a, const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;

/* Calls fn(data) when the arena ends. False when memory is out: nothing will be called. */
bool mk_arena_on_end(struct mk_arena *a, void (*fn)(void *data), void *data) MK_MUST_USE;

void mk_arena_cache_init(struct mk_arena_cache *c, size_t max);
void mk_arena_cache_fini(struct mk_arena_cache *c);

#endif
