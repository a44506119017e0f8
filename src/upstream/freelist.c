/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/freelist.h"

#include "base/mem.h"
#include "base/poison.h"

void *mk_freelist_pop(struct mk_freelist *s)
{
    if (!s->n)
        return mk_mem_alloc(s->size);
    void *block = s->blocks[--s->n];
    MK_UNPOISON(block, s->size);
    return block;
}

void mk_freelist_push(struct mk_freelist *s, void *block)
{
    if (s->n == MK_FREELIST_MAX) {
        mk_mem_free(block);
        return;
    }
    MK_POISON(block, s->size);
    s->blocks[s->n++] = block;
}

void mk_freelist_fini(struct mk_freelist *s)
{
    while (s->n) {
        MK_UNPOISON(s->blocks[s->n - 1], s->size);
        mk_mem_free(s->blocks[--s->n]);
    }
}

void *mk_freelist_alloc(struct mk_freelist *blocks, size_t *size)
{
    if (*size > blocks->size)
        return mk_mem_alloc(*size);
    *size = blocks->size;
    return mk_freelist_pop(blocks);
}

void mk_freelist_dealloc(struct mk_freelist *blocks, void *p, size_t size)
{
    if (p && size == blocks->size)
        mk_freelist_push(blocks, p);
    else
        mk_mem_free(p);
}
