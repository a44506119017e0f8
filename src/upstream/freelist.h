/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory of one size that ended requests leave to the next ones of the same worker: many of them
 * end and begin in a turn, which takes a heap more time. Each block comes from the heap by itself, so it may
 * be freed and resized as any other. */
#ifndef MK_UPSTREAM_FREELIST_H
#define MK_UPSTREAM_FREELIST_H

#include <stddef.h>

enum { MK_FREELIST_MAX = 128 };

struct mk_freelist {
    size_t size; /* of each */
    unsigned n;
    void *blocks[MK_FREELIST_MAX];
};

/* NULL: out of memory. What is in it is left over. */
void *mk_freelist_pop(struct mk_freelist *s);
void mk_freelist_push(struct mk_freelist *s, void *block);
void mk_freelist_fini(struct mk_freelist *s);

/* Of any size: a block of the list where that is large enough, else memory of the heap. `*size` is how much is wanted, and
 * then how much there is. NULL: out of memory. */
void *mk_freelist_alloc(struct mk_freelist *blocks, size_t *size);
/* `size` as mk_freelist_alloc() returned it. */
void mk_freelist_dealloc(struct mk_freelist *blocks, void *p, size_t size);

#endif
