/* SPDX-License-Identifier: Apache-2.0 */
/* A test allocator: each allocation is a separate heap block, so that memory checkers see its bounds; after
 * `pool_left` allocations, memory runs out. */
#ifndef MK_UNIT_READERS_TEST_ALLOCATOR_H
#define MK_UNIT_READERS_TEST_ALLOCATOR_H

#include <monkey/allocator.h>
#include <stdlib.h>

struct pool_piece {
    struct pool_piece *before;
    _Alignas(max_align_t) char buffer[];
};

static struct pool_piece *pool_last;
static size_t pool_left = SIZE_MAX;

static void *pool_alloc(void *ctx, size_t size)
{
    (void)ctx;
    struct pool_piece *p = pool_left ? malloc(sizeof *p + size) : NULL;
    if (!p)
        return NULL;
    pool_left--;
    p->before = pool_last;
    pool_last = p;
    return p->buffer;
}

static const struct mk_allocator pool = {pool_alloc, NULL};

static inline void pool_free(void)
{
    while (pool_last) {
        struct pool_piece *p = pool_last;
        pool_last = p->before;
        free(p);
    }
    pool_left = SIZE_MAX;
}

#endif
