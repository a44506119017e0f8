/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics table of components that are not ready. The plugin metrics reports them at the path that its
 * key `Ready` sets. */
#ifndef MONKEY_READINESS_H
#define MONKEY_READINESS_H

#include <monkey/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The name of the table, and the labels of its series. Its only metric is a gauge: the number of workers in
 * which the component is not ready for this reason. */
#define MK_READINESS_TABLE "components"
enum { MK_READINESS_COMPONENT, MK_READINESS_REASON };

/** Registers the table. Returns the result of mk_stat_register_table(). */
static inline unsigned mk_readiness_register_table(struct mk_stat_registry *registry)
{
    struct mk_stat_metric metric;
    struct mk_stat_table table;
    memset(&metric, 0, sizeof metric);
    memset(&table, 0, sizeof table);
    metric.name = "monkey_component_not_ready";
    metric.help = "Workers in which a component of a service is not ready.";
    metric.column = "workers";
    metric.kind = MK_STAT_GAUGE;
    metric.is_optional = true;
    table.name = MK_READINESS_TABLE;
    table.labels[MK_READINESS_COMPONENT] = "component";
    table.labels[MK_READINESS_REASON] = "reason";
    table.metrics = &metric;
    table.n_metrics = 1;
    return mk_stat_register_table(registry, &table);
}

#ifdef __cplusplus
}
#endif

#endif
