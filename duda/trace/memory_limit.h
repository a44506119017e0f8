/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of the memory of this process, for messages about memory that is out. */
#ifndef DUDA_TRACE_MEMORY_LIMIT_H
#define DUDA_TRACE_MEMORY_LIMIT_H

#include <stddef.h>

/* "the process may have 64 MB of data"; empty without a limit (RLIMIT_DATA). Handlers of signals may call it.
 */
void duda_memory_limit_format(char *buf, size_t cap);

#endif
