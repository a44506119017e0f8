/* SPDX-License-Identifier: Apache-2.0 */
/* A preallocated heap for a library that aborts when an allocation fails: a single block with a free list.
 * The system commits its memory on first use. */
#ifndef COMPRESS_HEAP_H
#define COMPRESS_HEAP_H

#include <stddef.h>

struct heap;

/* Allocates a heap with a total size of `size`. Returns NULL if out of memory. */
struct heap *compress_heap_new(size_t size);
void compress_heap_destroy(struct heap *r);

/* Returns NULL only if both this heap and the system heap are exhausted. */
void *compress_heap_alloc(struct heap *r, size_t size);
void compress_heap_free(struct heap *r, void *p);

#endif
