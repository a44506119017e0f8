/* SPDX-License-Identifier: Apache-2.0 */
/* Free list of equally sized memory blocks, reused by later requests of the same worker: many requests end
 * and begin in one loop iteration, and a list is faster than the heap. Each block is a separate heap
 * allocation, so it can be freed and resized normally. */
#ifndef MK_UPSTREAM_FREELIST_H
#define MK_UPSTREAM_FREELIST_H

#include <stddef.h>

enum { MK_FREELIST_MAX = 128 };

struct mk_freelist {
    size_t size; /* block size */
    unsigned n;
    void *blocks[MK_FREELIST_MAX];
};

/* Returns a block with indeterminate contents. NULL: out of memory. */
void *mk_freelist_pop(struct mk_freelist *s);
void mk_freelist_push(struct mk_freelist *s, void *block);
void mk_freelist_fini(struct mk_freelist *s);

/* Allocates any size: a block from the list if large enough, else from the heap. `*size` is the wanted size
 * on entry and the actual size on return. NULL: out of memory. */
void *mk_freelist_alloc(struct mk_freelist *blocks, size_t *size);
/* Frees the block; `size` is the size that mk_freelist_alloc() has returned. */
void mk_freelist_dealloc(struct mk_freelist *blocks, void *p, size_t size);

#endif
