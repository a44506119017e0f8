/* SPDX-License-Identifier: Apache-2.0 */
/* Meters: statistics of calls to stores, databases and other servers, counted in the same way by all
 * plugins. */
#ifndef MONKEY_METER_H
#define MONKEY_METER_H

#include <monkey/config.h>
#include <monkey/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The cells of a meter. */
enum { MK_METER_CALLS, MK_METER_FAILURES, MK_METER_WAITING, MK_METER_MICROS };

/**
 * Only in load(): returns the statistics series for the section `name` of a package. Returns 0 if there are
 * too many series, or if out of memory.
 *
 *     settings->meter = mk_meter_get(config, MK_STR("kv"), settings->name);
 *     ...
 *     cells = mk_worker_cells(worker, settings->meter);
 */
static inline uint32_t mk_meter_get(struct mk_config *config, mk_str package, mk_str name)
{
    static const struct mk_stat_metric metrics[] = {
        {"monkey_package_calls_total",
         "Calls of services to stores, databases and other servers.",
         "calls",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_package_failures_total",
         "Of these, calls that failed.",
         "failures",
         MK_STAT_COUNTER,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_package_waiting",
         "Calls in progress.",
         "waiting",
         MK_STAT_GAUGE,
         false,
         false,
         0,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
        {"monkey_package_seconds_total",
         "Total duration of these calls.",
         "mean",
         MK_STAT_COUNTER,
         true,
         false,
         MK_METER_CALLS + 1,
         MK_API_NULL,
         MK_API_NULL,
         MK_API_NULL,
         {0}},
    };
    static const struct mk_stat_table table = {
        "packages", {"package", "section", MK_API_NULL}, metrics, MK_LEN(metrics), {0}};
    struct mk_stat_registry *r = mk_config_statistics(config);
    const mk_str labels[] = {package, name};
    return r ? mk_stat_series(r, mk_stat_register_table(r, &table), labels) : 0;
}

/** Counts the start of a call. `cells` is the result of mk_worker_cells(); NULL is ignored. */
static inline void mk_meter_begin(uint64_t *cells)
{
    if (cells)
        mk_stat_add(&cells[MK_METER_WAITING], 1);
}

/** Counts the end of a call, with its duration in microseconds and whether it failed. */
static inline void mk_meter_end(uint64_t *cells, uint64_t duration_us, bool failed)
{
    if (!cells)
        return;
    mk_stat_set(&cells[MK_METER_WAITING], cells[MK_METER_WAITING] - 1);
    mk_stat_add(&cells[MK_METER_CALLS], 1);
    mk_stat_add(&cells[MK_METER_FAILURES], failed);
    mk_stat_add(&cells[MK_METER_MICROS], duration_us);
}

#ifdef __cplusplus
}
#endif

#endif
