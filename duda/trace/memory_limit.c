/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/memory_limit.h"

#include <stdio.h>
#include <sys/resource.h>

void duda_memory_limit_format(char *buf, size_t cap)
{
    struct rlimit limit;
    buf[0] = '\0';
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(buf, cap, "the process may have %llu MB of data", (unsigned long long)limit.rlim_cur >> 20);
}
