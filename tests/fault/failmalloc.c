/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a given number of allocations fail, beginning with the n-th one from now. */
#include <errno.h>

#include "fault/fault.h"

enum {
    AFTER,  /* index of the first failing allocation, counted from now, starting at 1; 0: none */
    COUNT,  /* number of failing allocations */
    MASTER, /* 1: allocations of the master fail; 0: allocations of workers */
    SEEN,   /* number of allocations since the test reset this counter */
    FAILED, /* number of failed allocations */
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static bool shall_fail(void)
{
    if (!fault || in_worker == (atomic_load(&fault[MASTER]) != 0))
        return false;
    atomic_fetch_add(&fault[SEEN], 1);
    int64_t after = atomic_load(&fault[AFTER]);
    if (after > 1)
        atomic_store(&fault[AFTER], after - 1);
    if (after != 1)
        return false;
    if (atomic_fetch_sub(&fault[COUNT], 1) <= 1)
        atomic_store(&fault[AFTER], 0);
    atomic_fetch_add(&fault[FAILED], 1);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return shall_fail() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return shall_fail() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return shall_fail() ? NULL : __libc_realloc(old, size);
}
