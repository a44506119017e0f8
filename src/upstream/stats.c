/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/stats.h"

#include <string.h>
#include <unistd.h>

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)

bool mk_stats_open(struct mk_stats *s, struct mk_config *config)
{
    s->shown = mk_config_shared(config, MK_UPSTREAM_STATS, sizeof *s->shown);
    s->memory = mk_config_shared(config, "upstream/health", sizeof *s->memory);
    return s->shown && s->memory;
}

/* ---- Backends: only the master changes their slots ---- */

void mk_stats_hide(struct mk_stats *s, unsigned slot)
{
    mk_stats_info(s, slot)->server[0] = '\0';
}

/* FNV-1a: names come out of the configuration, and two servers with one key would only share their state. */
static uint64_t mix(uint64_t key, mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        key = (key ^ (unsigned char)text.p[i]) * 0x100000001b3;
    return key;
}

static uint64_t key_of(mk_str upstream, mk_str server)
{
    uint64_t key = mix(mix(mix(0xcbf29ce484222325, upstream), MK_STR("\n")), server);
    return key ? key : 1;
}

static void write_name(char room[MK_UPSTREAM_NAME], mk_str name)
{
    name = mk_str_first(name, MK_UPSTREAM_NAME - 1);
    if (name.len)
        memcpy(room, name.p, name.len);
    room[name.len] = '\0';
}

/* Neither what serves now has it, nor what is being loaded. */
static bool is_free(const struct mk_stats *s, const struct mk_stats_plan *plan, unsigned slot)
{
    return !plan->keys[slot] && (slot >= s->shown->n || !s->shown->servers[slot].info.server[0]);
}

/* Its own slot, else one that was never used, else one that the configuration uses no more. */
static bool find_slot(const struct mk_stats *s, const struct mk_stats_plan *plan, uint64_t key,
                      unsigned *slot)
{
    for (*slot = 0; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (plan->keys[*slot] == key)
            return true;
    for (*slot = 0; *slot < s->shown->n; ++*slot)
        if (!plan->keys[*slot] && s->memory->of[*slot].key == key)
            return true;
    for (; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (is_free(s, plan, *slot))
            return true;
    for (*slot = 0; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (is_free(s, plan, *slot))
            return true;
    return false;
}

bool mk_stats_find(const struct mk_stats *s, struct mk_stats_plan *plan, mk_str upstream, mk_str server,
                   unsigned *slot)
{
    uint64_t key = key_of(upstream, server);
    if (!find_slot(s, plan, key, slot))
        return false;
    plan->keys[*slot] = key;
    return true;
}

bool mk_stats_set(struct mk_stats *s, unsigned slot, mk_str upstream, mk_str server)
{
    struct mk_upstream_info *info = mk_stats_info(s, slot);
    struct mk_stats_health *health = mk_stats_health(s, slot);
    uint64_t key = key_of(upstream, server);
    bool is_new = health->key != key;
    if (is_new) {
        memset(&s->shown->servers[slot], 0, sizeof s->shown->servers[slot]);
        *health = (struct mk_stats_health){.key = key};
    }
    write_name(info->upstream, upstream);
    write_name(info->server, server);
    if (slot >= s->shown->n)
        __atomic_store_n(&s->shown->n, slot + 1, __ATOMIC_RELEASE);
    return is_new;
}

void mk_stats_save(struct mk_stats *s, struct mk_stats_former *former)
{
    former->n_shown = ++s->memory->n_shown;
    former->pid = (uint32_t)getpid();
    for (unsigned i = 0; i < s->shown->n; i++) {
        const struct mk_upstream_info *info = mk_stats_info(s, i);
        former->of[i].backup = info->backup;
        former->of[i].weight = info->weight;
        former->of[i].max = info->max;
        former->of[i].first = info->server[0];
    }
}

void mk_stats_restore(struct mk_stats *s, const struct mk_stats_former *former)
{
    bool is_ours = former->pid == (uint32_t)getpid(); /* workers have a copy of former configurations */
    if (!former->n_shown || !is_ours || s->memory->n_shown != former->n_shown)
        return;
    for (unsigned i = 0; i < s->shown->n; i++) {
        struct mk_upstream_info *info = mk_stats_info(s, i);
        info->backup = former->of[i].backup;
        info->weight = former->of[i].weight;
        info->max = former->of[i].max;
        info->server[0] = former->of[i].first;
    }
}

/* ---- Workers ---- */

void mk_stats_clear_row(void *stats, unsigned row)
{
    const struct mk_stats *s = stats;
    uint32_t n = LOAD(&s->shown->n_workers);
    while (n <= row && !__atomic_compare_exchange_n(&s->shown->n_workers, &n, row + 1, true, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED))
        ;
    for (unsigned i = 0; i < LOAD(&s->shown->n); i++)
        memset(mk_stats_cell(s, i, row), 0, sizeof(struct mk_upstream_stats_cell));
}
