/* SPDX-License-Identifier: Apache-2.0 */
/* Preallocated heap for a library that aborts when an allocation fails: one block, committed by the system on
 * first use, with a free list. */
#ifndef COMPRESS_HEAP_H
#define COMPRESS_HEAP_H

#include <stddef.h>

struct room;

/* Total size `size`. NULL: out of memory. */
struct room *compress_heap_new(size_t size);
void compress_heap_destroy(struct room *r);

/* NULL only if both this heap and the system heap are exhausted. */
void *compress_heap_alloc(struct room *r, size_t size);
void compress_heap_free(struct room *r, void *p);

#endif
