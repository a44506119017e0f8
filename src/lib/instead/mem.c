/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, which may be another one than that of the libc. Takes the place of base/mem.c. */
#include "base/mem.h"

#include <errno.h>
#include <monkey/server.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Set once, before anything is allocated. */
static void *(*resize_with)(void *old, size_t size) = realloc;
static void *(*zeros_with)(size_t n,
                           size_t size) = calloc; /* touches no page that is zero; NULL: a heap without it */
static void (*free_with)(void *p) = free;
static atomic_bool in_use;

static void use(void)
{
    if (!atomic_load_explicit(&in_use, memory_order_relaxed))
        atomic_store(&in_use, true);
}

static void *resize(void *old, size_t size)
{
    use();
    return resize_with(old, size ? size : 1);
}

int mk_mem_use(void *(*resizes)(void *old, size_t size), void (*frees)(void *p))
{
    if (!resizes || !frees)
        return -EINVAL;
    if (atomic_exchange(&in_use, true))
        return -EBUSY;
    resize_with = resizes;
    zeros_with = NULL;
    free_with = frees;
    return 0;
}

void *mk_mem_alloc(size_t size)
{
    return resize(NULL, size);
}

void *mk_mem_zalloc(size_t n, size_t size)
{
    size_t all;
    use();
    if (zeros_with)
        return zeros_with(n ? n : 1, size ? size : 1);
    void *p = __builtin_mul_overflow(n, size, &all) ? NULL : resize(NULL, all);
    return p ? memset(p, 0, all) : NULL;
}

void *mk_mem_realloc(void *old, size_t size)
{
    return resize(old, size);
}

void mk_mem_free(void *p)
{
    if (p)
        free_with(p);
}
