/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are applied atomically. */
#ifndef DUDA_KV_BATCH_H
#define DUDA_KV_BATCH_H

#include <duda/kv.h>

enum duda_kv_op_type {
    DUDA_KV_OP_EXPECT, /* requires that the key has this value, or does not exist */
    DUDA_KV_OP_SET,
    DUDA_KV_OP_DELETE,
    DUDA_KV_OP_EXPIRE, /* sets a new expiry time */
    DUDA_KV_OP_INCR
};

/* The longest row key of any table: an expiry time and such a key together have LMDB's maximum key size. */
enum { DUDA_KV_ROW_KEY_MAX = 503, DUDA_KV_PREFIX_MAX = 56 };

struct duda_kv_op {
    enum duda_kv_op_type verb;
    mk_str key, value; /* allocated in the batch */
    uint64_t ttl_ms;
    int64_t delta, *result; /* for INCR; *result is part of the batch */
    char *memory;           /* holds key and value */
};

/* Operations that a commit applies all together, or not at all. */
struct duda_kv_batch {
    struct duda_kv_batch *next;
    struct duda_kv *kv;
    struct duda_kv_op *ops;
    size_t n, cap, bytes;
    int64_t count;                           /* result of the last INCR */
    int error;                               /* result of the commit, or the error of an invalid batch */
    void (*on_done)(struct duda_kv_batch *); /* called in the loop */
    void *ctx;
};

/* Allocates a batch on the heap. The batch copies the keys and values of its operations. */
struct duda_kv_batch *duda_kv_batch_new(struct duda_kv *kv);
/* Adds an operation; on failure, stores the error in batch->error. */
void duda_kv_batch_add_op(struct duda_kv_batch *b, struct duda_kv_op op);
/* Prepends a prefix, of at most DUDA_KV_PREFIX_MAX bytes, to all keys. Call it once. */
void duda_kv_batch_prefix_keys(struct duda_kv_batch *b, mk_str prefix);
void duda_kv_batch_free(struct duda_kv_batch *b);

#endif
