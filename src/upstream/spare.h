/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory of one size that ended exchanges leave to the next ones of the same worker: many of them
 * end and begin in a turn, which takes a heap more time. Each block comes from the heap by itself, so it may
 * be freed and resized as any other. */
#ifndef MK_UPSTREAM_SPARE_H
#define MK_UPSTREAM_SPARE_H

#include <stddef.h>

enum { MK_SPARE_MAX = 128 };

struct mk_spare {
    size_t size; /* of each */
    unsigned n;
    void *blocks[MK_SPARE_MAX];
};

/* NULL: memory is out. What is in it is left over. */
void *mk_spare_take(struct mk_spare *s);
void mk_spare_give(struct mk_spare *s, void *block);
void mk_spare_fini(struct mk_spare *s);

#endif
