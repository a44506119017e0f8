/* SPDX-License-Identifier: Apache-2.0 */
/* The table as a store of duda/store.h. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <errno.h>

#include "sections.h"
#include "stores.h"

static uint64_t end_of(uint64_t ttl_ms)
{
    return ttl_ms ? mk_clock_ms() + ttl_ms : 0;
}

/* Where an entry is: locks are in a table of their own, which values cannot fill. */
struct spot {
    const struct store_table *table;
    mk_str key;
    unsigned char room[STORE_SHORT_KEY];
};

static void find_spot(const struct duda_store *s, mk_str key, struct spot *spot)
{
    const struct stores *all = s->of;
    *spot = (struct spot){.table = &all->table, .key = key};
    if (key.p[0] == STORES_LOCKS) {
        spot->table = &all->locks;
        store_table_shorten(&all->locks, key, spot->room);
        spot->key = mk_str_of((const char *)spot->room, sizeof spot->room);
    }
}

/* It takes less time than asking a clock for it. */
static int counted(const struct duda_store *s, int e)
{
    uint64_t *meter = ((const struct stores *)s->of)->meter;
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
    struct spot spot;
    find_spot(s, key, &spot);
    return counted(s, store_table_get(spot.table, spot.key, mk_clock_ms(), room_of, d, value));
}

static int put(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot spot;
    (void)d;
    find_spot(s, key, &spot);
    return counted(s, store_table_put(spot.table, spot.key, value, mk_clock_ms(), end_of(ttl_ms)));
}

/* Whose lock it is. A unix socket leads to another server, which has clients of its own. */
static uint32_t owner_of(const struct duda *d, const struct duda_store *s, const struct spot *spot)
{
    const struct stores *all = s->of;
    const struct mk_request *r = spot->table == &all->locks ? duda_request(d) : NULL;
    const struct mk_peer *peer = r ? mk_request_address(r) : NULL;
    struct mk_peer client;
    if (!peer || peer->is_unix)
        return 0;
    mk_peer_client(peer, &client);
    return store_table_owner(spot->table, mk_str_of((const char *)client.ip, sizeof client.ip));
}

static int add(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot spot;
    find_spot(s, key, &spot);
    return counted(s, store_table_add_for(spot.table, owner_of(d, s, &spot), spot.key, value, mk_clock_ms(),
                                          end_of(ttl_ms)));
}

static int remove_value(struct duda *d, struct duda_store *s, mk_str key, mk_str value)
{
    struct spot spot;
    (void)d;
    find_spot(s, key, &spot);
    return counted(s, store_table_remove(spot.table, spot.key, value, mk_clock_ms()));
}

static int count(struct duda *d, struct duda_store *s, mk_str key, int64_t delta, uint64_t ttl_ms,
                 int64_t *sum)
{
    struct spot spot;
    (void)d;
    find_spot(s, key, &spot);
    return counted(s, store_table_count(spot.table, spot.key, delta, mk_clock_ms(), end_of(ttl_ms), sum));
}

static int replace(struct duda *d, struct duda_store *s, mk_str key, mk_str value, uint64_t ttl_ms)
{
    struct spot spot;
    (void)d;
    find_spot(s, key, &spot);
    return counted(s, store_table_replace(spot.table, spot.key, value, mk_clock_ms(), end_of(ttl_ms)));
}

static int limit(struct duda *d, struct duda_store *s, mk_str key, int64_t max, uint64_t window_ms)
{
    const struct stores *all = s->of;
    uint64_t expires = window_ms ? end_of(window_ms) : UINT64_MAX;
    (void)d;
    return counted(
        s, store_counters_use(&all->counters, key, max > 0 ? (uint64_t)max : 0, mk_clock_ms(), expires));
}

static const struct duda_store_ops ops = {.get = get,
                                          .put = put,
                                          .add = add,
                                          .remove = remove_value,
                                          .count = count,
                                          .replace = replace,
                                          .limit = limit};

struct duda_store store_in_memory(struct stores *all)
{
    return (struct duda_store){.ops = &ops, .name = MK_STR("memory"), .of = all};
}
