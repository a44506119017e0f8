/* SPDX-License-Identifier: Apache-2.0 */
/* The shared table as a store of duda/store.h. */
#include <duda/memory.h>
#include <duda/request.h>

#include "common/package.h"
#include "store.h"

static uint64_t expiry_time(uint64_t ttl_ms)
{
    uint64_t now = mk_clock_ms();
    return !ttl_ms ? 0 : ttl_ms < UINT64_MAX - now ? now + ttl_ms : UINT64_MAX;
}

/* The table of an entry, and its key there. Locks have a separate table, which values cannot fill. */
struct table_entry {
    const struct store_table *table;
    mk_str key;
    unsigned char buf[STORE_SHORT_KEY];
};

static void find_table(const struct duda_store *s, mk_str key, struct table_entry *entry)
{
    const struct store_worker *all = s->ctx;
    *entry = (struct table_entry){.table = &all->table, .key = key};
    if (key.p[0] == STORE_KEY_LOCK) {
        entry->table = &all->locks;
        store_table_hash_key(&all->locks, key, entry->buf);
        entry->key = mk_str_of((const char *)entry->buf, sizeof entry->buf);
    }
}

/* Counts an operation without measuring its time: reading a clock would take longer than the operation. */
static int record_operation(const struct duda_store *s, int e)
{
    uint64_t *meter = ((const struct store_worker *)s->ctx)->meter;
    mk_meter_begin(meter);
    mk_meter_end(meter, 0, package_meter_is_failure(e));
    return e;
}

static void *alloc_result(void *ctx, size_t size)
{
    return duda_alloc(ctx, size);
}

static int memory_store_get(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value)
{
    struct table_entry entry;
    find_table(s, key, &entry);
    return record_operation(s,
                            store_table_get(entry.table, entry.key, mk_clock_ms(), alloc_result, d, value));
}

static int memory_store_set(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                            uint64_t ttl_ms)
{
    struct table_entry entry;
    (void)d;
    find_table(s, key, &entry);
    return record_operation(
        s, store_table_set(entry.table, entry.key, value, mk_clock_ms(), expiry_time(ttl_ms)));
}

/* Returns the ID of the client that holds the lock; 0 if it is unknown. Requests over a Unix socket come from
 * another server, which serves many clients. */
static uint32_t lock_client_id(struct duda_ctx *d, const struct duda_store *s,
                               const struct table_entry *entry)
{
    const struct store_worker *all = s->ctx;
    const struct mk_request *r = entry->table == &all->locks ? duda_request(d) : NULL;
    const struct mk_addr *peer = r ? mk_request_client_addr(r) : NULL;
    struct mk_addr client;
    if (!peer || peer->is_unix)
        return 0;
    mk_addr_client_prefix(peer, &client);
    return store_table_client_id(entry->table, mk_str_of((const char *)client.ip, sizeof client.ip));
}

static int memory_store_add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                            uint64_t ttl_ms)
{
    struct table_entry entry;
    find_table(s, key, &entry);
    return record_operation(s, store_table_add(entry.table, lock_client_id(d, s, &entry), entry.key, value,
                                               mk_clock_ms(), expiry_time(ttl_ms)));
}

static int memory_store_delete_if(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value)
{
    struct table_entry entry;
    (void)d;
    find_table(s, key, &entry);
    return record_operation(s, store_table_delete_if(entry.table, entry.key, value, mk_clock_ms()));
}

static int memory_store_incr(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta,
                             uint64_t ttl_ms, int64_t *sum)
{
    struct table_entry entry;
    (void)d;
    find_table(s, key, &entry);
    return record_operation(
        s, store_table_incr(entry.table, entry.key, delta, mk_clock_ms(), expiry_time(ttl_ms), sum));
}

static int memory_store_replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value,
                                uint64_t ttl_ms)
{
    struct table_entry entry;
    (void)d;
    find_table(s, key, &entry);
    return record_operation(
        s, store_table_replace(entry.table, entry.key, value, mk_clock_ms(), expiry_time(ttl_ms)));
}

static int memory_store_rate_limit(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t max,
                                   uint64_t window_ms)
{
    const struct store_worker *all = s->ctx;
    uint64_t now = mk_clock_us(), window = window_ms < UINT64_MAX / 2000 ? window_ms * 1000 : 0;
    (void)d;
    return record_operation(s, store_rate_limiter_count(&all->counters, key, max > 0 ? (uint64_t)max : 0, now,
                                                        window ? now + window : UINT64_MAX));
}

static int memory_store_token_bucket(struct duda_ctx *d, struct duda_store *s, mk_str key,
                                     uint64_t interval_us, uint64_t refill_us, uint64_t *us)
{
    const struct store_worker *all = s->ctx;
    (void)d;
    return record_operation(
        s, store_rate_limiter_take_token(&all->counters, key, interval_us, refill_us, mk_clock_us(), us));
}

static const struct duda_store_ops ops = {.get = memory_store_get,
                                          .set = memory_store_set,
                                          .add = memory_store_add,
                                          .delete_if = memory_store_delete_if,
                                          .incr = memory_store_incr,
                                          .replace = memory_store_replace,
                                          .rate_limit = memory_store_rate_limit,
                                          .token_bucket = memory_store_token_bucket};

struct duda_store store_memory_backend(struct store_worker *all)
{
    return (struct duda_store){.ops = &ops, .name = MK_STR("memory"), .ctx = all};
}
