/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of limits, in memory that all workers share. Its size is fixed, and keys are hashed: a new counter takes the
 * place of one whose time is over, or else of the one in its line that is furthest from its limit. So names that a client
 * makes up take each other's place, and a counter near its limit stays. A process may die at any instruction: then the
 * part of the table that it was changing, one of 16, is empty. */
#ifndef DUDA_STORE_RATE_LIMITER_H
#define DUDA_STORE_RATE_LIMITER_H

#include <monkey/str.h>

enum { STORE_RATE_LIMITER_PARTS = 16, STORE_RATE_LIMITER_WAYS = 8 };

struct store_rate_limiter_part;

struct store_rate_limiter {
    unsigned char *memory;
    size_t part_size;
    uint32_t n_lines; /* of each part */
};

/* Uses zeroed memory of that size (64 KB or more), or such that is in use already. 0 or a negated errno value. In one
 * process, before others use it. */
int store_rate_limiter_init(struct store_rate_limiter *c, void *memory, size_t size);
/* Counts one use of the key, whose time begins with the first and is over at `expires` (milliseconds). 0; -EDQUOT: there
 * were more than `max`; -EBUSY: another process holds a part of the table for too long. */
int store_rate_limiter_count(const struct store_rate_limiter *c, mk_str key, uint64_t max, uint64_t now,
                             uint64_t expires);

#endif
