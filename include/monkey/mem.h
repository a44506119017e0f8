/* SPDX-License-Identifier: Apache-2.0 */
/* Heap allocation. */
#ifndef MONKEY_MEM_H
#define MONKEY_MEM_H

#include <monkey/api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Heap memory for objects that outlive a request, or that must be freed before their configuration is.
 * Requests and configurations have their own memory: mk_request_alloc() and mk_config_alloc(). All allocation
 * functions may return NULL. Thread-safe.
 *
 *     struct person *people = mk_mem_zalloc(10, sizeof *people);
 *     if (!people)
 *         return -ENOMEM;
 *     ...
 *     mk_mem_free(people);
 */
MK_API void *mk_mem_alloc(size_t size) MK_API_MUST_USE;
/** Allocates n * size zeroed bytes. Also returns NULL on overflow. */
MK_API void *mk_mem_zalloc(size_t n, size_t size) MK_API_MUST_USE;
/** Like realloc(3): on failure, returns NULL and keeps the old block. */
MK_API void *mk_mem_realloc(void *old, size_t size) MK_API_MUST_USE;
/** Frees a block; NULL is allowed. */
MK_API void mk_mem_free(void *block);
/** Returns free heap memory to the system, like malloc_trim(3), which takes milliseconds for a large heap.
 * Does nothing if the C library has no such function. */
MK_API void mk_mem_trim(void);

#ifdef __cplusplus
}
#endif

#endif
