/* SPDX-License-Identifier: Apache-2.0 */
/* A list of operations with copies of their keys and values. */
#include "batch.h"

#include <errno.h>
#include <monkey/mem.h>

struct duda_kv_batch *duda_kv_batch_new(struct duda_kv *kv)
{
    struct duda_kv_batch *b = mk_mem_zalloc(1, sizeof *b);
    if (b)
        b->kv = kv;
    return b;
}

static int check_batch_op(const struct duda_kv_batch *b, const struct duda_kv_op *op)
{
    if (!op->key.len || op->key.len > DUDA_KV_ROW_KEY_MAX || op->ttl_ms > DUDA_KV_TTL_MAX)
        return -EINVAL;
    if (op->value.len > DUDA_KV_VALUE_MAX || b->n >= DUDA_KV_BATCH_MAX ||
        b->bytes + op->value.len > DUDA_KV_BATCH_SIZE_MAX)
        return -EMSGSIZE;
    return 0;
}

static bool reserve_batch_op(struct duda_kv_batch *b)
{
    if (b->n < b->cap)
        return true;
    size_t cap = b->cap ? b->cap * 2 : 2;
    struct duda_kv_op *ops = mk_mem_realloc(b->ops, cap * sizeof *ops);
    if (!ops)
        return false;
    b->ops = ops;
    b->cap = cap;
    return true;
}

/* Stores key and value in one allocation, with space for a prefix. */
static bool copy_op_strings(struct duda_kv_op *op)
{
    char *buf = mk_mem_alloc(DUDA_KV_PREFIX_MAX + op->key.len + op->value.len);
    if (!buf)
        return false;
    char *key = buf + DUDA_KV_PREFIX_MAX, *value = key + op->key.len;
    memcpy(key, op->key.p, op->key.len);
    if (op->value.len)
        memcpy(value, op->value.p, op->value.len);
    op->value.p = op->value.p ? value : NULL;
    op->key.p = key;
    op->memory = buf;
    return true;
}

void duda_kv_batch_prefix_keys(struct duda_kv_batch *b, mk_str prefix)
{
    for (size_t i = 0; i < b->n; i++) {
        struct duda_kv_op *op = &b->ops[i];
        char *key = op->memory + DUDA_KV_PREFIX_MAX - prefix.len;
        memcpy(key, prefix.p, prefix.len);
        op->key = mk_str_of(key, prefix.len + op->key.len);
    }
}

void duda_kv_batch_add_op(struct duda_kv_batch *b, struct duda_kv_op op)
{
    b->error = b->error ? b->error : check_batch_op(b, &op);
    if (b->error)
        return;
    if (!reserve_batch_op(b) || !copy_op_strings(&op)) {
        b->error = -ENOMEM;
        return;
    }
    b->bytes += op.value.len;
    b->ops[b->n++] = op;
}

void duda_kv_batch_free(struct duda_kv_batch *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n; i++)
        mk_mem_free(b->ops[i].memory);
    mk_mem_free(b->ops);
    mk_mem_free(b);
}
