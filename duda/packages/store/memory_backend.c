/* SPDX-License-Identifier: Apache-2.0 */
/* The shared table as a store of duda/store.h. */
#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>

#include "common/package.h"
#include "store.h"

static uint64_t expiry_time(uint64_t ttl_ms)
{
    return ttl_ms ? mk_clock_ms() + ttl_ms : 0;
}

/* The table of an entry: locks have a separate table, which values cannot fill. */
struct spot {
    const struct store_table *table;
    mk_str key;
    unsigned char buf[STORE_SHORT_KEY];
};

static void find_table(const struct duda_store *s, mk_str key, struct spot *conf)
{
    const struct store_worker *all = s->ctx;
    *conf = (struct spot){.table = &all->table, .key = key};
    if (key.p[0] == STORE_KEY_LOCK) {
        conf->table = &all->locks;
        store_table_hash_key(&all->locks, key, conf->buf);
        conf->key = mk_str_of((const char *)conf->buf, sizeof conf->buf);
    }
}

/* Reading a clock would take longer than the operation. */
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

static int get(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str *value)
{
    struct spot conf;
    find_table(s, key, &conf);
    return record_operation(s, store_table_get(conf.table, conf.key, mk_clock_ms(), alloc_result, d, value));
}

static int put(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot conf;
    (void)d;
    find_table(s, key, &conf);
    return record_operation(s,
                            store_table_set(conf.table, conf.key, value, mk_clock_ms(), expiry_time(ttl_ms)));
}

/* The client that holds the lock. Requests over a Unix socket come from another server, which has clients of
 * its own. */
static uint32_t lock_client_id(const struct duda_ctx *d, const struct duda_store *s, const struct spot *conf)
{
    const struct store_worker *all = s->ctx;
    const struct mk_request *r = conf->table == &all->locks ? duda_request(d) : NULL;
    const struct mk_addr *peer = r ? mk_request_client_addr(r) : NULL;
    struct mk_addr client;
    if (!peer || peer->is_unix)
        return 0;
    mk_addr_client(peer, &client);
    return store_table_client_id(conf->table, mk_str_of((const char *)client.ip, sizeof client.ip));
}

static int add(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot conf;
    find_table(s, key, &conf);
    return record_operation(s, store_table_add_for_client(conf.table, lock_client_id(d, s, &conf), conf.key,
                                                          value, mk_clock_ms(), expiry_time(ttl_ms)));
}

static int remove_value(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value)
{
    struct spot conf;
    (void)d;
    find_table(s, key, &conf);
    return record_operation(s, store_table_delete_if(conf.table, conf.key, value, mk_clock_ms()));
}

static int count(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *sum)
{
    struct spot conf;
    (void)d;
    find_table(s, key, &conf);
    return record_operation(
        s, store_table_incr(conf.table, conf.key, delta, mk_clock_ms(), expiry_time(ttl_ms), sum));
}

static int replace(struct duda_ctx *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot conf;
    (void)d;
    find_table(s, key, &conf);
    return record_operation(
        s, store_table_replace(conf.table, conf.key, value, mk_clock_ms(), expiry_time(ttl_ms)));
}

static int limit(struct duda_ctx *d, struct duda_store *s, mk_str key, int64_t max, uint64_t window_ms)
{
    const struct store_worker *all = s->ctx;
    uint64_t expires = window_ms ? expiry_time(window_ms) : UINT64_MAX;
    (void)d;
    return record_operation(s, store_rate_limiter_count(&all->counters, key, max > 0 ? (uint64_t)max : 0,
                                                        mk_clock_ms(), expires));
}

static const struct duda_store_ops ops = {.get = get,
                                          .set = put,
                                          .add = add,
                                          .delete_if = remove_value,
                                          .incr = count,
                                          .replace = replace,
                                          .rate_limit = limit};

struct duda_store store_memory_backend(struct store_worker *all)
{
    return (struct duda_store){.ops = &ops, .name = MK_STR("memory"), .ctx = all};
}
