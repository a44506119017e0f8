/* SPDX-License-Identifier: Apache-2.0 */
/* What entries are in LMDB's tables, and what operations do to them within a transaction. */
#ifndef DUDA_KV_ROWS_H
#define DUDA_KV_ROWS_H

#include <lmdb.h>

#include "batch.h"

struct duda_kv_rows {
    MDB_dbi data, times;
};

/* 0 or a negated errno value for what functions of LMDB answer. */
int duda_kv_error(int rc);
MDB_val duda_kv_val(mk_str s);
mk_str duda_kv_str(MDB_val v);

/* The value of a row; -ENOENT: it has expired. */
int duda_kv_rows_value(MDB_val row, uint64_t now_ms, mk_str *value);
int duda_kv_rows_get(const struct duda_kv_rows *rows, MDB_txn *txn, mk_str key, uint64_t now_ms,
                     mk_str *value);
/* LMDB's result; *soft gets an error after which nothing has changed. */
int duda_kv_rows_do(const struct duda_kv_rows *rows, MDB_txn *txn, struct duda_kv_op *op, uint64_t now_ms,
                    int *soft);
/* Removes up to n entries that have expired. LMDB's result. */
int duda_kv_rows_purge(const struct duda_kv_rows *rows, MDB_txn *txn, uint64_t now_ms, unsigned n);

#endif
