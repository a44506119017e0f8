/* SPDX-License-Identifier: Apache-2.0 */
#include "os/shared_memory.h"

#include <sys/mman.h>

void *mk_shared_memory_new(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void mk_shared_memory_free(void *p, size_t size)
{
    munmap(p, size);
}
