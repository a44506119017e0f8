/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client_memory.h"

#include <monkey/mem.h>

void *mk_client_memory_take(struct mk_spare *blocks, size_t *size)
{
    if (*size > blocks->size)
        return mk_mem_alloc(*size);
    *size = blocks->size;
    return mk_spare_take(blocks);
}

void mk_client_memory_give(struct mk_spare *blocks, void *p, size_t size)
{
    if (p && size == blocks->size)
        mk_spare_give(blocks, p);
    else
        mk_mem_free(p);
}
