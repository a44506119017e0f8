/* SPDX-License-Identifier: Apache-2.0 */
/* Reads return at once; writes suspend the handler until their commit. */
#include "raw.h"

#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <time.h>

#include "commit_queue.h"
#include "common/package.h"

/* ---- Reading ---- */

/* Reads the kernel's coarse clock, which costs a tenth of the exact clock of monkey/clock.h: a read of the
 * store takes less than a microsecond. The coarse clock lags by up to a few milliseconds, so expired entries
 * stay visible for that long, while measured durations are correct on average. */
static uint64_t coarse_clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t meter_read_begin(uint64_t *meter)
{
    mk_meter_begin(meter);
    return coarse_clock_us(CLOCK_MONOTONIC_COARSE);
}

static void meter_read_end(uint64_t *meter, uint64_t begun, int e)
{
    mk_meter_end(meter, coarse_clock_us(CLOCK_MONOTONIC_COARSE) - begun, package_meter_is_failure(e));
}

static uint64_t unix_now_ms(void)
{
    return coarse_clock_us(CLOCK_REALTIME_COARSE) / 1000;
}

struct copy {
    struct duda_ctx *d;
    mk_str value;
};

static bool copy_value_to_handler(void *ctx, mk_str key, mk_str value)
{
    struct copy *copy = ctx;
    (void)key;
    copy->value = duda_strdup(copy->d, value);
    return false;
}

int kv_raw_get(struct duda_ctx *d, struct duda_kv *kv, mk_str key, mk_str *value)
{
    struct copy copy = {d, MK_STR_NULL};
    uint64_t *meter = package_meter(kv->worker, kv->settings);
    uint64_t begun = meter_read_begin(meter);
    int e = duda_kv_db_get(kv->store, key, unix_now_ms(), copy_value_to_handler, &copy);
    *value = copy.value;
    meter_read_end(meter, begun, e);
    return e ? e : copy.value.p ? 0 : -ENOMEM;
}

struct scan {
    mk_str after;
    bool (*each)(void *ctx, mk_str key, mk_str value);
    void *ctx;
    struct mk_buf texts; /* copy of an entry, because strings in the file are not NUL-terminated */
};

static bool collect_entry(void *ctx, mk_str key, mk_str value)
{
    struct scan *scan = ctx;
    struct mk_buf *texts = &scan->texts;
    if (scan->after.p && mk_str_eq(key, scan->after))
        return true;
    mk_buf_clear(texts);
    mk_buf_add(texts, key);
    mk_buf_add_char(texts, '\0');
    mk_buf_add(texts, value);
    mk_buf_add_char(texts, '\0');
    return !texts->failed &&
           scan->each(scan->ctx, mk_str_of(texts->p, key.len), mk_str_of(texts->p + key.len + 1, value.len));
}

int kv_raw_scan(struct duda_ctx *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    struct scan scan = {after, each, ctx, mk_buf_growing(SIZE_MAX / 2)};
    uint64_t *meter = package_meter(kv->worker, kv->settings);
    uint64_t begun = meter_read_begin(meter);
    (void)d;
    int e = duda_kv_db_scan(kv->store, prefix, after, unix_now_ms(), collect_entry, &scan);
    if (!e && scan.texts.failed)
        e = -ENOMEM;
    mk_buf_free(&scan.texts);
    meter_read_end(meter, begun, e);
    return e;
}

/* ---- Writing ---- */

/* A handler that waits until its batch is durable. */
struct commit {
    struct duda_wait wait;       /* must be first */
    struct duda_kv_batch *batch; /* NULL: committed */
    int error;
    int64_t count;
};

static void on_commit_done(struct duda_kv_batch *b)
{
    struct commit *c = b->ctx;
    if (c) {
        c->batch = NULL;
        c->error = b->error;
        c->count = b->count;
        duda_wait_wake(&c->wait);
    }
    duda_kv_batch_free(b);
}

static void abandon_commit(struct duda_wait *w)
{
    const struct commit *c = (struct commit *)w;
    if (c->batch)
        c->batch->ctx = NULL;
}

static int commit_and_wait(struct commit *c, struct duda_kv_batch *b)
{
    int e = b ? b->error : -ENOMEM;
    if (!e) {
        b->on_done = on_commit_done;
        b->ctx = c;
        e = duda_kv_commit_queue_submit(b->kv, b);
    }
    if (e) {
        duda_kv_batch_free(b);
        return e;
    }
    c->batch = b;
    e = duda_wait_suspend(&c->wait);
    return e ? e : c->error;
}

int kv_raw_commit(struct duda_ctx *d, struct duda_kv_batch *b, int64_t *count)
{
    struct commit c = {.batch = NULL};
    struct package_call call;
    /* The caller passed on ownership of the batch, so it must be freed before a cancelled handler may be
     * terminated. */
    if (duda_cancelled(d)) {
        duda_kv_batch_free(b);
        return duda_suspend(d);
    }
    int e = package_call_begin(&call, d, b && b->kv ? package_meter(b->kv->worker, b->kv->settings) : NULL);
    e = e ? e : duda_wait_begin(d, &c.wait, abandon_commit);
    e = e ? e : commit_and_wait(&c, b);
    duda_wait_end(&c.wait);
    if (!e && count)
        *count = c.count;
    return package_call_end(&call, e);
}

void kv_raw_add(struct duda_kv_batch *b, struct duda_kv_op op)
{
    if (b)
        duda_kv_batch_add_op(b, op);
}

void kv_raw_expect(struct duda_kv_batch *b, mk_str key, mk_str value)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_OP_EXPECT, .key = key, .value = value});
}

void kv_raw_set(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_OP_SET, .key = key, .value = value, .ttl_ms = ttl_ms});
}

void kv_raw_delete(struct duda_kv_batch *b, mk_str key)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_OP_DELETE, .key = key});
}
