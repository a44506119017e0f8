/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/stats.h"

#include <monkey/text.h>
#include <string.h>
#include <unistd.h>

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)

#define GAUGE       .kind = MK_STAT_GAUGE
#define COUNTER     .kind = MK_STAT_COUNTER
#define CONNECTIONS "monkey_upstream_connections"

static const struct mk_stat_metric metrics[] = {
    [MK_UPSTREAM_STATS_STATE] = {.column = "state",
                                 GAUGE,
                                 .value_names = "up slow_start down unresolved draining removed ejected"},
    [MK_UPSTREAM_STATS_BACKUP] = {.column = "backup", GAUGE},
    [MK_UPSTREAM_STATS_WEIGHT] = {.column = "weight", GAUGE},
    [MK_UPSTREAM_STATS_BUSY] = {.name = CONNECTIONS,
                                .help = "Connections to the server; busy: in use, or connecting.",
                                .column = "busy",
                                GAUGE,
                                .label = "state",
                                .value = "busy"},
    [MK_UPSTREAM_STATS_IDLE] =
        {.name = CONNECTIONS, .column = "idle", GAUGE, .label = "state", .value = "idle"},
    [MK_UPSTREAM_STATS_MAX] = {.column = "limit", GAUGE, .is_optional = true},
    [MK_UPSTREAM_STATS_WAITING] =
        {.name = "monkey_upstream_waiting",
         .help = "Requests that wait for a connection; those for any server of an upstream are with "
                 "its first one.",
         .column = "waiting",
         GAUGE},
    [MK_UPSTREAM_STATS_LATENCY] =
        {.name = "monkey_upstream_latency_seconds",
         .help = "Time until a response begins, as a moving average over the last requests.",
         .column = "latency",
         GAUGE,
         .is_time = true,
         .is_optional = true},
    [MK_UPSTREAM_STATS_REQUESTS] =
        {.name = "monkey_upstream_requests_total",
         .help = "Requests that got a connection to the server, repeated ones included.",
         .column = "requests",
         COUNTER},
    [MK_UPSTREAM_STATS_FAILURES] =
        {.name = "monkey_upstream_failures_total",
         .help = "Attempts to connect or to get a response that failed because of the server.",
         .column = "failures",
         COUNTER},
    [MK_UPSTREAM_STATS_CHECKS] = {.name = "monkey_upstream_checks_total",
                                  .help = "Health checks of the server.",
                                  .column = "checks",
                                  COUNTER},
    [MK_UPSTREAM_STATS_CHECKS_FAILED] = {.name = "monkey_upstream_checks_failed_total",
                                         .help = "Health checks that the server failed.",
                                         .column = "checks_failed",
                                         COUNTER},
    [MK_UPSTREAM_STATS_IS_UP] =
        {.name = "monkey_upstream_up",
         .help = "1: the server gets requests; 0: it is down, drains, or its name has no address.",
         GAUGE},
    [MK_UPSTREAM_STATS_REASON] =
        {.name = "monkey_upstream_check_reason",
         .help =
             "Why the last health check failed: 1 refused, 2 timeout, 3 unreachable, 4 closed, 5 invalid, "
             "6 TLS, 7 status, 8 text; 0: it passed.",
         .column = "reason",
         GAUGE,
         .value_names = "- refused timeout unreachable closed invalid tls status text"},
    [MK_UPSTREAM_STATS_EJECTIONS] = {.name = "monkey_upstream_ejections_total",
                                     .help = "Times that the server was ejected, because of its errors.",
                                     COUNTER},
};

static const struct mk_stat_table table = {
    .name = "upstreams", .labels = {"server", "upstream"}, .metrics = metrics, .n_metrics = MK_LEN(metrics)};

bool mk_upstream_stats_init(struct mk_upstream_stats *s, struct mk_config *config)
{
    s->registry = mk_config_statistics(config);
    s->memory = mk_config_shared(config, "upstream/health", sizeof *s->memory);
    s->admin = s->memory ? s->memory->admin[0] : NULL;
    s->table = s->registry ? mk_stat_register_table(s->registry, &table) : 0;
    return s->registry && s->memory;
}

/* ---- Backends: only the master changes their slots ---- */

static bool is_series_used(const struct mk_upstream_stats *s, uint32_t series)
{
    unsigned n = __atomic_load_n(&s->memory->n, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++) {
        const struct mk_upstream_stats_health *h = &s->memory->of[i];
        if (h->key && !h->is_hidden && h->series == series && LOAD(&s->admin[i].mode) < MK_SERVER_REMOVED)
            return true;
    }
    return false;
}

void mk_upstream_stats_hide_series(const struct mk_upstream_stats *s, uint32_t series)
{
    if (series && !is_series_used(s, series))
        mk_stat_hide(s->registry, series, true);
}

static void set_slot_hidden(const struct mk_upstream_stats *s, unsigned slot, bool is_hidden)
{
    s->memory->of[slot].is_hidden = is_hidden;
    if (is_hidden)
        mk_upstream_stats_hide_series(s, s->memory->of[slot].series);
    else
        mk_stat_hide(s->registry, s->memory->of[slot].series, false);
}

