/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocator interface, for the results of parsers. */
#ifndef DUDA_ALLOCATOR_H
#define DUDA_ALLOCATOR_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An allocator for a function's results. Its memory is freed as a whole, for example with the request.
 * alloc() returns `size` bytes aligned for any type, or NULL if memory is exhausted.
 *
 *     static void *from_request(void *request, size_t size)
 *     {
 *         return mk_request_alloc(request, size);
 *     }
 *     struct duda_allocator memory = {from_request, request};
 *
 * duda_allocator_of() returns the allocator of a handler.
 */
struct duda_allocator {
    void *(*alloc)(void *ctx, size_t size);
    void *ctx;
};

/** Allocates zeroed memory for n elements; NULL if memory is exhausted or n * size overflows. */
static inline void *duda_allocator_zalloc(const struct duda_allocator *allocator, size_t n, size_t size)
{
    if (size && n > (SIZE_MAX - 1) / size)
        return NULL;
    void *p = allocator->alloc(allocator->ctx, n * size + 1);
    if (p)
        memset(p, 0, n * size);
    return p;
}

/** Copies a string; absent if memory is exhausted. */
static inline mk_str duda_allocator_copy(const struct duda_allocator *allocator, mk_str s)
{
    char *p = MK_API_CAST(char *, allocator->alloc(allocator->ctx, s.len ? s.len : 1));
    if (p && s.len)
        memcpy(p, s.p, s.len);
    return mk_str_of(p, p ? s.len : 0);
}

struct duda_ctx;
/** The allocator of a handler: allocates like duda_alloc(). */
MK_API struct duda_allocator duda_allocator_of(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
