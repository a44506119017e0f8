/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store in a folder, based on LMDB. One thread reads; another one commits groups of batches, with
 * one sync per commit. This code knows neither workers nor handlers. */
#ifndef DUDA_KV_DB_H
#define DUDA_KV_DB_H

#include "batch.h"

struct duda_kv_db;

/* Opens the store, and creates its files if necessary. Returns 0 or a negated errno value; -EIO: the files
 * are damaged, or an incompatible version of LMDB has written them. */
int duda_kv_db_open(const char *folder, uint64_t size_max, bool sync, struct duda_kv_db **out);
void duda_kv_db_close(struct duda_kv_db *s);
/* Calls found(ctx, key, value) for the entries from `from` on, as long as they begin with `prefix` and
 * found() returns true. Returns 0 or a negated errno value. */
int duda_kv_db_scan(struct duda_kv_db *s, mk_str prefix, mk_str from, uint64_t now_ms,
                    bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Calls found(ctx, key, value) for the entry with this key. Returns -ENOENT if there is none. */
int duda_kv_db_get(struct duda_kv_db *s, mk_str key, uint64_t now_ms,
                   bool (*found)(void *ctx, mk_str key, mk_str value), void *ctx);
/* Applies all batches of the list, sets the error of each, and purges some expired entries. Blocks until the
 * data is on disk. */
void duda_kv_db_write(struct duda_kv_db *s, struct duda_kv_batch *first, uint64_t now_ms);

#endif