void mk_upstream_stats_hide_slot(struct mk_upstream_stats *s, unsigned slot)
{
    set_slot_hidden(s, slot, true);
}

/* FNV-1a: the names come from the configuration, and a collision would only make two servers share their
 * state. */
uint64_t mk_upstream_stats_key(mk_str upstream, mk_str server)
{
    uint64_t key = mk_fnv1a(mk_fnv1a_byte(mk_fnv1a(MK_FNV1A_INIT, upstream), '\n'), server);
    return key ? key : 1;
}

uint64_t mk_upstream_stats_server_id(const struct mk_hash_key *key, mk_str upstream, mk_str server)
{
    char buf[2 * MK_UPSTREAM_NAME + 512];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&text, upstream);
    mk_buf_add_char(&text, '\n');
    mk_buf_add(&text, server);
    return mk_hash(key, mk_buf_str(&text));
}

/* Is the slot used by neither the active configuration nor the one being loaded? */
static bool is_slot_free(const struct mk_upstream_stats *s, const struct mk_upstream_stats_plan *plan,
                         unsigned slot)
{
    return !plan->keys[slot] && (slot >= s->memory->n || s->memory->of[slot].is_hidden);
}

/* Finds the server's own slot, or else a new slot, or else a slot that the active configuration does not
 * use. */
