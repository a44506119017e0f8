/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/spare.h"

#include "base/mem.h"
#include "base/poison.h"

void *mk_spare_take(struct mk_spare *s)
{
    if (!s->n)
        return mk_mem_alloc(s->size);
    void *block = s->blocks[--s->n];
    MK_UNPOISON(block, s->size);
    return block;
}

void mk_spare_give(struct mk_spare *s, void *block)
{
    if (s->n == MK_SPARE_MAX) {
        mk_mem_free(block);
        return;
    }
    MK_POISON(block, s->size);
    s->blocks[s->n++] = block;
}

void mk_spare_fini(struct mk_spare *s)
{
    while (s->n) {
        MK_UNPOISON(s->blocks[s->n - 1], s->size);
        mk_mem_free(s->blocks[--s->n]);
    }
}
