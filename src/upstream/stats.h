/* SPDX-License-Identifier: Apache-2.0 */
/* What workers share of all backends but their limits: their health, and which series of the server's statistics
 * shows them. */
#ifndef MK_UPSTREAM_STATS_H
#define MK_UPSTREAM_STATS_H

#include <monkey/stats.h>
#include <monkey/text.h>
#include <monkey/upstream.h>

#include "upstream/conn_limit.h"

enum { MK_UPSTREAM_NAME = 64 }; /* of an upstream, with its NUL */

enum mk_upstream_state {
    MK_UPSTREAM_UP,
    MK_UPSTREAM_SLOW_START, /* up again, with a growing share of the requests */
    MK_UPSTREAM_DOWN,       /* it failed, or its health check did */
    MK_UPSTREAM_UNRESOLVED  /* its name does not resolve */
};

/* Cells of a backend. In the row of a worker: */
enum {
    MK_UPSTREAM_STATS_BUSY = 3, /* connections: in use or being made, */
    MK_UPSTREAM_STATS_IDLE,     /* and kept */
    MK_UPSTREAM_STATS_WAITING = 6,
    MK_UPSTREAM_STATS_REQUESTS = 8,
    /* In the row of the server: */
    MK_UPSTREAM_STATS_STATE = 0, /* enum mk_upstream_state */
    MK_UPSTREAM_STATS_BACKUP,
    MK_UPSTREAM_STATS_WEIGHT,
    MK_UPSTREAM_STATS_MAX = 5, /* connections; 0: no limit */
    MK_UPSTREAM_STATS_LATENCY = 7,
    MK_UPSTREAM_STATS_FAILURES = 9,
    MK_UPSTREAM_STATS_CHECKS,
    MK_UPSTREAM_STATS_CHECKS_FAILED,
    MK_UPSTREAM_STATS_IS_UP,
};

/* One backend. */
struct mk_upstream_stats_health {
    uint64_t key;                     /* of upstream and server; 0: unused */
    uint64_t down_until_ms;           /* CLOCK_MONOTONIC, in all processes the same; 0: it did not fail */
    uint64_t up_since_ms;             /* when it came back */
    uint32_t fails;                   /* in a row */
    uint32_t is_check_failed;         /* its last HealthFall health checks failed */
    uint32_t checks_in_a_row;         /* with another result than that says */
    uint64_t trouble_ms, nameless_ms; /* when the log was last told of these: */
    uint32_t trouble;                 /* the error by which it failed last; 0: it answers */
    uint32_t is_nameless;             /* its name does not resolve */
    uint32_t max;                     /* connections, in the configuration that serves; 0: no limit */
    uint32_t is_hidden;               /* that configuration does not have it */
    uint32_t series;                  /* of the statistics; 0: none */
};

struct mk_upstream_stats_memory {
    uint64_t n_shown; /* how many configurations were shown */
    uint32_t n;       /* slots used so far */
    struct mk_upstream_stats_health of[MK_UPSTREAM_SERVERS];
    uint32_t idle[MK_UPSTREAM_SERVERS]
                 [MK_UPSTREAM_WORKERS]; /* connections of each worker, by its row of the limit */
};

struct mk_upstream_stats {
    struct mk_stat_registry *registry;
    unsigned table;
    struct mk_upstream_stats_memory *memory;
};

/* The slots that a configuration uses once it serves. */
struct mk_upstream_stats_plan {
    uint64_t keys[MK_UPSTREAM_SERVERS]; /* 0: none */
};

/* What was shown before a configuration did. */
struct mk_upstream_stats_snapshot {
    uint64_t n_shown; /* with that configuration; 0: it has not */
    uint32_t pid;     /* of the master */
    struct {
        uint32_t is_hidden, backup, weight, max;
    } of[MK_UPSTREAM_SERVERS];
};

/* In the master. False: no memory, which is reported. */
bool mk_upstream_stats_open(struct mk_upstream_stats *s, struct mk_config *config);
/* In the master, or in a process that only tries a configuration out: the slot of a backend, the same for the
 * same names as long as it lives. Nothing changes. False: all are taken. */
bool mk_upstream_stats_plan_slot(const struct mk_upstream_stats *s, struct mk_upstream_stats_plan *plan,
                                 mk_str upstream, mk_str server, unsigned *slot);
/* In the master: the configuration was accepted, and that is the backend. True: the slot was another one's. */
bool mk_upstream_stats_assign_slot(struct mk_upstream_stats *s, unsigned slot, mk_str upstream,
                                   mk_str server);
/* In the master, for a backend of that slot: */
void mk_upstream_stats_set_server(const struct mk_upstream_stats *s, unsigned slot, bool backup,
                                  unsigned weight, unsigned max);
/* In the master: the configuration does not have this backend any more. */
void mk_upstream_stats_hide_slot(struct mk_upstream_stats *s, unsigned slot);
/* In the master: before the backends of a configuration are shown, */
void mk_upstream_stats_save(struct mk_upstream_stats *s, struct mk_upstream_stats_snapshot *former);
/* and when it goes: if none was shown since, it never served, and the one before it serves on. */
void mk_upstream_stats_restore(struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former);

/* For mk_conn_limit.on_empty, with the stats: what a worker had in this row is over. */
void mk_upstream_stats_clear_worker(void *stats, unsigned row);

static inline struct mk_upstream_stats_health *mk_upstream_stats_health(const struct mk_upstream_stats *s,
                                                                        unsigned slot)
{
    return &s->memory->of[slot];
}

/* Cells that all processes may write; NULL: there are none. */
static inline uint64_t *mk_upstream_stats_shared(const struct mk_upstream_stats *s, unsigned slot)
{
    return mk_stat_cells(s->registry, mk_upstream_stats_health(s, slot)->series, MK_STAT_SERVER);
}

/* One of them; NULL counts nothing. Any process may do so at the same time. */
static inline void mk_upstream_stats_add_shared(uint64_t *cells, unsigned cell)
{
    if (cells)
        __atomic_fetch_add(&cells[cell], 1, __ATOMIC_RELAXED);
}

#endif