static bool find_server_slot(const struct mk_upstream_stats *s, const struct mk_upstream_stats_plan *plan,
                             uint64_t key, unsigned *slot)
{
    for (*slot = 0; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (plan->keys[*slot] == key)
            return true;
    for (*slot = 0; *slot < s->memory->n; ++*slot)
        if (!plan->keys[*slot] && s->memory->of[*slot].key == key)
            return true;
    for (; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (is_slot_free(s, plan, *slot))
            return true;
    for (*slot = 0; *slot < MK_UPSTREAM_SERVERS; ++*slot)
        if (is_slot_free(s, plan, *slot))
            return true;
    return false;
}

bool mk_upstream_stats_plan_slot(const struct mk_upstream_stats *s, struct mk_upstream_stats_plan *plan,
                                 mk_str upstream, mk_str server, unsigned *slot)
{
    uint64_t key = mk_upstream_stats_key(upstream, server);
    if (!find_server_slot(s, plan, key, slot))
        return false;
    plan->keys[*slot] = key;
    return true;
}

bool mk_upstream_stats_is_active(const struct mk_upstream_stats *s, uint64_t key)
{
    for (unsigned i = 0; i < s->memory->n; i++)
        if (s->memory->of[i].key == key && !s->memory->of[i].is_hidden)
            return true;
    return false;
}

bool mk_upstream_stats_assign_slot(struct mk_upstream_stats *s, unsigned slot, mk_str upstream, mk_str server)
{
    struct mk_upstream_stats_health *health = mk_upstream_stats_health(s, slot);
    uint64_t key = mk_upstream_stats_key(upstream, server);
    const mk_str names[] = {server, upstream};
    bool is_new = health->key != key;
    if (is_new) {
        *health = (struct mk_upstream_stats_health){.key = key};
        memset(s->memory->idle[slot], 0, sizeof s->memory->idle[slot]);
    }
    health->is_hidden = false;
    health->series = mk_stat_series(s->registry, s->table, names);
    if (slot >= s->memory->n)
        __atomic_store_n(&s->memory->n, slot + 1, __ATOMIC_RELEASE);
    return is_new;
}

void mk_upstream_stats_reserve_slot(struct mk_upstream_stats *s, unsigned slot, uint64_t key)
{
    struct mk_upstream_stats_health *health = mk_upstream_stats_health(s, slot);
    if (health->key != key) {
        *health = (struct mk_upstream_stats_health){.key = key};
        memset(s->memory->idle[slot], 0, sizeof s->memory->idle[slot]);
    }
    set_slot_hidden(s, slot, true);
    health->is_hidden = false;
    health->series = 0; /* the configuration may contain the server that had the slot */
    if (slot >= s->memory->n)
        __atomic_store_n(&s->memory->n, slot + 1, __ATOMIC_RELEASE);
}

void mk_upstream_stats_set_server(const struct mk_upstream_stats *s, unsigned slot, bool backup,
                                  unsigned weight, unsigned max)
{
    uint64_t *cells = mk_upstream_stats_shared(s, slot);
    __atomic_store_n(&mk_upstream_stats_health(s, slot)->max, max, __ATOMIC_RELAXED);
    if (!cells)
        return;
    mk_stat_set(&cells[MK_UPSTREAM_STATS_BACKUP], backup);
    mk_stat_set(&cells[MK_UPSTREAM_STATS_WEIGHT], weight);
    mk_stat_set(&cells[MK_UPSTREAM_STATS_MAX], max);
}

static struct mk_upstream_stats_admin *admin_of(const struct mk_upstream_stats *s, uint64_t serial)
{
    return s->memory->admin[serial & 1];
}

static void set_admin(struct mk_upstream_stats_admin *a, enum mk_server_mode mode, unsigned weight)
{
    __atomic_store_n(&a->weight, weight, __ATOMIC_RELAXED);
    __atomic_store_n(&a->mode, mode, __ATOMIC_RELEASE);
}

void mk_upstream_stats_set_mode(const struct mk_upstream_stats *s, unsigned slot, enum mk_server_mode mode,
                                unsigned weight)
{
    uint64_t *cells = mk_upstream_stats_shared(s, slot);
    struct mk_upstream_stats_admin *latest = admin_of(s, LOAD(&s->memory->n_published));
    set_admin(&s->admin[slot], mode, weight);
    if (latest != s->admin && LOAD(&s->memory->is_repeated))
        set_admin(&latest[slot], mode, weight);
    if (weight && cells)
        mk_stat_set(&cells[MK_UPSTREAM_STATS_WEIGHT], weight);
}

const struct mk_upstream_stats_admin *
mk_upstream_stats_former_admin(const struct mk_upstream_stats *s,
                               const struct mk_upstream_stats_snapshot *former, unsigned slot)
{
    return &admin_of(s, former->serial - 1)[slot];
}

void mk_upstream_stats_keep_mode(const struct mk_upstream_stats *s, unsigned slot)
{
    const struct mk_upstream_stats_admin *a = &s->admin[slot]; /* a copy: see mk_upstream_stats_save() */
    mk_upstream_stats_set_mode(s, slot, (enum mk_server_mode)LOAD(&a->mode), LOAD(&a->weight));
}

void mk_upstream_stats_save(struct mk_upstream_stats *s, struct mk_upstream_stats_snapshot *former,
                            bool is_repeated)
{
    __atomic_store_n(&s->memory->is_repeated, is_repeated, __ATOMIC_RELAXED);
    former->is_repeated = is_repeated;
    former->serial = ++s->memory->n_published;
    former->pid = (uint32_t)getpid();
    s->admin = admin_of(s, former->serial);
    memcpy(s->admin, admin_of(s, former->serial - 1), sizeof s->memory->admin[0]);
    for (unsigned i = 0; i < s->memory->n; i++) {
        const uint64_t *cells = mk_upstream_stats_shared(s, i);
        former->of[i].is_hidden = s->memory->of[i].is_hidden;
        former->of[i].is_vacant = s->admin[i].mode >= MK_SERVER_REMOVED;
        former->of[i].max = s->memory->of[i].max;
        former->of[i].series = s->memory->of[i].series;
        former->of[i].backup = cells ? (uint32_t)cells[MK_UPSTREAM_STATS_BACKUP] : 0;
        former->of[i].weight = cells ? (uint32_t)cells[MK_UPSTREAM_STATS_WEIGHT] : 0;
    }
    for (unsigned i = s->memory->n; i < MK_UPSTREAM_SERVERS; i++)
        former->of[i].is_hidden = true;
}

/* A server that was added in the meantime keeps its values. */
static void restore_slot(const struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former,
                         unsigned slot)
{
    uint32_t weight = LOAD(&s->admin[slot].weight);
    if (former->of[slot].is_vacant && LOAD(&s->admin[slot].mode) < MK_SERVER_REMOVED)
        return;
    if (former->of[slot].series)
        s->memory->of[slot].series = former->of[slot].series;
    mk_upstream_stats_set_server(s, slot, former->of[slot].backup, weight ? weight : former->of[slot].weight,
                                 former->of[slot].max);
    set_slot_hidden(s, slot, former->of[slot].is_hidden);
}

void mk_upstream_stats_restore(struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former)
{
    /* A worker that frees its copy of a configuration restores nothing. */
    bool is_ours = former->pid == (uint32_t)getpid();
    if (!former->serial || !is_ours || s->memory->n_published != former->serial)
        return;
    s->admin = admin_of(s, former->serial - 1);
    for (unsigned i = 0; i < s->memory->n; i++)
        restore_slot(s, former, i);
    s->memory->n_published--; /* the configuration before this one is the latest again */
}

void mk_upstream_stats_drain(const struct mk_upstream_stats *s,
                             const struct mk_upstream_stats_snapshot *former)
{
    uint64_t latest = LOAD(&s->memory->n_published);
    if (latest != former->serial)
        __atomic_store_n(&s->memory->n_served, latest, __ATOMIC_RELAXED);
}

bool mk_upstream_stats_follow(struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former)
{
    uint64_t serial = LOAD(&s->memory->n_served);
    if (serial <= former->serial)
        return false;
    s->admin = admin_of(s, serial);
    return true;
}

/* ---- Workers ---- */

void mk_upstream_stats_clear_worker(void *stats, unsigned row)
{
    const struct mk_upstream_stats *s = stats;
    for (unsigned i = 0; i < MK_UPSTREAM_SERVERS && i < LOAD(&s->memory->n); i++)
        __atomic_store_n(&s->memory->idle[i][row], 0, __ATOMIC_RELAXED);
}
