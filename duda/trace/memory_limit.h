/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of this process, for out-of-memory messages. */
#ifndef DUDA_TRACE_MEMORY_LIMIT_H
#define DUDA_TRACE_MEMORY_LIMIT_H

#include <stddef.h>

/* Formats "the process may have 64 MB of data"; empty without a limit (RLIMIT_DATA). Async-signal-safe. */
void duda_memory_limit_format(char *buf, size_t cap);

#endif
