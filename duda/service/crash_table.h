/* SPDX-License-Identifier: Apache-2.0 */
/* State of all routes of all services, shared by all workers: which handler runs in which worker, and which
 * routes keep crashing. Lives in shared memory and outlives workers and configurations. */
#ifndef DUDA_SERVICE_CRASH_TABLE_H
#define DUDA_SERVICE_CRASH_TABLE_H

#include <monkey/plugin.h>
#include <stdatomic.h>

enum {
    DUDA_ROUTE_SLOTS = 2048,         /* maximum number of tracked routes */
    DUDA_CRASH_WORKERS_MAX = 128,    /* maximum number of workers with crash reports */
    DUDA_CRASH_SLOTS_PER_WORKER = 4, /* for the current worker and those of earlier configurations */
    DUDA_ROUTE_SLOT_NAME_MAX = 160,  /* bytes */
    DUDA_CRASH_REPORT_MAX = 4096 - 512,
};

/* A route. Once assigned, a slot belongs to its route for the lifetime of the master. */
struct duda_route_slot {
    _Atomic uint64_t id;             /* 0: free */
    _Atomic uint32_t stats_series;   /* series of the route's statistics: see monkey/route_stats.h; 0: none */
    _Atomic uint32_t recent_crashes; /* crashes in the window that began at `since` */
    _Atomic int64_t since, closed_until;
    char name[DUDA_ROUTE_SLOT_NAME_MAX]; /* "shop GET /items/:id", NUL-terminated */
};

/* The state of a worker, which other processes can read after a crash. */
struct duda_crash_slot {
    _Atomic uint32_t runs; /* slot index of the route whose handler runs, plus 1; 0: none */
    _Atomic uint32_t len;  /* length of the report; 0: none */
    _Atomic int64_t pid;   /* process ID of the worker; 0: the slot is free */
    char request[256];
    char report[DUDA_CRASH_REPORT_MAX];
};

struct duda_crash_table {
    struct duda_route_slot slots[DUDA_ROUTE_SLOTS];
    struct duda_crash_slot crash_slots[DUDA_CRASH_WORKERS_MAX][DUDA_CRASH_SLOTS_PER_WORKER];
};

/* Crash limit: how many crashes within which time disable a route, and for how long. */
struct duda_crash_policy {
    uint32_t crashes; /* 0: never */
    uint64_t window_ms, closed_ms;
    bool tries; /* Duda runs in development mode: MK_ROUTES_DEV_MODE */
};

/* Returns NULL, and reports the error, if out of memory. */
struct duda_crash_table *duda_crash_table_get(struct mk_config *config);
/* Returns the slot of a route; NULL if the table is full. */
struct duda_route_slot *duda_crash_table_add_route(struct duda_crash_table *b, mk_str name);
/* Returns a free crash slot for the worker with this number. After a reload, workers with the same number run
 * side by side, so each needs its own slot. Returns NULL if all slots are in use, or the number is too
 * high. */
struct duda_crash_slot *duda_crash_table_acquire_slot(struct duda_crash_table *b, unsigned worker);
/* Returns the slot of a dead worker with this number, which holds its crash report; NULL if there is none.
 * The caller owns the slot until duda_crash_slot_release(). */
struct duda_crash_slot *duda_crash_table_take_dead_slot(struct duda_crash_table *b, unsigned worker);
/* Returns whether another worker with this number is alive, for example a draining one. */
bool duda_crash_table_has_live_peer(struct duda_crash_table *b, unsigned worker);
/* Frees the slot when the worker exits. NULL is allowed. */
void duda_crash_slot_release(struct duda_crash_slot *crash_slot);

/* Records that a handler of this route runs; NULL: no handler runs. Costs a single store. */
static inline void duda_crash_slot_set_running(struct duda_crash_slot *crash_slot,
                                               const struct duda_crash_table *b,
                                               const struct duda_route_slot *p)
{
    if (crash_slot)
        atomic_store_explicit(&crash_slot->runs, p ? (uint32_t)(p - b->slots) + 1 : 0, memory_order_relaxed);
}

/* For a worker that replaces another one: adds the crash to the recent crashes of the route whose handler
 * crashed the predecessor, and returns this route; NULL if no handler was running. Sets *closes if the route
 * is now disabled. */
struct duda_route_slot *duda_crash_table_count_crash(struct duda_crash_table *b,
                                                     struct duda_crash_slot *crash_slot,
                                                     const struct duda_crash_policy *rules, int64_t now,
                                                     bool *closes);
/* Disables the route for a while. Returns false if it was already disabled, or if `rules` or the slot is
 * missing. */
bool duda_route_slot_disable(struct duda_route_slot *p, const struct duda_crash_policy *rules, int64_t now);
/* Returns the number of seconds until the route is enabled again; 0 if it is enabled. */
static inline int64_t duda_route_slot_disabled_s(const struct duda_route_slot *p, int64_t now)
{
    int64_t until = p ? atomic_load_explicit(&p->closed_until, memory_order_relaxed) : 0;
    return until > now ? until - now : 0;
}

#endif
