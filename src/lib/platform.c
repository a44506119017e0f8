/* SPDX-License-Identifier: Apache-2.0 */
/* Platform functions of libmonkey, which runs in the process of another program. */
#include "base/platform.h"

#include <errno.h>
#include <monkey/server.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Set once, before the first allocation. */
static void *(*resize_with)(void *old, size_t size) = realloc;
static void *(*zalloc_with)(size_t n, size_t size) = calloc; /* NULL: the program's heap has no such
                                                              * function */
static void (*free_with)(void *p) = free;
static atomic_bool in_use;

static void mark_heap_used(void)
{
    if (!atomic_load_explicit(&in_use, memory_order_relaxed))
        atomic_store(&in_use, true);
}

static void *heap_resize(void *old, size_t size)
{
    mark_heap_used();
    return resize_with(old, size);
}

/* Prefers calloc(3), which does not touch pages that the kernel has zeroed. */
static void *heap_zalloc(size_t n, size_t size)
{
    size_t all;
    mark_heap_used();
    if (zalloc_with)
        return zalloc_with(n, size);
    void *p = __builtin_mul_overflow(n, size, &all) ? NULL : resize_with(NULL, all);
    return p ? memset(p, 0, all) : NULL;
}

static void heap_free(void *p)
{
    free_with(p);
}

int mk_mem_set_allocator(void *(*resizes)(void *old, size_t size), void (*frees)(void *p))
{
    if (!resizes || !frees)
        return -EINVAL;
    if (atomic_exchange(&in_use, true))
        return -EBUSY;
    resize_with = resizes;
    zalloc_with = NULL;
    free_with = frees;
    return 0;
}

/* A library prints nothing: the core dump contains the text. */
static void keep_failed_assertion(const char *cond, const char *file, int line)
{
    const char *volatile what = cond;
    const char *volatile where = file;
    volatile int at = line;
    (void)what, (void)where, (void)at;
}

const struct mk_platform mk_platform = {
    .owns_process = false,
    .resize = heap_resize,
    .zalloc = heap_zalloc,
    .free = heap_free,
    .on_bug = keep_failed_assertion,
};
