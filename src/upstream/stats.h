/* SPDX-License-Identifier: Apache-2.0 */
/* Health of all backends, and their statistics series, in memory shared by all processes. The connection
 * limits are in conn_limit.h. */
#ifndef MK_UPSTREAM_STATS_H
#define MK_UPSTREAM_STATS_H

#include <monkey/stats.h>
#include <monkey/text.h>
#include <monkey/upstream.h>

#include "upstream/conn_limit.h"

enum { MK_UPSTREAM_NAME = 64 }; /* maximum length of an upstream's name, including the NUL */

enum mk_upstream_state {
    MK_UPSTREAM_UP,
    MK_UPSTREAM_SLOW_START, /* recovering, with a growing share of requests */
    MK_UPSTREAM_DOWN,       /* the server failed, or its health check failed */
    MK_UPSTREAM_UNRESOLVED, /* the name of the server does not resolve */
    MK_UPSTREAM_DRAINING,   /* the administrator drains the server */
    MK_UPSTREAM_REMOVED,    /* the administrator has removed the server */
    MK_UPSTREAM_EJECTED     /* too many of the server's responses were errors */
};

/* Why the last health check failed. */
enum mk_health_reason {
    MK_HEALTH_PASSED,
    MK_HEALTH_REFUSED,     /* nothing listens at the address */
    MK_HEALTH_TIMEOUT,     /* HealthTimeout */
    MK_HEALTH_UNREACHABLE, /* no address, no route, or another error of the network */
    MK_HEALTH_CLOSED,      /* the server closed the connection without a response */
    MK_HEALTH_INVALID,     /* the response is not HTTP */
    MK_HEALTH_TLS,         /* the handshake failed */
    MK_HEALTH_STATUS,      /* HealthStatus */
    MK_HEALTH_TEXT         /* HealthText */
};

/* What the administrator has decided about a server: see server_control.h. Each value admits fewer requests
 * than the value before it. */
enum mk_server_mode {
    MK_SERVER_ENABLED,
    MK_SERVER_DRAINS, /* the server gets only requests of its sticky clients */
    MK_SERVER_MOVES,  /* the server gets no requests: its sticky clients move to other servers */
    MK_SERVER_REMOVED,
    MK_SERVER_VACANT /* room for a server that the administrator may add */
};

/* Statistics cells of a backend in the row of a worker. */
enum {
    MK_UPSTREAM_STATS_BUSY = 3, /* connections in use or connecting */
    MK_UPSTREAM_STATS_IDLE,     /* idle connections */
    MK_UPSTREAM_STATS_WAITING = 6,
    MK_UPSTREAM_STATS_REQUESTS = 8,
    /* Statistics cells of a backend in the row that all processes share. */
    MK_UPSTREAM_STATS_STATE = 0, /* enum mk_upstream_state */
    MK_UPSTREAM_STATS_BACKUP,
    MK_UPSTREAM_STATS_WEIGHT,
    MK_UPSTREAM_STATS_MAX = 5, /* connection limit; 0: none */
    MK_UPSTREAM_STATS_LATENCY = 7,
    MK_UPSTREAM_STATS_FAILURES = 9,
    MK_UPSTREAM_STATS_CHECKS,
    MK_UPSTREAM_STATS_CHECKS_FAILED,
    MK_UPSTREAM_STATS_IS_UP,
    MK_UPSTREAM_STATS_EJECTIONS,
    MK_UPSTREAM_STATS_REASON, /* enum mk_health_reason */
};

