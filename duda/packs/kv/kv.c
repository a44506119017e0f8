/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/kv.h: reads answer at once, writes suspend the handler until their commit. */
#include <duda/kv.h>

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>

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

static uint64_t begin_read(struct mk_meter_part *meter)
{
    mk_meter_begin(meter);
    return tick_us(CLOCK_MONOTONIC_COARSE);
}

static void end_read(struct mk_meter_part *meter, uint64_t begun, int e)
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

int duda_kv_get(struct duda *d, struct duda_kv *kv, mk_str key, mk_str *value)
{
    if (!kv) {
        memset(value, 0, sizeof *value);
        return -ENODEV;
    }
    struct copy copy = {d, MK_ABSENT};
    struct mk_meter_part *meter = pack_meter(kv->worker, kv->settings);
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

int duda_kv_scan(struct duda *d, struct duda_kv *kv, mk_str prefix, mk_str after,
                 bool (*each)(void *ctx, mk_str key, mk_str value), void *ctx)
{
    if (!kv)
        return -ENODEV;
    struct scan scan = {after, each, ctx, mk_buf_growing(SIZE_MAX / 2)};
    struct mk_meter_part *meter = pack_meter(kv->worker, kv->settings);
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

/* On the stack of the handler, as long as it waits. */
struct wait {
    struct duda *d;
    bool is_over;
    int error;
    int64_t count;
};

static void on_done(struct duda_kv_batch *b)
{
    struct wait *wait = b->ctx;
    if (wait) {
        wait->is_over = true;
        wait->error = b->error;
        wait->count = b->count;
        duda_wake(wait->d);
    }
    duda_kv_batch_free(b);
}

static int wait_for_commit(struct duda *d, struct duda_kv_batch *b, int64_t *count)
{
    struct wait wait = {.d = d};
    int e = b ? b->error : -ENOMEM;
    if (!e) {
        b->on_done = on_done;
        b->ctx = &wait;
        e = duda_kv_queue_add(b->kv, b);
    }
    if (e) {
        duda_kv_batch_free(b);
        return e;
    }
    while (!wait.is_over && !(e = duda_suspend(d)))
        continue;
    if (!wait.is_over) {
        b->ctx = NULL;
        return e;
    }
    if (count)
        *count = wait.count;
    return wait.error;
}

static int commit(struct duda *d, struct duda_kv_batch *b, int64_t *count)
{
    if (duda_ended(d)) {
        duda_kv_batch_free(b);
        return duda_suspend(d);
    }
    struct mk_meter_part *meter = b && b->kv ? pack_meter(b->kv->worker, b->kv->settings) : NULL;
    uint64_t begun = pack_meter_begin(meter);
    int e = wait_for_commit(d, b, count);
    pack_meter_end(meter, begun, e);
    return e;
}

struct duda_kv_batch *duda_kv_begin(struct duda_kv *kv)
{
    struct duda_kv_batch *b = duda_kv_batch_make(kv);
    if (b && !kv)
        b->error = -ENODEV;
    return b;
}

static void add(struct duda_kv_batch *b, struct duda_kv_op op)
{
    if (b)
        duda_kv_batch_add(b, op);
}

void duda_kv_batch_expect(struct duda_kv_batch *b, mk_str key, mk_str value)
{
    add(b, (struct duda_kv_op){.verb = DUDA_KV_EXPECT, .key = key, .value = value});
}

void duda_kv_batch_put(struct duda_kv_batch *b, mk_str key, mk_str value, uint64_t ttl_ms)
{
    add(b, (struct duda_kv_op){.verb = DUDA_KV_PUT, .key = key, .value = value, .ttl_ms = ttl_ms});
}

void duda_kv_batch_delete(struct duda_kv_batch *b, mk_str key)
{
    add(b, (struct duda_kv_op){.verb = DUDA_KV_DELETE, .key = key});
}

int duda_kv_commit(struct duda *d, struct duda_kv_batch *b)
{
    return commit(d, b, NULL);
}

void duda_kv_abort(struct duda_kv_batch *b)
{
    duda_kv_batch_free(b);
}

/* ---- One operation ---- */

int duda_kv_put(struct duda *d, struct duda_kv *kv, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_begin(kv);
    duda_kv_batch_put(b, key, value, ttl_ms);
    return commit(d, b, NULL);
}

int duda_kv_delete(struct duda *d, struct duda_kv *kv, mk_str key)
{
    struct duda_kv_batch *b = duda_kv_begin(kv);
    duda_kv_batch_delete(b, key);
    return commit(d, b, NULL);
}

int duda_kv_touch(struct duda *d, struct duda_kv *kv, mk_str key, uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_begin(kv);
    add(b, (struct duda_kv_op){.verb = DUDA_KV_TOUCH, .key = key, .ttl_ms = ttl_ms});
    return commit(d, b, NULL);
}

int duda_kv_swap(struct duda *d, struct duda_kv *kv, mk_str key, mk_str expected, mk_str value,
                 uint64_t ttl_ms)
{
    struct duda_kv_batch *b = duda_kv_begin(kv);
    duda_kv_batch_expect(b, key, expected);
    if (value.p)
        duda_kv_batch_put(b, key, value, ttl_ms);
    else
        duda_kv_batch_delete(b, key);
    return commit(d, b, NULL);
}

int duda_kv_count(struct duda *d, struct duda_kv *kv, mk_str key, int64_t delta, uint64_t ttl_ms,
                  int64_t *result)
{
    struct duda_kv_batch *b = duda_kv_begin(kv);
    if (b)
        add(b, (struct duda_kv_op){
                   .verb = DUDA_KV_COUNT, .key = key, .delta = delta, .ttl_ms = ttl_ms, .result = &b->count});
    return commit(d, b, result);
}
