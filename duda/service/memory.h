/* SPDX-License-Identifier: Apache-2.0 */
/* The memory and the duties of a handler: what duda/memory.h promises ends here. */
#ifndef DUDA_SERVICE_MEMORY_H
#define DUDA_SERVICE_MEMORY_H

#include "service/duda_type.h"

/* Memory for a handler itself: the worker keeps some for the next ones. NULL: no memory. */
void *duda_memory_take(struct duda_home *home, size_t size);
void duda_memory_give(struct duda_home *home, void *memory);

/* Calls what was deferred, the last one first. */
void duda_memory_run_duties(struct duda *d);
/* Gives all memory back. */
void duda_memory_free(struct duda *d);
/* Frees what the worker keeps for the next handlers. */
void duda_memory_stop(struct duda_home *home);

#endif
