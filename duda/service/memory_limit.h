/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of the process (RLIMIT_DATA), which the key `Memory` of isolate sets, for example, and the
 * replacement of a worker that has reached it. */
#ifndef DUDA_SERVICE_MEMORY_LIMIT_H
#define DUDA_SERVICE_MEMORY_LIMIT_H

#include "service/duda_ctx.h"

/* Formats the limit for out-of-memory messages: "the process is limited to 64 MB of data". Writes an empty
 * string if there is no limit. Async-signal-safe. */
void duda_memory_limit_format(char *buf, size_t cap);
/* Call it when a handler has run out of memory: if the memory limit is still reached when the handler has
 * ended, the master replaces this worker. */
void duda_memory_check_later(struct duda_worker_ctx *worker_ctx);

#endif
