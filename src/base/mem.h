/* SPDX-License-Identifier: Apache-2.0 */
/* The only door to the heap. Every function may answer NULL: at start that is fatal, later it is a 503 or a
 * close. */
#ifndef MK_BASE_MEM_H
#define MK_BASE_MEM_H

#include "base/def.h"

void *mk_mem_alloc(size_t size) MK_MUST_USE;
void *mk_mem_zalloc(size_t n, size_t size) MK_MUST_USE; /* n * size bytes of zero; overflow is NULL */
void *mk_mem_realloc(void *old, size_t size) MK_MUST_USE;
void mk_mem_free(void *p); /* NULL is fine */

#endif
