/* SPDX-License-Identifier: Apache-2.0 */
/* The table as a store of duda/store.h. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <errno.h>
#include <time.h>

#include "sections.h"
#include "stores.h"

/* In ticks of the kernel, 1 to 10 ms: it is asked for each key. */
uint64_t store_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t end_of(uint64_t ttl_ms)
{
    return ttl_ms ? store_now_ms() + ttl_ms : 0;
}

static const struct store_table *table_of(const struct duda_store *s)
{
    return &((const struct stores *)s->of)->table;
}

/* It takes less time than asking a clock for it. */
static int counted(const struct duda_store *s, int e)
{
    struct mk_meter_part *meter = ((const struct stores *)s->of)->meter;
    mk_meter_begin(meter);
    mk_meter_end(meter, 0, pack_meter_is_failure(e));
    return e;
}

static void *room_of(void *ctx, size_t size)
{
    return duda_alloc(ctx, size);
}

static int get(struct duda *d, struct duda_store *s, mk_str key, mk_str *value)
{
    return counted(s, store_table_get(table_of(s), key, store_now_ms(), room_of, d, value));
}

static int put(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    (void)d;
    return counted(s, store_table_put(table_of(s), key, value, store_now_ms(), end_of(ttl_ms)));
}

static int add(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    (void)d;
    return counted(s, store_table_add(table_of(s), key, value, store_now_ms(), end_of(ttl_ms)));
}

static int remove_value(struct duda *d, struct duda_store *s, mk_str key, mk_str value)
{
    (void)d;
    return counted(s, store_table_remove(table_of(s), key, value, store_now_ms()));
}

static int count(struct duda *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *sum)
{
    (void)d;
    return counted(s, store_table_count(table_of(s), key, delta, store_now_ms(), end_of(ttl_ms), sum));
}

static int replace(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    (void)d;
    return counted(s, store_table_replace(table_of(s), key, value, store_now_ms(), end_of(ttl_ms)));
}

static const struct duda_store_ops ops = {
    .get = get, .put = put, .add = add, .remove = remove_value, .count = count, .replace = replace};

struct duda_store store_in_memory(struct stores *all)
{
    return (struct duda_store){.ops = &ops, .name = MK_STR("memory"), .of = all};
}
