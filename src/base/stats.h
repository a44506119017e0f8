/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of statistics in memory that processes share: what the server needs of it beyond its public part. No lock
 * guards it, because a worker may die at any instruction. Numbers read from it are checked: a worker in an attacker's
 * hands must not harm the master. Texts are checked when they are handed out; such a worker can still change them
 * afterwards. */
#ifndef MK_BASE_STATS_H
#define MK_BASE_STATS_H

#include <monkey/stats.h>

#include "base/str.h"

/* Of zeroed memory. */
size_t mk_stat_size(void);

/* The worker of this row has ended: its gauges are over. */
void mk_stat_clear_gauges(struct mk_stat_registry *r, unsigned row);

#endif
