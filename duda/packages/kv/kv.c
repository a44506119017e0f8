/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/kv.h: keys of a service start with its scope. */
#include <duda/kv.h>

#include <duda/request.h>
#include <duda/scope.h>
#include <errno.h>

#include "raw.h"

struct full_key {
    char buf[2 + DUDA_SCOPE_MAX + 1 + DUDA_KV_KEY_MAX];
};
_Static_assert(sizeof(struct full_key) <= DUDA_KV_ROW_KEY_MAX, "each key of a service has a row");

static mk_str scope_key(struct duda_ctx *d, mk_str key, struct full_key *full)
{
    struct mk_buf text = mk_buf_fixed(full->buf, sizeof full->buf);
    mk_buf_add(&text, MK_STR("k:"));
    duda_scope_add(&text, duda_scope(d), key);
    return text.failed ? MK_STR_NULL : mk_buf_str(&text);
}

/* ---- Reads ---- */

int duda_kv_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value)
{
    struct full_key full;
    *value = MK_STR_NULL;
    if (!kv)
        return -ENODEV;
    if (!key.len || key.len > DUDA_KV_KEY_MAX)
        return -EINVAL;
    return kv_raw_get(d, kv, scope_key(d, key, &full), value);
}

struct scan {
    size_t skip; /* length of the key prefix that the service does not see */
    bool (*each)(void *ctx, mk_str key, mk_str value);
    void *ctx;
};

static bool pass_entry_without_scope(void *ctx, mk_str key, mk_str value)
{
    const struct scan *scan = ctx;
    return scan->each(scan->ctx, mk_str_skip(key, scan->skip), value);
}

int duda_kv_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                 bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    struct full_key from, first, none;
    struct scan scan = {scope_key(d, MK_STR(""), &none).len, each, ctx};
    if (!kv)
        return -ENODEV;
    if (prefix.len > DUDA_KV_KEY_MAX || after.len > DUDA_KV_KEY_MAX)
        return -EINVAL;
    mk_str start = after.p ? scope_key(d, after, &from) : MK_STR_NULL;
    return kv_raw_scan(d, kv, scope_key(d, prefix, &first), start, pass_entry_without_scope, &scan);
}

/* ---- Writes ---- */

struct duda_kv_batch *duda_kv_batch_begin(struct duda_kv *kv)
{
    struct duda_kv_batch *b = duda_kv_batch_new(kv);
    if (b && !kv)
        b->error = -ENODEV;
    return b;
}

/* The commit adds the scope to the keys, because the service is not known until then. */
static void append_to_batch(struct duda_kv_batch *b, struct duda_kv_op op)
{
    if (b && op.key.len > DUDA_KV_KEY_MAX)
        b->error = b->error ? b->error : -EINVAL;
    else
        kv_raw_add(b, op);
}

void duda_kv_batch_expect(struct duda_kv_batch *b, mk_str key, mk_str value)
{
    append_to_batch(b, (struct duda_kv_op){.verb = DUDA_KV_OP_EXPECT, .key = key, .value = value});
}

void duda_kv_batch_set(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms)
{
    append_to_batch(
        b, (struct duda_kv_op){.verb = DUDA_KV_OP_SET, .key = key, .value = value, .ttl_ms = ttl_ms});
}

void duda_kv_batch_delete(struct duda_kv_batch *b, mk_str key)
{
    append_to_batch(b, (struct duda_kv_op){.verb = DUDA_KV_OP_DELETE, .key = key});
}

static int commit_batch(struct duda_ctx *d, struct duda_kv_batch *b, int64_t *count)
{
    struct full_key none;
    if (b)
        duda_kv_batch_prefix_keys(b, scope_key(d, MK_STR(""), &none));
    return kv_raw_commit(d, b, count);
}

int duda_kv_batch_commit(struct duda_ctx *d, struct duda_kv_batch *b)
{
    return commit_batch(d, b, NULL);
}

void duda_kv_batch_abort(struct duda_kv_batch *b)
{
    duda_kv_batch_free(b);
}

/* ---- Single operations ---- */

int duda_kv_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_set(b, key, value, ttl_ms);
    return commit_batch(d, b, NULL);
}

int duda_kv_delete(struct duda_ctx *d, struct duda_kv *kv, mk_str key)
{
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_delete(b, key);
    return commit_batch(d, b, NULL);
}

int duda_kv_expire(struct duda_ctx *d, struct duda_kv *kv, mk_str key, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    append_to_batch(b, (struct duda_kv_op){.verb = DUDA_KV_OP_EXPIRE, .key = key, .ttl_ms = ttl_ms});
    return commit_batch(d, b, NULL);
}

int duda_kv_compare_and_set(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str expected, mk_str value,
                            uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    duda_kv_batch_expect(b, key, expected);
    if (value.p)
        duda_kv_batch_set(b, key, value, ttl_ms);
    else
        duda_kv_batch_delete(b, key);
    return commit_batch(d, b, NULL);
}

int duda_kv_incr(struct duda_ctx *d, struct duda_kv *kv, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *result)
{
    struct duda_kv_batch *b = duda_kv_batch_begin(kv);
    if (b)
        append_to_batch(
            b,
            (struct duda_kv_op){
                .verb = DUDA_KV_OP_INCR, .key = key, .delta = delta, .ttl_ms = ttl_ms, .result = &b->count});
    return commit_batch(d, b, result);
}
