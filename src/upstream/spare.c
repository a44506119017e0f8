/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/spare.h"

#include "base/mem.h"

/* The sanitizer reports who uses a block that was given back. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(block, size)   ((void)(block), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(block, size) ((void)(block), (void)(size))
#endif

void *mk_spare_take(struct mk_spare *s)
{
    if (!s->n)
        return mk_mem_alloc(s->size);
    void *block = s->blocks[--s->n];
    ASAN_UNPOISON_MEMORY_REGION(block, s->size);
    return block;
}

void mk_spare_give(struct mk_spare *s, void *block)
{
    if (s->n == MK_SPARE_MAX) {
        mk_mem_free(block);
        return;
    }
    ASAN_POISON_MEMORY_REGION(block, s->size);
    s->blocks[s->n++] = block;
}

void mk_spare_fini(struct mk_spare *s)
{
    while (s->n) {
        ASAN_UNPOISON_MEMORY_REGION(s->blocks[s->n - 1], s->size);
        mk_mem_free(s->blocks[--s->n]);
    }
}
