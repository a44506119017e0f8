/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values in memory that all workers share. If a process dies while it changes one of the 16 shards,
 * that shard is emptied. */
#ifndef DUDA_STORE_TABLE_H
#define DUDA_STORE_TABLE_H

#include <monkey/buf.h>
#include <stdint.h>

enum { STORE_SHARDS = 16, STORE_VALUE_MAX = 64 << 10 };

struct store_shard;

struct store_table {
    unsigned char *memory;
    size_t shard_size;
    uint32_t n_blocks;      /* blocks per shard */
    bool evicts_persistent; /* as a last resort, evicts persistent entries, the first to expire first */
};

/* `memory` has `size` bytes (1 MB or more); it is either zeroed or already in use. Returns 0 or a negated
 * errno value. Call it in one process, before other processes use the memory. */
int store_table_init(struct store_table *t, void *memory, size_t size);

/* Times are milliseconds of one clock; an entry lives until `expires` (0: until it is evicted). The functions
 * return 0, -ENOENT, -EEXIST, -ESTALE, -EDOM as in duda/store.h, -EMSGSIZE if the entry is too long, -ENOSPC
 * if none of the entries that one call examines may be evicted, or -EBUSY if another process has held a shard
 * for too long. */
/* alloc() returns a buffer of the requested size; if it returns NULL, the result is -ENOMEM. */
int store_table_get(const struct store_table *t, mk_str key, uint64_t now,
                    void *(*alloc)(void *ctx, size_t size), void *ctx, mk_str *value);
/* Sets a value that may be evicted. */
int store_table_set(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires);
/* Replaces an existing value. Returns -ENOENT if there is none. */
int store_table_replace(const struct store_table *t, mk_str key, mk_str value, uint64_t now,
                        uint64_t expires);
/* Hashes a long key to a short one. The hash is keyed, so clients cannot create collisions. */
enum { STORE_SHORT_KEY = 16 };
void store_table_hash_key(const struct store_table *t, mk_str key, unsigned char out[STORE_SHORT_KEY]);
/* Adds a persistent entry. Returns -EEXIST if the key exists; -EDQUOT: the entries of the client `owner`
 * already take half of the memory. `owner` is 0 or the result of store_table_client_id(). */
int store_table_add(const struct store_table *t, uint32_t owner, mk_str key, mk_str value, uint64_t now,
                    uint64_t expires);
/* Returns a hash of the client address, which is never 0. */
uint32_t store_table_client_id(const struct store_table *t, mk_str address);
/* Deletes the entry; returns -ENOENT if there is none. If `value` is not absent, deletes the entry only if it
 * has this value, and otherwise returns -ESTALE. */
int store_table_delete_if(const struct store_table *t, mk_str key, mk_str value, uint64_t now);
/* Adds `delta` to a number, which is a persistent entry. */
int store_table_incr(const struct store_table *t, mk_str key, int64_t delta, uint64_t now, uint64_t expires,
                     int64_t *sum);

#endif
