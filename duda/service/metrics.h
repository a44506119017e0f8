/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of services, in the statistics of the server. */
#ifndef DUDA_SERVICE_METRICS_H
#define DUDA_SERVICE_METRICS_H

#include <duda/metrics.h>

/* The tables of a service's metrics in the registry of statistics. */
struct duda_metric_tables {
    struct duda_metric *const *metrics;
    size_t n;
    unsigned numbers[DUDA_METRICS_MAX]; /* 0: the registry has refused the table */
};

struct duda_metrics_cache;

/* Registers the metrics of a service. Reports errors in their definitions, and then returns false. *out is
 * NULL if the service has no metrics. */
bool duda_metrics_load(struct mk_config *config, const struct duda_service *service,
                       const struct duda_metric_tables **out);
void duda_metrics_cache_free(struct duda_metrics_cache *cache);

#endif
