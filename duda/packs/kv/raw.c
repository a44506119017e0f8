/* SPDX-License-Identifier: Apache-2.0 */
/* Reads answer at once, writes suspend the handler until their commit. */
#include "raw.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <time.h>

#include "queue.h"
#include "sections.h"

/* ---- Reading ---- */

/* A read takes less than a microsecond. The clock of the kernel's ticks costs a tenth of the exact one, is
 * right on the average, and behind by milliseconds: what has expired is there so much longer. */
static uint64_t tick_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t begin_read(uint64_t *meter)
{
    mk_meter_begin(meter);
    return tick_us(CLOCK_MONOTONIC_COARSE);
}

static void end_read(uint64_t *meter, uint64_t begun, int e)
{
    mk_meter_end(meter, tick_us(CLOCK_MONOTONIC_COARSE) - begun, pack_meter_is_failure(e));
}

static uint64_t now_ms(void)
{
    return tick_us(CLOCK_REALTIME_COARSE) / 1000;
}

struct copy {
    struct duda *d;
    mk_str value;
};

static bool copy_value(void *ctx, mk_str key, mk_str value)
{
    struct copy *copy = ctx;
    (void)key;
    copy->value = duda_copy(copy->d, value);
    return false;
}

int kv_raw_get(struct duda *d, struct duda_kv *kv, mk_str key, mk_str *value)
{
    struct copy copy = {d, MK_ABSENT};
    uint64_t *meter = pack_meter(kv->worker, kv->settings);
    uint64_t begun = begin_read(meter);
    int e = duda_kv_store_get(kv->store, key, now_ms(), copy_value, &copy);
    *value = copy.value;
    end_read(meter, begun, e);
    return e ? e : copy.value.p ? 0 : -ENOMEM;
}

struct scan {
    mk_str after;
    bool (*each)(void *ctx, mk_str key, mk_str value);
    void *ctx;
    struct mk_buf texts; /* of an entry: in the file no NUL follows them */
};

static bool hand_on(void *ctx, mk_str key, mk_str value)
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

int kv_raw_scan(struct duda *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    struct scan scan = {after, each, ctx, mk_buf_growing(SIZE_MAX / 2)};
    uint64_t *meter = pack_meter(kv->worker, kv->settings);
    uint64_t begun = begin_read(meter);
    (void)d;
    int e = duda_kv_store_scan(kv->store, prefix, after, now_ms(), hand_on, &scan);
    if (!e && scan.texts.failed)
        e = -ENOMEM;
    mk_buf_free(&scan.texts);
    end_read(meter, begun, e);
    return e;
}

/* ---- Writing ---- */

/* A handler waits until its batch is durable. */
struct commit {
    struct duda_wait wait;       /* the first */
    struct duda_kv_batch *batch; /* NULL: it is over */
    int error;
    int64_t count;
};

static void on_done(struct duda_kv_batch *b)
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

static void end_commit(struct duda_wait *w)
{
    const struct commit *c = (struct commit *)w;
    if (c->batch)
        c->batch->ctx = NULL;
}

static int commit(struct commit *c, struct duda_kv_batch *b)
{
    int e = b ? b->error : -ENOMEM;
    if (!e) {
        b->on_done = on_done;
        b->ctx = c;
        e = duda_kv_queue_add(b->kv, b);
    }
    if (e) {
        duda_kv_batch_free(b);
        return e;
    }
    c->batch = b;
    e = duda_wait_suspend(&c->wait);
    return e ? e : c->error;
}

int kv_raw_commit(struct duda *d, struct duda_kv_batch *b, int64_t *count)
{
    struct commit c = {.batch = NULL};
    struct pack_call call;
    /* The batch is the caller's no more: it goes before a handler that has ended may be terminated. */
    if (duda_ended(d)) {
        duda_kv_batch_free(b);
        return duda_suspend(d);
    }
    int e = pack_call_begin(&call, d, b && b->kv ? pack_meter(b->kv->worker, b->kv->settings) : NULL);
    e = e ? e : duda_wait_begin(d, &c.wait, end_commit);
    e = e ? e : commit(&c, b);
    duda_wait_end(&c.wait);
    if (!e && count)
        *count = c.count;
    return pack_call_end(&call, e);
}

void kv_raw_add(struct duda_kv_batch *b, struct duda_kv_op op)
{
    if (b)
        duda_kv_batch_add(b, op);
}

void kv_raw_expect(struct duda_kv_batch *b, mk_str key, mk_str value)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_EXPECT, .key = key, .value = value});
}

void kv_raw_put(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_PUT, .key = key, .value = value, .ttl_ms = ttl_ms});
}

void kv_raw_delete(struct duda_kv_batch *b, mk_str key)
{
    kv_raw_add(b, (struct duda_kv_op){.verb = DUDA_KV_DELETE, .key = key});
}
