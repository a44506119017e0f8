/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are done together. */
#ifndef DUDA_KV_BATCH_H
#define DUDA_KV_BATCH_H

#include <duda/kv.h>

enum duda_kv_op_type {
    DUDA_KV_OP_EXPECT, /* the value must be this, or be absent */
    DUDA_KV_OP_SET,
    DUDA_KV_OP_DELETE,
    DUDA_KV_OP_EXPIRE, /* another time to live */
    DUDA_KV_OP_INCR
};

/* The longest key of a row, whoever it belongs to: with a time, it is one of LMDB. */
enum { DUDA_KV_ROW_KEY_MAX = 503, DUDA_KV_PREFIX_MAX = 56 };

struct duda_kv_op {
    enum duda_kv_op_type verb;
    mk_str key, value; /* in the batch */
    uint64_t ttl_ms;
    int64_t delta, *result; /* COUNT; result is in the batch, too */
    char *memory;           /* that key and value are in */
};

/* What is done as a whole or not at all. */
struct duda_kv_batch {
    struct duda_kv_batch *next;
    struct duda_kv *kv;
    struct duda_kv_op *ops;
    size_t n, cap, bytes;
    int64_t count;                           /* result of the last COUNT */
    int error;                               /* what became of it; or why it cannot be done */
    void (*on_done)(struct duda_kv_batch *); /* in the loop */
    void *ctx;
};

/* A batch on the heap; copies what it is given. */
struct duda_kv_batch *duda_kv_batch_new(struct duda_kv *kv);
/* Remembers in batch->error what is wrong with it. */
void duda_kv_batch_add_op(struct duda_kv_batch *b, struct duda_kv_op op);
/* Puts a prefix, of at most DUDA_KV_PREFIX_MAX bytes, in front of all keys. Once. */
void duda_kv_batch_prefix_keys(struct duda_kv_batch *b, mk_str prefix);
void duda_kv_batch_free(struct duda_kv_batch *b);

#endif
