/* SPDX-License-Identifier: Apache-2.0 */
/* Route statistics, counted in the same way by all plugins with routes, such as Duda. */
#ifndef MONKEY_ROUTE_STATS_H
#define MONKEY_ROUTE_STATS_H

#include <monkey/config.h>
#include <monkey/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of a shared uint32_t (mk_config_shared()). The value 1 means that a developer is testing the
 * services: routes are then not disabled after crashes. Set it in load(), and read it in host(). */
#define MK_ROUTES_DEV_MODE "routes/dev_mode"

/** The table of routes (for mk_stat_find()), its labels, and the cells of a route. */
#define MK_ROUTES_TABLE "routes"
enum { MK_ROUTE_SERVICE, MK_ROUTE_METHOD, MK_ROUTE_PATTERN };
enum { MK_ROUTE_REQUESTS, MK_ROUTE_FAILURES, MK_ROUTE_CANCELLED, MK_ROUTE_CRASHES, MK_ROUTE_DURATION };

/**
 * Returns the statistics series of a route. `method` is `*` for all methods; `pattern` is a host and a path,
 * such as `/items/:id`. Only in load() and host(). Returns 0 if there are too many series, or if out of
 * memory.
 */
static inline uint32_t mk_route_stats_series(struct mk_config *config, mk_str service, mk_str method,
                                             mk_str pattern)
{
    static const struct mk_stat_metric metrics[] = {
        {"monkey_route_requests_total",
         "Requests that handlers of a service have answered.",
         "requests",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_route_failures_total",
         "Of these, responses with a status of 500 or above.",
         "failures",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_route_cancelled_total",
         "Requests whose client disconnected before the handler finished.",
         "cancelled",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_route_crashes_total",
         "Crashes of the handler, each of which ended a worker.",
         "crashes",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_route_duration_seconds",
         "Time from the start of the handler to the end of the request, or of the handler of a WebSocket.",
         "duration",
         MK_STAT_HISTOGRAM,
         true,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
    };
    static const struct mk_stat_table table = {
        MK_ROUTES_TABLE, {"service", "method", "route"}, metrics, MK_LEN(metrics), {0}};
    struct mk_stat_registry *r = mk_config_statistics(config);
    const mk_str labels[] = {service, method, pattern};
    return r ? mk_stat_series(r, mk_stat_register_table(r, &table), labels) : 0;
}

/** Counts a request that has ended. `cells` is the result of mk_worker_cells(); NULL is ignored. */
static inline void mk_route_stats_record(uint64_t *cells, uint64_t duration_us, bool failed, bool cancelled)
{
    if (!cells)
        return;
    mk_stat_add(&cells[MK_ROUTE_REQUESTS], 1);
    mk_stat_observe(&cells[MK_ROUTE_DURATION], duration_us);
    if (failed)
        mk_stat_add(&cells[MK_ROUTE_FAILURES], 1);
    if (cancelled)
        mk_stat_add(&cells[MK_ROUTE_CANCELLED], 1);
}

#ifdef __cplusplus
}
#endif

#endif
