/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values in memory that all workers share. It knows no worker. A process may die at any instruction:
 * then the part of the table that it was changing, one of 16, is empty. */
#ifndef DUDA_STORE_TABLE_H
#define DUDA_STORE_TABLE_H

#include <monkey/buf.h>
#include <stdint.h>

enum { STORE_PARTS = 16, STORE_VALUE_MAX = 64 << 10 };

struct store_part;

struct store_table {
    unsigned char *memory;
    size_t part_size;
    uint32_t n_blocks; /* of each part */
    bool gives_way;    /* entries that stay go, too, if no value is near: those that would expire first */
};

/* Uses zeroed memory of that size (1 MB or more), or such that is in use already. 0 or a negated errno value.
 * In one process, before others use it. */
int store_table_init(struct store_table *t, void *memory, size_t size);

/*
 * Times are milliseconds of one clock; an entry is there until `expires` (0: until its room is needed). What
 * the functions answer: 0, -ENOENT, -EEXIST, -ESTALE, -EDOM; -EMSGSIZE: it is too long; -ENOSPC: entries
 * that may not go have all room, as far as one call looks; -EBUSY: another process holds a part of the table for too long.
 */
/* `room` answers as many bytes as are wanted, or NULL: -ENOMEM. */
int store_table_get(const struct store_table *t, mk_str key, uint64_t now,
                    void *(*alloc)(void *ctx, size_t size), void *ctx, mk_str *value);
/* Sets a value that may go when its room is needed. */
int store_table_set(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires);
/* The same if there is one: else -ENOENT. */
int store_table_replace(const struct store_table *t, mk_str key, mk_str value, uint64_t now,
                        uint64_t expires);
/* A short key in place of a long one. It is secret, so that clients cannot choose two with the same. */
enum { STORE_SHORT_KEY = 16 };
void store_table_hash_key(const struct store_table *t, mk_str key, unsigned char out[STORE_SHORT_KEY]);
/* Sets one that stays, if there is none; -EEXIST. */
int store_table_add(const struct store_table *t, mk_str key, mk_str value, uint64_t now, uint64_t expires);
/* The same for a client, whose entries may have half of the room: -EDQUOT. `owner`: 0, or what store_table_client_id() answers. */
int store_table_add_for_client(const struct store_table *t, uint32_t owner, mk_str key, mk_str value,
                               uint64_t now, uint64_t expires);
/* A hash of the client's address; not 0. */
uint32_t store_table_client_id(const struct store_table *t, mk_str address);
/* Removes it: -ENOENT. If `value` is not absent, only if it is this one: else -ESTALE. */
int store_table_delete_if(const struct store_table *t, mk_str key, mk_str value, uint64_t now);
/* Adds to a number that stays. */
int store_table_incr(const struct store_table *t, mk_str key, int64_t delta, uint64_t now, uint64_t expires,
                     int64_t *sum);

#endif
