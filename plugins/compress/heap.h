/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocated beforehand, for a library that ends the process when an allocation fails: one block, of
 * which the system provides only what is touched, with a list of its free pieces. */
#ifndef COMPRESS_HEAP_H
#define COMPRESS_HEAP_H

#include <stddef.h>

struct room;

/* For `size` bytes in all. NULL when memory is out. */
struct room *compress_heap_new(size_t size);
void compress_heap_destroy(struct room *r);

/* NULL only when neither the room nor the heap has memory. */
void *compress_heap_alloc(struct room *r, size_t size);
void compress_heap_free(struct room *r, void *p);

#endif
