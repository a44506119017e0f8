/* SPDX-License-Identifier: Apache-2.0 */
/* Raw access to all entries of a store. The first letter of a key is its table: `k` for keys of duda/kv.h,
 * other letters for tables of duda-store, `jobs/` for jobs. Services can only name keys of duda/kv.h. */
#ifndef DUDA_KV_RAW_H
#define DUDA_KV_RAW_H

#include "commit_queue.h"

/* Like the functions of duda/kv.h, with full keys of at most DUDA_KV_ROW_KEY_MAX bytes. */
int kv_raw_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value) MK_API_MUST_USE;
int kv_raw_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx) MK_API_MUST_USE;

/* Add an operation to a batch from duda_kv_batch_new(). The batch may be NULL; its commit then fails. */
void kv_raw_add(struct duda_kv_batch *b, struct duda_kv_op op);
void kv_raw_expect(struct duda_kv_batch *b, mk_str key, mk_str value);
void kv_raw_set(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms);
void kv_raw_delete(struct duda_kv_batch *b, mk_str key);
/* Commits the batch. Stores the result of the last INCR in *count, unless `count` is NULL. */
int kv_raw_commit(struct duda_ctx *d, struct duda_kv_batch *b, int64_t *count) MK_API_MUST_USE;

#endif
