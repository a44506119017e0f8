/* SPDX-License-Identifier: Apache-2.0 */
/* A row of `data` begins with its expiry time as 8 bytes, big-endian; 0: never. The key of its entry in
 * `times` begins with the same bytes, so LMDB sorts these entries by time. */
#include "tables.h"

#include <errno.h>
#include <stdlib.h>

enum { TIME_LEN = 8 };

int duda_kv_lmdb_errno(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_MAP_FULL:
        return -ENOSPC;
    case MDB_READERS_FULL:
        return -EBUSY;
    case MDB_BAD_VALSIZE:
        return -EINVAL;
    default:
        return rc > 0 ? -rc : -EIO;
    }
}

MDB_val duda_kv_to_mdb_val(mk_str s)
{
    union {
        const char *given;
        void *as_void; /* LMDB only reads it */
    } p = {.given = s.p};
    return (MDB_val){s.len, p.as_void};
}

mk_str duda_kv_from_mdb_val(MDB_val v)
{
    return mk_str_of(v.mv_data, v.mv_size);
}

static void encode_time(uint8_t *at, uint64_t ms)
{
    for (unsigned i = 0; i < TIME_LEN; i++)
        at[i] = (uint8_t)(ms >> (56 - 8 * i));
}

static uint64_t decode_time(const uint8_t *at)
{
    uint64_t ms = 0;
    for (unsigned i = 0; i < TIME_LEN; i++)
        ms = ms << 8 | at[i];
    return ms;
}

static uint64_t row_expiry(MDB_val row)
{
    return row.mv_size >= TIME_LEN ? decode_time(row.mv_data) : 0;
}

int duda_kv_tables_row_value(MDB_val row, uint64_t now_ms, mk_str *value)
{
    uint64_t expires = row_expiry(row);
    if (row.mv_size < TIME_LEN)
        return -EIO;
    *value = mk_str_skip(duda_kv_from_mdb_val(row), TIME_LEN);
    return expires && expires <= now_ms ? -ENOENT : 0;
}

int duda_kv_tables_get(const struct duda_kv_tables *tables, MDB_txn *txn, mk_str key, uint64_t now_ms,
                       mk_str *value)
{
    MDB_val name = duda_kv_to_mdb_val(key), row;
    if (key.len == 0 || key.len > DUDA_KV_ROW_KEY_MAX)
        return -EINVAL;
    int rc = mdb_get(txn, tables->data, &name, &row);
    return rc ? duda_kv_lmdb_errno(rc) : duda_kv_tables_row_value(row, now_ms, value);
}

/* ---- Times ---- */

struct time_key {
    uint8_t bytes[TIME_LEN + DUDA_KV_ROW_KEY_MAX];
    MDB_val val;
};

static void make_time_key(struct time_key *out, uint64_t expires, mk_str key)
{
    encode_time(out->bytes, expires);
    memcpy(out->bytes + TIME_LEN, key.p, key.len);
    out->val = (MDB_val){TIME_LEN + key.len, out->bytes};
}

