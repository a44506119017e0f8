/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdlib.h>

void *mk_mem_alloc(size_t size)
{
    return malloc(size ? size : 1);
}

void *mk_mem_zalloc(size_t n, size_t size)
{
    return calloc(n ? n : 1, size ? size : 1);
}

void *mk_mem_realloc(void *old, size_t size)
{
    return realloc(old, size ? size : 1);
}

void mk_mem_free(void *p)
{
    free(p);
}
