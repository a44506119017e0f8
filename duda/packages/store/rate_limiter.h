/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and token buckets of rate limits, in memory shared by all workers. The table has a fixed size and
 * hashes keys: a new counter replaces an expired one, or else the counter in its bucket that is furthest from
 * its limit. Keys that a client invents thus evict each other, and a counter near its limit stays. If a
 * process dies while it changes one of the 16 shards, that shard is emptied. */
#ifndef DUDA_STORE_RATE_LIMITER_H
#define DUDA_STORE_RATE_LIMITER_H

#include <monkey/str.h>

enum { STORE_RATE_LIMITER_SHARDS = 16, STORE_RATE_LIMITER_WAYS = 8 };

struct store_rate_limiter_shard;

struct store_rate_limiter {
    unsigned char *memory;
    size_t shard_size;
    uint32_t n_lines; /* buckets per shard */
};

/* `memory` has `size` bytes (64 KB or more); it is either zeroed or already in use. Returns 0 or a negated
 * errno value. Call it in one process, before other processes use the memory. */
int store_rate_limiter_init(struct store_rate_limiter *c, void *memory, size_t size);
/* Counts one use of the key. The window starts with the first use and ends at `expires`. Times are in
 * microseconds. Returns 0, -EDQUOT if there were more than `max` uses, or -EBUSY if another process has held
 * the shard for too long. */
int store_rate_limiter_count(const struct store_rate_limiter *c, mk_str key, uint64_t max, uint64_t now,
                             uint64_t expires);
/* Takes a token out of the bucket of the key. One token is refilled in `interval` microseconds, and an empty
 * bucket in `refill`. *left is the time until the bucket is full or, if there is no token (-EDQUOT), until
 * there is one. Also returns -EBUSY. */
int store_rate_limiter_take_token(const struct store_rate_limiter *c, mk_str key, uint64_t interval,
                                  uint64_t refill, uint64_t now, uint64_t *left);

#endif
