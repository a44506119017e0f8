/* SPDX-License-Identifier: Apache-2.0 */
/* Threads share all memory. Takes the place of os/shared_memory.c. */
#include "os/shared_memory.h"

#include "base/mem.h"

void *mk_shared_memory_new(size_t size)
{
    return mk_mem_zalloc(1, size);
}

void mk_shared_memory_free(void *p, size_t size)
{
    (void)size;
    mk_mem_free(p);
}