/* Health of one backend. */
struct mk_upstream_stats_health {
    uint64_t key;                     /* hash of upstream and server; 0: slot unused */
    uint64_t down_until_ms;           /* CLOCK_MONOTONIC, the same in all processes; 0: not failed */
    uint64_t up_since_ms;             /* time of recovery */
    uint32_t fails;                   /* consecutive failures */
    uint32_t is_check_failed;         /* the server is down after HealthFall failed health checks in a row */
    uint32_t checks_in_a_row;         /* consecutive checks that contradict is_check_failed */
    uint64_t trouble_ms, nameless_ms; /* when trouble and is_nameless were last logged */
    uint32_t trouble;                 /* errno value of the last logged failure; 0: the server responds */
    uint32_t is_nameless;             /* the name does not resolve */
    uint32_t max;                     /* connection limit in the active configuration; 0: none */
    uint32_t is_hidden;               /* not in the active configuration */
    uint32_t series;                  /* index of the backend's statistics series; 0: none */
    uint64_t ejected_until_ms;        /* 0: never ejected */
    uint64_t counted_since_ms;        /* start of OutlierInterval */
    uint32_t responses, errors;       /* since then */
    uint32_t ejections;               /* in a row */
};

/* What the administrator has decided about the server in a slot. Unlike health, it belongs to a configuration: until a
 * new configuration serves, the changes of its predecessor apply, and they still apply if it never does. */
struct mk_upstream_stats_admin {
    uint32_t mode;   /* enum mk_server_mode */
    uint32_t weight; /* 0: that of the configuration */
};

struct mk_upstream_stats_memory {
    uint64_t n_published; /* number of configurations published so far */
    uint64_t n_served;    /* number of the last one that has replaced another */
    uint32_t
        is_repeated; /* the last one that was published repeats its predecessor: see mk_config_is_repeated() */
    uint32_t n;      /* slots used so far */
    struct mk_upstream_stats_health of[MK_UPSTREAM_SERVERS];
    struct mk_upstream_stats_admin
        admin[2][MK_UPSTREAM_SERVERS]; /* of configurations with even and odd numbers */
    uint32_t idle[MK_UPSTREAM_SERVERS]
                 [MK_UPSTREAM_WORKERS]; /* idle connections per worker, indexed by the worker's row in the
                                         * connection limit */
};

struct mk_upstream_stats {
    struct mk_stat_registry *registry;
    unsigned table;
    struct mk_upstream_stats_memory *memory;
    struct mk_upstream_stats_admin *admin; /* of this configuration, by slot */
};

/* Slots that a configuration will use once it is active. */
struct mk_upstream_stats_plan {
    uint64_t keys[MK_UPSTREAM_SERVERS]; /* 0: none */
};

/* State of all slots before a configuration was published. */
struct mk_upstream_stats_snapshot {
    uint64_t serial; /* number of that configuration, from 1; 0: not published */
    bool is_repeated;
    uint32_t pid; /* pid of the master */
    struct {
        uint32_t is_hidden, is_vacant, backup, weight, max, series;
    } of[MK_UPSTREAM_SERVERS];
};

/* Master only. False: out of memory, and the error was reported. */
bool mk_upstream_stats_init(struct mk_upstream_stats *s, struct mk_config *config);
/* In the master, or in a process that only tests a configuration: plans the slot of a backend. A backend with
 * the same names as before keeps its slot, if the slot still exists. Changes only `plan`. False: no slot is
 * free. */
bool mk_upstream_stats_plan_slot(const struct mk_upstream_stats *s, struct mk_upstream_stats_plan *plan,
                                 mk_str upstream, mk_str server, unsigned *slot);
/* Master only, after the configuration was accepted: assigns the slot to the backend. True: the slot was
 * unused, or belonged to another backend. */
bool mk_upstream_stats_assign_slot(struct mk_upstream_stats *s, unsigned slot, mk_str upstream,
                                   mk_str server);
/* Master only, after the configuration was accepted: assigns the slot to room for a server that may be added. */
void mk_upstream_stats_reserve_slot(struct mk_upstream_stats *s, unsigned slot, uint64_t key);
/* Master only: sets the properties of the server that has this slot. */
void mk_upstream_stats_set_server(const struct mk_upstream_stats *s, unsigned slot, bool backup,
                                  unsigned weight, unsigned max);
