/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/limit.h"

#include <stdio.h>
#include <sys/resource.h>

void duda_limit_print(char *room, size_t cap)
{
    struct rlimit limit;
    room[0] = '\0';
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(room, cap, "the process may have %llu MB of data", (unsigned long long)limit.rlim_cur >> 20);
}
