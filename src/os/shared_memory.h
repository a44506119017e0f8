/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with processes started later. In a library, which starts none, it is heap memory. */
#ifndef MK_OS_SHARED_MEMORY_H
#define MK_OS_SHARED_MEMORY_H

#include <stddef.h>

/* Zeroed; NULL: out of memory. */
void *mk_shared_memory_new(size_t size);
void mk_shared_memory_free(void *p, size_t size);

#endif
