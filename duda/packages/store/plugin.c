/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: the stores of a worker, and the state that all kinds of stores share. */
#include <duda/request.h>
#include <duda/session.h>
#include <errno.h>
#include <monkey/plugin.h>

#include "common/package.h"
#include "store.h"

enum { PAGE = 4096 };

struct section {
    uint64_t size;
};

static const struct mk_conf_key keys[] = {
    {.name = "Size",
     .type = MK_CONF_SIZE,
     MK_CONF_AT(struct section, size),
     .default_value = "16M",
     .min = 1 << 20,
     .max = (uint64_t)1 << 36,
     .help = "Memory for the store `memory`, allocated on first use: an eighth for counters of rate limits, "
             "an eighth for locks, the rest for values. A change takes effect when the server is restarted."},
};

PACKAGE_TABLE(store, "STORE", struct section, "Caches, limits and locks in memory for Duda services.");

/* State shared by the workers. */
struct shared {
    struct store_table table, locks;
    struct store_rate_limiter counters;
    struct store_lock_waiters *waiting;
    uint32_t meter;
    uint32_t generation;
};

/* Returns the size of the memory. A reload does not change it, because handlers of the previous configuration
 * may hold locks in that memory. */
static size_t shared_memory_size(struct mk_config *config, const struct section *s)
{
    uint64_t *size = mk_config_shared(config, "duda-store/size", sizeof *size);
    if (!size)
        return 0;
    if (!*size)
        *size = s->size;
    if (*size != s->size)
        mk_config_warn(
            config, s, "Size",
            "the store keeps its contents and its size of %llu bytes until the server is restarted",
            (unsigned long long)*size);
    return (size_t)*size;
}

static int load_plugin(struct mk_config *config, void **data)
{
    const struct section *s = mk_config_settings(config, &table);
    struct shared *shared = mk_config_alloc(config, sizeof *shared);
    if (!s || !shared)
        return -ENOMEM;
    store_worker_set_plugin(&MK_PLUGIN_OF(duda_store));
    size_t size = shared_memory_size(config, s);
    void *memory = size ? duda_shared_memory(config, "duda-store/memory", size) : NULL;
    shared->waiting = mk_config_shared(config, "duda-store/waiting", sizeof *shared->waiting);
    shared->meter = mk_meter_get(config, MK_STR("store"), MK_STR("memory"));
    if (!memory || !shared->waiting)
        return -ENOMEM;
    shared->generation = store_lock_waiters_new_generation(shared->waiting);
    *data = shared;
    shared->table.evicts_persistent = true; /* the separate table of locks evicts none */
    size_t shard = size / 8 / PAGE * PAGE;
    int e = store_rate_limiter_init(&shared->counters, memory, shard);
    e = e ? e : store_table_init(&shared->locks, (unsigned char *)memory + shard, shard);
    return e ? e : store_table_init(&shared->table, (unsigned char *)memory + 2 * shard, size - 2 * shard);
}

/* ---- In a worker ---- */

static int start_store_in_worker(struct mk_worker *w, void *data)
{
    const struct shared *shared = data;
    struct store_worker *all = mk_mem_zalloc(1, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->worker = w;
    all->last = &all->waiters;
    all->waiting = shared->waiting;
    all->table = shared->table;
    all->locks = shared->locks;
    all->counters = shared->counters;
    all->memory = store_memory_backend(all);
    all->meter = mk_worker_cells(w, shared->meter);
    all->slot = store_lock_waiters_slot(shared->generation, mk_worker_index(w));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_store), all);
    return 0;
}

static void stop_store_in_worker(struct mk_worker *w, void *data)
{
    (void)data;
    mk_mem_free(store_worker_get(w));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_store), NULL);
}

static void on_unlock_message(struct mk_worker *w, mk_str message, void *data)
{
    (void)data;
    if (store_worker_get(w))
        store_locks_on_unlock(store_worker_get(w), message);
}

/* ---- Stores of other packages ---- */

int duda_store_register(struct mk_worker *w, struct duda_store *s)
{
    struct store_worker *all = store_worker_get(w);
    mk_str expected = duda_session_store_name(w);
    if (store_worker_find_store(all, s->name) || mk_str_eq(s->name, all->memory.name))
        return -EEXIST;
    s->next = all->first;
    all->first = s;
    if (expected.p && mk_str_eq(expected, s->name)) {
        all->sessions = s;
        store_sessions_enable(all);
    }
    return 0;
}

PACKAGE_PLUGIN(store,
               "Caches, limits, locks and sessions for Duda services, in memory or in the stores of duda-kv "
               "and duda-redis.",
               .sections = sections, .load = load_plugin, .worker_start = start_store_in_worker,
               .worker_stop = stop_store_in_worker, .on_message = on_unlock_message,
               .needs = PACKAGE_NEEDS("duda"));
