/* SPDX-License-Identifier: Apache-2.0 */
#include "service/crash_table.h"

#include <errno.h>
#include <monkey/text.h>
#include <signal.h>
#include <unistd.h>

struct duda_crash_table *duda_crash_table_get(struct mk_config *config)
{
    return mk_config_shared(config, "duda.board", sizeof(struct duda_crash_table));
}

/* FNV-1a suffices: the names come from our own program. */
static uint64_t hash_route_name(mk_str name)
{
    uint64_t h = mk_fnv1a(MK_FNV1A_INIT, name);
    return h ? h : 1;
}

struct duda_route_slot *duda_crash_table_add_route(struct duda_crash_table *b, mk_str name)
{
    uint64_t id = hash_route_name(name);
    for (size_t i = 0; i < DUDA_ROUTE_SLOTS; i++) {
        struct duda_route_slot *p = &b->slots[(id + i) % DUDA_ROUTE_SLOTS];
        uint64_t found = 0;
        if (atomic_load(&p->id) == id)
            return p;
        /* Only the master adds routes, while it loads a configuration. Workers may read at the same time. */
        if (atomic_load(&p->id) == 0 && atomic_compare_exchange_strong(&p->id, &found, id)) {
            mk_str text = mk_str_first(name, DUDA_ROUTE_SLOT_NAME_MAX - 1);
            memcpy(p->name, text.p, text.len);
            return p;
        }
    }
    return NULL;
}

static bool is_free_slot(int64_t owner)
{
    return owner == 0;
}

static bool is_dead_process(int64_t owner)
{
    return owner && kill((pid_t)owner, 0) < 0 && errno == ESRCH;
}

static bool is_other_live_process(int64_t owner)
{
    return owner && owner != (int64_t)getpid() && !is_dead_process(owner);
}

/* Returns the first slot of this worker number whose owner matches, or NULL. */
static struct duda_crash_slot *find_crash_slot(struct duda_crash_table *b, unsigned worker,
                                               bool (*is)(int64_t owner), int64_t *owner)
{
    for (unsigned i = 0; b && worker < DUDA_CRASH_WORKERS_MAX && i < DUDA_CRASH_SLOTS_PER_WORKER; i++) {
        *owner = atomic_load(&b->crash_slots[worker][i].pid);
        if (is(*owner))
            return &b->crash_slots[worker][i];
    }
    return NULL;
}

/* Acquires a slot of this worker number whose owner matches; tries the next one if another worker is
 * faster. */
static struct duda_crash_slot *acquire_crash_slot(struct duda_crash_table *b, unsigned worker,
                                                  bool (*is)(int64_t owner))
{
    int64_t owner;
    struct duda_crash_slot *crash_slot;
    do
        crash_slot = find_crash_slot(b, worker, is, &owner);
    while (crash_slot && !atomic_compare_exchange_strong(&crash_slot->pid, &owner, (int64_t)getpid()));
    return crash_slot;
}

struct duda_crash_slot *duda_crash_table_acquire_slot(struct duda_crash_table *b, unsigned worker)
{
    return acquire_crash_slot(b, worker, is_free_slot);
}

struct duda_crash_slot *duda_crash_table_take_dead_slot(struct duda_crash_table *b, unsigned worker)
{
    return acquire_crash_slot(b, worker, is_dead_process);
}

bool duda_crash_table_has_live_peer(struct duda_crash_table *b, unsigned worker)
{
    int64_t owner;
    return find_crash_slot(b, worker, is_other_live_process, &owner);
}

void duda_crash_slot_release(struct duda_crash_slot *crash_slot)
{
    if (!crash_slot)
        return;
    atomic_store(&crash_slot->runs, 0);
    atomic_store(&crash_slot->pid, 0);
}

static bool exceeds_crash_limit(struct duda_route_slot *p, const struct duda_crash_policy *rules, int64_t now)
{
    int64_t window = (int64_t)(rules->window_ms / 1000);
    if (now - atomic_load(&p->since) > window) {
        atomic_store(&p->since, now);
        atomic_store(&p->recent_crashes, 0);
    }
    return atomic_fetch_add(&p->recent_crashes, 1) + 1 >= rules->crashes && rules->crashes;
}

bool duda_route_slot_disable(struct duda_route_slot *p, const struct duda_crash_policy *rules, int64_t now)
{
    if (!p || !rules || atomic_load(&p->closed_until) > now)
        return false;
    atomic_store(&p->closed_until, now + (int64_t)(rules->closed_ms / 1000));
    return true;
}

struct duda_route_slot *duda_crash_table_count_crash(struct duda_crash_table *b,
                                                     struct duda_crash_slot *crash_slot,
                                                     const struct duda_crash_policy *rules, int64_t now,
                                                     bool *closes)
{
    uint32_t runs = atomic_exchange(&crash_slot->runs, 0);
    *closes = false;
    if (runs == 0 || runs > DUDA_ROUTE_SLOTS)
        return NULL;
    struct duda_route_slot *p = &b->slots[runs - 1];
    if (exceeds_crash_limit(p, rules, now)) {
        *closes = duda_route_slot_disable(p, rules, now);
    }
    return p;
}
