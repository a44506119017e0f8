/* SPDX-License-Identifier: Apache-2.0 */
/* What all workers know of the routes of all services, in shared memory: which handler runs in which worker,
 * and which routes keep crashing. It outlives workers and configurations. */
#ifndef DUDA_SERVICE_CRASH_TABLE_H
#define DUDA_SERVICE_CRASH_TABLE_H

#include <monkey/plugin.h>
#include <stdatomic.h>

enum {
    DUDA_ROUTE_SLOTS = 2048,         /* routes that can be counted */
    DUDA_CRASH_WORKERS_MAX = 128,    /* workers whose crashes can be reported, */
    DUDA_CRASH_SLOTS_PER_WORKER = 4, /* for each the current one and those of former configurations */
    DUDA_ROUTE_SLOT_NAME_MAX = 160,  /* bytes */
    DUDA_CRASH_REPORT_MAX = 4096 - 512,
};

/* One route. A place that was taken once stays that route's, as long as the master lives. */
struct duda_route_slot {
    _Atomic uint64_t id;       /* 0: free */
    _Atomic uint32_t counted;  /* its statistics: see monkey/route_stats.h; 0: it has none */
    _Atomic uint32_t recently; /* crashes in the window that began at `since` */
    _Atomic int64_t since, closed_until;
    char name[DUDA_ROUTE_SLOT_NAME_MAX]; /* "shop GET /items/:id", ends with a NUL */
};

/* One worker: what it would tell if it could not any more. */
struct duda_crash_slot {
    _Atomic uint32_t runs; /* the place of the route whose handler runs, plus 1 */
    _Atomic uint32_t len;  /* of the report; 0: none */
    _Atomic int64_t pid;   /* of the worker; 0: free */
    char request[256];
    char report[DUDA_CRASH_REPORT_MAX];
};

struct duda_crash_table {
    struct duda_route_slot places[DUDA_ROUTE_SLOTS];
    struct duda_crash_slot posts[DUDA_CRASH_WORKERS_MAX][DUDA_CRASH_SLOTS_PER_WORKER];
};

/* How many crashes within which time close a route, and for how long. */
struct duda_crash_policy {
    uint32_t crashes; /* 0: never */
    uint64_t window_ms, closed_ms;
    bool tries; /* a developer tries the services: MK_ROUTES_TRIED */
};

/* NULL: no memory, which was reported. */
struct duda_crash_table *duda_crash_table_get(struct mk_config *config);
/* The place of a route; NULL when all are taken. */
struct duda_route_slot *duda_crash_table_add_route(struct duda_crash_table *b, mk_str name);
/* A free post for a worker of that number. After a reload, workers of the same number live side by side, so that
 * each needs its own. NULL: all are in use, or the number is too high. */
struct duda_crash_slot *duda_crash_table_acquire_slot(struct duda_crash_table *b, unsigned worker);
/* The post of a worker of that number which has died, with what it left there. It is the caller's, and free after
 * duda_crash_slot_release(). NULL: there is none. */
struct duda_crash_slot *duda_crash_table_take_dead_slot(struct duda_crash_table *b, unsigned worker);
/* Does another worker of that number live, such as one that drains? */
bool duda_crash_table_has_live_peer(struct duda_crash_table *b, unsigned worker);
/* The worker ends; NULL is fine. */
void duda_crash_slot_release(struct duda_crash_slot *crash_slot);

/* A handler of that place runs now; NULL: none does. One store. */
static inline void duda_crash_slot_set_running(struct duda_crash_slot *crash_slot,
                                               const struct duda_crash_table *b,
                                               const struct duda_route_slot *p)
{
    if (crash_slot)
        atomic_store_explicit(&crash_slot->runs, p ? (uint32_t)(p - b->places) + 1 : 0, memory_order_relaxed);
}

/* For a worker that starts in the place of another one: the route whose handler that one died in, which is
 * counted among its recent ones; NULL if it was none. *closes: the route is closed from now on. */
struct duda_route_slot *duda_crash_table_count_crash(struct duda_crash_table *b,
                                                     struct duda_crash_slot *crash_slot,
                                                     const struct duda_crash_policy *rules, int64_t now,
                                                     bool *closes);
/* Closes the route for a while. False: it was closed, or rules or place are missing. */
bool duda_route_slot_disable(struct duda_route_slot *p, const struct duda_crash_policy *rules, int64_t now);
/* For how many seconds the route is still closed; 0: it is open. */
static inline int64_t duda_route_slot_disabled_s(const struct duda_route_slot *p, int64_t now)
{
    int64_t until = p ? atomic_load_explicit(&p->closed_until, memory_order_relaxed) : 0;
    return until > now ? until - now : 0;
}

#endif
