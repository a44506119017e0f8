/* SPDX-License-Identifier: Apache-2.0 */
/* The heap. */
#ifndef MONKEY_MEM_H
#define MONKEY_MEM_H

#include <monkey/api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The heap, for what must live longer than a request or shorter than a configuration (those have memory of
 * their own: mk_request_alloc(), mk_config_alloc()). Any of these may answer NULL. From any thread.
 */
MK_API void *mk_mem_alloc(size_t size) MK_API_MUST_USE;
/** n * size bytes of zero; NULL also when that overflows. */
MK_API void *mk_mem_zalloc(size_t n, size_t size) MK_API_MUST_USE;
/** As realloc(3): NULL leaves the old memory as it is. */
MK_API void *mk_mem_realloc(void *old, size_t size) MK_API_MUST_USE;
/** NULL is fine. */
MK_API void mk_mem_free(void *p);

#ifdef __cplusplus
}
#endif

#endif