/* Sets what the administrator has decided about the server in this slot. `weight` 0: the configured weight. */
void mk_upstream_stats_set_mode(const struct mk_upstream_stats *s, unsigned slot, enum mk_server_mode mode,
                                unsigned weight);
/* Master only: publishes what the administrator had decided before the configuration was published. */
void mk_upstream_stats_keep_mode(const struct mk_upstream_stats *s, unsigned slot);
/* Does a server with this key have a slot in the active configuration? */
bool mk_upstream_stats_is_active(const struct mk_upstream_stats *s, uint64_t key);
/* The hash of upstream and server: the key of the slot, and of `Balance hash`. */
uint64_t mk_upstream_stats_key(mk_str upstream, mk_str server);
/* mk_upstream_server_id(). Other machines compute the same ID if the key file, the upstream's name and the
 * server's address are the same. */
uint64_t mk_upstream_stats_server_id(const struct mk_hash_key *key, mk_str upstream, mk_str server);
/* Hides the series of a server that is removed, unless another slot contains a server of the same name. */
void mk_upstream_stats_hide_series(const struct mk_upstream_stats *s, uint32_t series);
/* Master only: hides the slot of a backend that is no longer in the configuration. */
void mk_upstream_stats_hide_slot(struct mk_upstream_stats *s, unsigned slot);
/* Master only: saves the state before a new configuration is published, and gives that configuration a copy of what the
 * administrator has decided. `is_repeated`: changes until it serves apply to it as well. */
void mk_upstream_stats_save(struct mk_upstream_stats *s, struct mk_upstream_stats_snapshot *former,
                            bool is_repeated);
/* Master only: restores that state when the configuration is discarded without having become active. If
 * another configuration was published since then, does nothing. */
void mk_upstream_stats_restore(struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former);
/* What the administrator had decided before the configuration was published. */
const struct mk_upstream_stats_admin *
mk_upstream_stats_former_admin(const struct mk_upstream_stats *s,
                               const struct mk_upstream_stats_snapshot *former, unsigned slot);
/* In a worker whose configuration was published with `former`. Call it when the worker begins to drain. */
void mk_upstream_stats_drain(const struct mk_upstream_stats *s,
                             const struct mk_upstream_stats_snapshot *former);
/* In a draining worker: changes to the configuration that now serves apply from now on. False: no later configuration
 * serves. */
bool mk_upstream_stats_follow(struct mk_upstream_stats *s, const struct mk_upstream_stats_snapshot *former);

/* Callback for mk_conn_limit.on_empty, with the stats as its argument: clears the values of the worker that
 * had the row. */
void mk_upstream_stats_clear_worker(void *stats, unsigned row);

static inline struct mk_upstream_stats_health *mk_upstream_stats_health(const struct mk_upstream_stats *s,
                                                                        unsigned slot)
{
    return &s->memory->of[slot];
}

/* Cells that all processes may write; NULL: none. */
static inline uint64_t *mk_upstream_stats_shared(const struct mk_upstream_stats *s, unsigned slot)
{
    return mk_stat_cells(s->registry, mk_upstream_stats_health(s, slot)->series, MK_STAT_SERVER);
}

/* Increments a shared cell atomically; NULL is ignored. */
static inline void mk_upstream_stats_add_shared(uint64_t *cells, unsigned cell)
{
    if (cells)
        __atomic_fetch_add(&cells[cell], 1, __ATOMIC_RELAXED);
}

/* Updates the average time to the first byte of a response; NULL is ignored. Moving average: each new value
 * has a weight of 1/8. Two workers may overwrite each other's update. */
static inline void mk_upstream_stats_add_latency(uint64_t *cells, uint64_t us)
{
    if (!cells)
        return;
    uint64_t *at = &cells[MK_UPSTREAM_STATS_LATENCY];
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED), new = us > UINT32_MAX ? UINT32_MAX : us;
    __atomic_store_n(at, old ? old - (old >> 3) + (new >> 3) : new, __ATOMIC_RELAXED);
}

#endif
