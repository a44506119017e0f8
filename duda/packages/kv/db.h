/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder, by LMDB: reads, and groups of batches that one commit makes durable. It knows nothing
 * of workers and handlers. Reads belong to one thread, groups to one other. */
#ifndef DUDA_KV_DB_H
#define DUDA_KV_DB_H

#include "batch.h"

struct duda_kv_db;

/* Opens it; makes its files. 0 or a negated errno value; -EIO: they are damaged, or of another LMDB. */
int duda_kv_db_open(const char *folder, uint64_t size_max, bool durable, struct duda_kv_db **out);
void duda_kv_db_close(struct duda_kv_db *s);
/* Calls found(ctx, key, value) for entries from `from` on, as long as they begin with `prefix` and it answers
 * true. 0 or a negated errno value. */
int duda_kv_db_scan(struct duda_kv_db *s, mk_str prefix, mk_str from, uint64_t now_ms,
                    bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Calls found(ctx, key, value) for the entry; -ENOENT. */
int duda_kv_db_get(struct duda_kv_db *s, mk_str key, uint64_t now_ms,
                   bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Does all batches of the list, sets their errors, and removes some that have expired. Returns when it is on
 * disk. Blocks. */
void duda_kv_db_write(struct duda_kv_db *s, struct duda_kv_batch *first, uint64_t now_ms);

#endif
