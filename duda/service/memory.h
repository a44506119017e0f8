/* SPDX-License-Identifier: Apache-2.0 */
/* The memory and the duties of a handler: what duda/memory.h promises ends here. */
#ifndef DUDA_SERVICE_MEMORY_H
#define DUDA_SERVICE_MEMORY_H

#include "service/duda_ctx.h"

/* Memory for a handler itself: the worker keeps some for the next ones. NULL: no memory. */
void *duda_memory_acquire_block(struct duda_worker_ctx *worker_ctx, size_t size);
void duda_memory_release_block(struct duda_worker_ctx *worker_ctx, void *memory);

/* Calls what was deferred, the last one first. */
void duda_memory_run_cleanups(struct duda_ctx *d);
/* Gives all memory back. */
void duda_memory_free_chunks(struct duda_ctx *d);
/* Frees what the worker keeps for the next handlers. */
void duda_memory_free_cache(struct duda_worker_ctx *worker_ctx);

#endif
