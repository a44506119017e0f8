/* SPDX-License-Identifier: Apache-2.0 */
/* Free list of equally sized memory blocks, reused by later requests of the same worker: many requests end
 * and begin in one loop iteration, and a list is faster than the heap. Each block is a separate heap
 * allocation, so it can be freed and resized normally. */
#ifndef MK_UPSTREAM_FREELIST_H
#define MK_UPSTREAM_FREELIST_H

#include <stddef.h>

#include "base/mem.h"
#include "base/poison.h"

enum { MK_FREELIST_MAX = 128 };

struct mk_freelist {
    size_t size; /* block size */
    unsigned n;
    void *blocks[MK_FREELIST_MAX];
};

/* Returns a block with indeterminate contents. NULL: out of memory. */
static inline void *mk_freelist_pop(struct mk_freelist *s)
{
    if (!s->n)
        return mk_mem_alloc(s->size);
    void *block = s->blocks[--s->n];
    MK_UNPOISON(block, s->size);
    return block;
}

static inline void mk_freelist_push(struct mk_freelist *s, void *block)
{
    if (s->n == MK_FREELIST_MAX) {
        mk_mem_free(block);
        return;
    }
    MK_POISON(block, s->size);
    s->blocks[s->n++] = block;
}

static inline void mk_freelist_fini(struct mk_freelist *s)
{
    while (s->n) {
        MK_UNPOISON(s->blocks[s->n - 1], s->size);
        mk_mem_free(s->blocks[--s->n]);
    }
}

/* Allocates any size: a block from the list if large enough, else from the heap. `*size` is the wanted size
 * on entry and the actual size on return. NULL: out of memory. */
static inline void *mk_freelist_alloc(struct mk_freelist *blocks, size_t *size)
{
    if (*size > blocks->size)
        return mk_mem_alloc(*size);
    *size = blocks->size;
    return mk_freelist_pop(blocks);
}

/* Frees the block; `size` is the size that mk_freelist_alloc() returned. */
static inline void mk_freelist_dealloc(struct mk_freelist *blocks, void *p, size_t size)
{
    if (p && size == blocks->size)
        mk_freelist_push(blocks, p);
    else
        mk_mem_free(p);
}

#endif
