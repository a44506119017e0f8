/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder, by LMDB: reads, and groups of batches that one commit makes durable. It knows nothing
 * of workers and handlers. Reads belong to one thread, groups to one other. */
#ifndef DUDA_KV_STORE_H
#define DUDA_KV_STORE_H

#include <duda/kv.h>

enum duda_kv_verb {
    DUDA_KV_EXPECT, /* the value must be this, or be absent */
    DUDA_KV_PUT,
    DUDA_KV_DELETE,
    DUDA_KV_TOUCH, /* another time to live */
    DUDA_KV_COUNT
};

struct duda_kv_op {
    enum duda_kv_verb verb;
    mk_str key, value; /* in the batch */
    uint64_t ttl_ms;
    int64_t delta, *result; /* COUNT; result is in the batch, too */
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

struct duda_kv_store;

/* Opens it; makes its files. 0 or a negated errno value; -EIO: they are damaged, or of another LMDB. */
int duda_kv_store_open(const char *folder, uint64_t size_max, bool durable, struct duda_kv_store **out);
void duda_kv_store_close(struct duda_kv_store *s);
/* Calls found(ctx, key, value) for entries from `from` on, as long as they begin with `prefix` and it answers
 * true. 0 or a negated errno value. */
int duda_kv_store_scan(struct duda_kv_store *s, mk_str prefix, mk_str from, uint64_t now_ms,
                       bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Calls found(ctx, key, value) for the entry; -ENOENT. */
int duda_kv_store_get(struct duda_kv_store *s, mk_str key, uint64_t now_ms,
                      bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Does all batches of the list, sets their errors, and removes some that have expired. Returns when it is on
 * disk. Blocks. */
void duda_kv_store_write(struct duda_kv_store *s, struct duda_kv_batch *first, uint64_t now_ms);

/* A batch on the heap; copies what it is given. */
struct duda_kv_batch *duda_kv_batch_make(struct duda_kv *kv);
/* Remembers in batch->error what is wrong with it. */
void duda_kv_batch_add(struct duda_kv_batch *b, struct duda_kv_op op);
void duda_kv_batch_free(struct duda_kv_batch *b);

#endif
