/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of entries in LMDB tables, and the operations on them within a transaction. */
#ifndef DUDA_KV_TABLES_H
#define DUDA_KV_TABLES_H

#include <lmdb.h>

#include "batch.h"

struct duda_kv_tables {
    MDB_dbi data, times;
};

/* Maps a result of LMDB to 0 or a negated errno value. */
int duda_kv_lmdb_errno(int rc);
MDB_val duda_kv_to_mdb_val(mk_str s);
mk_str duda_kv_from_mdb_val(MDB_val v);

/* Gets the value of a row. Returns -ENOENT if the row has expired. */
int duda_kv_tables_row_value(MDB_val row, uint64_t now_ms, mk_str *value);
int duda_kv_tables_get(const struct duda_kv_tables *tables, MDB_txn *txn, mk_str key, uint64_t now_ms,
                       mk_str *value);
/* Applies one operation. Returns LMDB's result; stores an error of the operation, which changed nothing, in
 * *op_error. */
int duda_kv_tables_apply(const struct duda_kv_tables *tables, MDB_txn *txn, struct duda_kv_op *op,
                         uint64_t now_ms, int *op_error);
/* Removes up to n expired entries. Returns LMDB's result. */
int duda_kv_tables_purge(const struct duda_kv_tables *tables, MDB_txn *txn, uint64_t now_ms, unsigned n);

#endif
