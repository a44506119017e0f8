/* SPDX-License-Identifier: Apache-2.0 */
/* A [KV] section as a store for duda/store.h. */
#include <duda/memory.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/text.h>

#include "jobs_backend.h"
#include "raw.h"
#include "store_backend.h"

static int kv_store_get(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value)
{
    return kv_raw_get(d, s->ctx, key, value);
}

static int kv_store_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_set(b, key, value, ttl_ms);
    return kv_raw_commit(d, b, NULL);
}

/* Returns -ESTALE if the value differs from `expected`; if `expected` is absent, no value may exist. */
static int kv_store_compare_and_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str expected,
                                    mk_str value, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, key, expected);
    if (value.p)
        kv_raw_set(b, key, value, ttl_ms);
    else
        kv_raw_delete(b, key);
    return kv_raw_commit(d, b, NULL);
}

static int kv_store_add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    int e = kv_store_compare_and_set(d, s, key, MK_STR_NULL, value, ttl_ms);
    return e == -ESTALE ? -EEXIST : e;
}

static int kv_store_delete_if(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value)
{
    if (value.p)
        return kv_store_compare_and_set(d, s, key, value, MK_STR_NULL, 0);
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_delete(b, key);
    return kv_raw_commit(d, b, NULL);
}

static int kv_store_incr(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                         int64_t *sum)
{
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    if (b)
        kv_raw_add(
            b,
            (struct duda_kv_op){
                .verb = DUDA_KV_OP_INCR, .key = key, .delta = delta, .ttl_ms = ttl_ms, .result = &b->count});
    return kv_raw_commit(d, b, sum);
}

static int kv_store_replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                            uint64_t ttl_ms)
{
    mk_str old;
    int e;
    do {
        e = kv_raw_get(d, s->ctx, key, &old);
        e = e ? e : kv_store_compare_and_set(d, s, key, old, value, ttl_ms);
    } while (e == -ESTALE);
    return e;
}

/* The stored value is the time at which the bucket is full, in microseconds since 1970. */
static int take_token(struct duda_ctx *d, struct duda_store *s, mk_str key, uint64_t interval_us,
                      uint64_t refill_us, uint64_t *us)
{
    mk_str old;
    uint64_t now = mk_clock_unix_ms() * 1000, is_full_at = 0;
    int e = kv_raw_get(d, s->ctx, key, &old);
    if (e && e != -ENOENT)
        return e;
    if (old.p && (!mk_num_parse(old, &is_full_at) || is_full_at > now + refill_us))
        is_full_at = 0; /* the clock was set back, or the refill time was reduced */
    *us = (is_full_at > now ? is_full_at - now : 0) + interval_us;
    if (*us > refill_us) {
        *us -= refill_us;
        return -EDQUOT;
    }
    mk_str next = duda_sprintf(d, "%llu", (unsigned long long)(now + *us));
    return next.p ? kv_store_compare_and_set(d, s, key, old, next, *us / 1000 + 1) : -ENOMEM;
}

static int kv_store_token_bucket(struct duda_ctx *d, struct duda_store *s, mk_str key, uint64_t interval_us,
                                 uint64_t refill_us, uint64_t *us)
{
    int e;
    size_t mark = duda_arena_mark(d);
    do {
        duda_arena_rewind(d, mark);
        e = take_token(d, s, key, interval_us, refill_us, us);
    } while (e == -ESTALE);
    duda_arena_rewind(d, mark);
    return e;
}

static const struct duda_store_ops ops = {.get = kv_store_get,
                                          .set = kv_store_set,
                                          .add = kv_store_add,
                                          .delete_if = kv_store_delete_if,
                                          .incr = kv_store_incr,
                                          .replace = kv_store_replace,
                                          .token_bucket = kv_store_token_bucket};

struct duda_store duda_kv_store_backend(struct duda_kv *kv)
{
    return (struct duda_store){
        .ops = &ops, .jobs = &duda_kv_jobs_backend, .name = kv->settings->name, .ctx = kv};
}
