/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of the process (RLIMIT_DATA), such as `Memory` of isolate sets it, and the replacement of a
 * worker that has reached it. */
#ifndef DUDA_SERVICE_MEMORY_LIMIT_H
#define DUDA_SERVICE_MEMORY_LIMIT_H

#include "service/duda_ctx.h"

/* For out-of-memory messages: formats "the process is limited to 64 MB of data"; empty without a limit
 * (RLIMIT_DATA). Async-signal-safe. */
void duda_memory_limit_format(char *buf, size_t cap);
/* Call it when a handler has run out of memory: if the memory limit is still reached when the handler has
 * ended, the master replaces this worker. */
void duda_memory_check_later(struct duda_worker_ctx *worker_ctx);

#endif
