/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes started later share. In a library, which starts none, it is from the heap. */
#ifndef MK_OS_SHARED_MEMORY_H
#define MK_OS_SHARED_MEMORY_H

#include <stddef.h>

/* All zero; NULL: there is no memory. */
void *mk_shared_memory_new(size_t size);
void mk_shared_memory_free(void *p, size_t size);

#endif
