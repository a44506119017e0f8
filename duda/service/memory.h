/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and cleanups of a handler: the internals of duda/memory.h. */
#ifndef DUDA_SERVICE_MEMORY_H
#define DUDA_SERVICE_MEMORY_H

#include "service/duda_ctx.h"

/* Returns memory for the context of a handler, from a cache of the worker; NULL if out of memory. */
void *duda_memory_acquire_block(struct duda_worker_ctx *worker_ctx, size_t size);
void duda_memory_release_block(struct duda_worker_ctx *worker_ctx, void *memory);

/* Calls the deferred functions in reverse order. */
void duda_memory_run_cleanups(struct duda_ctx *d);
/* Frees all memory of the handler. */
void duda_memory_free_chunks(struct duda_ctx *d);
/* Frees the worker's cache. */
void duda_memory_free_cache(struct duda_worker_ctx *worker_ctx);

/* Returns whether Duda runs in development mode: freed memory is then overwritten with a text, so that a
 * string that a service has kept beyond its lifetime shows. */
bool duda_memory_is_dev_mode(const struct duda_worker_ctx *worker_ctx);
void duda_memory_fill_freed(char *p, size_t n);
/* Does the address belong to the handler's stack, or to memory that duda_memory_free_chunks() frees? */
bool duda_memory_contains(const struct duda_ctx *d, const void *p);
/* Returns the offset of the first pointer to such memory in the data, at a multiple of the size of a pointer, or
 * `size` if there is none. */
size_t duda_memory_find_pointer(const struct duda_ctx *d, const void *data, size_t size);

#endif
