/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include "base/platform.h"

void *mk_mem_alloc(size_t size)
{
    return mk_platform.resize(NULL, size ? size : 1);
}

void *mk_mem_zalloc(size_t n, size_t size)
{
    return mk_platform.zalloc(n ? n : 1, size ? size : 1);
}

void *mk_mem_realloc(void *old, size_t size)
{
    return mk_platform.resize(old, size ? size : 1);
}

void mk_mem_free(void *p)
{
    if (p)
        mk_platform.free(p);
}