/* Deletes the entry in `times` for the current row of the key. */
static int delete_time_key(const struct duda_kv_tables *tables, MDB_txn *txn, mk_str key)
{
    struct time_key time;
    MDB_val name = duda_kv_to_mdb_val(key), row;
    int rc = mdb_get(txn, tables->data, &name, &row);
    if (rc || !row_expiry(row))
        return rc == MDB_NOTFOUND ? 0 : rc;
    make_time_key(&time, row_expiry(row), key);
    rc = mdb_del(txn, tables->times, &time.val, NULL);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* ---- Operations ---- */

static int put_row_with_expiry(const struct duda_kv_tables *tables, MDB_txn *txn, mk_str key, mk_str value,
                               uint64_t expires)
{
    struct time_key time;
    MDB_val name = duda_kv_to_mdb_val(key), row = {TIME_LEN + value.len, NULL}, nothing = {0, NULL};
    int rc = delete_time_key(tables, txn, key);
    rc = rc ? rc : mdb_put(txn, tables->data, &name, &row, MDB_RESERVE);
    if (rc)
        return rc;
    encode_time(row.mv_data, expires);
    if (value.len)
        memcpy((uint8_t *)row.mv_data + TIME_LEN, value.p, value.len);
    if (!expires)
        return 0;
    make_time_key(&time, expires, key);
    return mdb_put(txn, tables->times, &time.val, &nothing, 0);
}

static uint64_t expiry_time(uint64_t ttl_ms, uint64_t now_ms)
{
    return ttl_ms ? now_ms + ttl_ms : 0;
}

static int delete_entry(const struct duda_kv_tables *tables, MDB_txn *txn, const struct duda_kv_op *op,
                        uint64_t now_ms, int *op_error)
{
    MDB_val name = duda_kv_to_mdb_val(op->key);
    mk_str value;
    *op_error = duda_kv_tables_get(tables, txn, op->key, now_ms, &value);
    int rc = delete_time_key(tables, txn, op->key);
    rc = rc ? rc : mdb_del(txn, tables->data, &name, NULL);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int set_expiry(const struct duda_kv_tables *tables, MDB_txn *txn, const struct duda_kv_op *op,
                      uint64_t now_ms, int *op_error)
{
    mk_str value;
    *op_error = duda_kv_tables_get(tables, txn, op->key, now_ms, &value);
    if (*op_error)
        return 0;
    /* Copies the value, because a write may move data that the transaction has read. */
    struct mk_buf copy = mk_buf_growing(value.len);
    mk_buf_add(&copy, value);
    int rc = copy.failed ? ENOMEM
                         : put_row_with_expiry(tables, txn, op->key, mk_buf_str(&copy),
                                               expiry_time(op->ttl_ms, now_ms));
    mk_buf_free(&copy);
    return rc;
}

/* A decimal number with an optional sign. */
static bool parse_number(mk_str text, int64_t *out)
{
    char buf[24], *end;
    if (!text.len || text.len >= sizeof buf || (text.p[0] != '-' && !mk_char_is_digit(text.p[0])))
        return false;
    memcpy(buf, text.p, text.len);
    buf[text.len] = 0;
    errno = 0;
    long long number = strtoll(buf, &end, 10);
    *out = number;
    return !errno && end == buf + text.len;
}

static int increment_row(const struct duda_kv_tables *tables, MDB_txn *txn, const struct duda_kv_op *op,
                         uint64_t now_ms, int *op_error)
{
    char buf[24];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    MDB_val name = duda_kv_to_mdb_val(op->key), row;
    uint64_t expires = expiry_time(op->ttl_ms, now_ms);
    int64_t number = 0;
    mk_str value;
    int e = duda_kv_tables_get(tables, txn, op->key, now_ms, &value);
    if (!e) {
        if (!parse_number(value, &number))
            *op_error = -EDOM;
        else if (mdb_get(txn, tables->data, &name, &row) == 0)
            expires = row_expiry(row);
    }
    if (!*op_error && __builtin_add_overflow(number, op->delta, &number))
        *op_error = -EDOM;
    if (*op_error)
        return 0;
    *op->result = number;
    mk_buf_addf(&text, "%lld", (long long)number);
    return put_row_with_expiry(tables, txn, op->key, mk_buf_str(&text), expires);
}

int duda_kv_tables_apply(const struct duda_kv_tables *tables, MDB_txn *txn, struct duda_kv_op *op,
                         uint64_t now_ms, int *op_error)
{
    switch (op->verb) {
    case DUDA_KV_OP_SET:
        return put_row_with_expiry(tables, txn, op->key, op->value, expiry_time(op->ttl_ms, now_ms));
    case DUDA_KV_OP_DELETE:
        return delete_entry(tables, txn, op, now_ms, op_error);
    case DUDA_KV_OP_EXPIRE:
        return set_expiry(tables, txn, op, now_ms, op_error);
    case DUDA_KV_OP_INCR:
        return increment_row(tables, txn, op, now_ms, op_error);
    case DUDA_KV_OP_EXPECT:
    default:
        return 0;
    }
}

int duda_kv_tables_purge(const struct duda_kv_tables *tables, MDB_txn *txn, uint64_t now_ms, unsigned n)
{
    MDB_cursor *cursor;
    MDB_val time, nothing;
    int rc = mdb_cursor_open(txn, tables->times, &cursor);
    if (rc)
        return rc;
    while (n-- && !(rc = mdb_cursor_get(cursor, &time, &nothing, MDB_FIRST))) {
        if (time.mv_size <= TIME_LEN || decode_time(time.mv_data) > now_ms)
            break;
        MDB_val name = {time.mv_size - TIME_LEN, (uint8_t *)time.mv_data + TIME_LEN};
        rc = mdb_del(txn, tables->data, &name, NULL);
        if (rc && rc != MDB_NOTFOUND)
            break;
        rc = mdb_cursor_del(cursor, 0);
        if (rc)
            break;
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}
