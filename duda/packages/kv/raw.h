/* SPDX-License-Identifier: Apache-2.0 */
/* All entries of a store, whoever they belong to. Their keys begin with a letter for the table that they are in: `k` for
 * what services keep by duda/kv.h, those of duda-store for its own, `jobs/` for jobs. Services cannot name the others. */
#ifndef DUDA_KV_RAW_H
#define DUDA_KV_RAW_H

#include "commit_queue.h"

/* As the functions of duda/kv.h, with whole keys: at most DUDA_KV_ROW_KEY_MAX bytes. */
int kv_raw_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value) MK_API_MUST_USE;
int kv_raw_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx) MK_API_MUST_USE;

/* A batch that duda_kv_batch_new() has made; NULL is fine, and fails when it is committed. */
void kv_raw_add(struct duda_kv_batch *b, struct duda_kv_op op);
void kv_raw_expect(struct duda_kv_batch *b, mk_str key, mk_str value);
void kv_raw_set(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms);
void kv_raw_delete(struct duda_kv_batch *b, mk_str key);
/* *count, unless NULL, gets the result of the last COUNT. */
int kv_raw_commit(struct duda_ctx *d, struct duda_kv_batch *b, int64_t *count) MK_API_MUST_USE;

#endif
