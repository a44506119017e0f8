/* SPDX-License-Identifier: Apache-2.0 */
#include "os/shared_memory.h"

#include <sys/mman.h>

#include "base/mem.h"
#include "base/platform.h"

void *mk_shared_memory_new(size_t size)
{
    if (!mk_platform.owns_process)
        return mk_mem_zalloc(1, size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void mk_shared_memory_free(void *p, size_t size)
{
    if (mk_platform.owns_process)
        munmap(p, size);
    else
        mk_mem_free(p);
}
