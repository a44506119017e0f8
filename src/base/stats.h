/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics registry in shared memory: the internal part of its API. Lock-free, because a worker may die at
 * any instruction. The master validates the numbers that it reads, because a compromised worker may have
 * written them. Strings are checked when they are returned; a compromised worker can still change them
 * afterwards. */
#ifndef MK_BASE_STATS_H
#define MK_BASE_STATS_H

#include <monkey/stats.h>

#include "base/str.h"

/* Returns the size in bytes of a registry; the caller provides zeroed memory for it. */
size_t mk_stat_size(void);

/* Clears the gauges of a row whose worker has exited. */
void mk_stat_clear_gauges(struct mk_stat_registry *r, unsigned row);

#endif
