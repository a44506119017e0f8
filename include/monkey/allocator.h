/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocator interface, for the results of parsers. Use an allocator in one thread only; for the
 * allocator of a request, that is the thread of its worker. */
#ifndef MONKEY_ALLOCATOR_H
#define MONKEY_ALLOCATOR_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * An allocator for a function's results. Its memory is freed as a whole, for example with the request.
 * alloc() returns `size` bytes aligned for any type, or NULL if memory is exhausted.
 *
 *     static void *alloc_config(void *config, size_t size)
 *     {
 *         return mk_config_alloc(config, size);
 *     }
 *     struct mk_allocator memory = {alloc_config, config};
 */
struct mk_allocator {
    void *(*alloc)(void *ctx, size_t size);
    void *ctx;
};

/** Allocates zeroed memory for n elements; NULL if memory is exhausted or n * size overflows. */
static inline void *mk_allocator_zalloc(const struct mk_allocator *allocator, size_t n, size_t size)
{
    if (size && n > (SIZE_MAX - 1) / size)
        return MK_API_NULL;
    void *p = allocator->alloc(allocator->ctx, n * size + 1);
    if (p)
        memset(p, 0, n * size);
    return p;
}

/** Copies a string; absent if memory is exhausted. */
static inline mk_str mk_allocator_copy(const struct mk_allocator *allocator, mk_str s)
{
    char *p = MK_API_CAST(char *, allocator->alloc(allocator->ctx, s.len ? s.len : 1));
    if (p && s.len)
        memcpy(p, s.p, s.len);
    return mk_str_of(p, p ? s.len : 0);
}

struct mk_request;
/** The allocator of a request: allocates like mk_request_alloc(). In the program `monkey`, this function is
 * in monkey-readers.so. */
MK_API struct mk_allocator mk_request_allocator(struct mk_request *request);

#ifdef __cplusplus
}
#endif

#endif
