/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a shot by name, for all output formats. */
#ifndef WR_METRIC_H
#define WR_METRIC_H

#include "wr/measurement.h"

struct wr_metric {
    const char *name;
    double (*of)(const struct wr_measurement *s);
    int decimals;
};

/* Returns all metrics; the last entry has no name. */
const struct wr_metric *wr_metric_all(void);

double wr_metric_rate(const struct wr_measurement *s);
double wr_metric_cpu_us_per_request(const struct wr_measurement *s);
double wr_metric_user_cpu_us(const struct wr_measurement *s);
double wr_metric_system_cpu_us(const struct wr_measurement *s);
double wr_metric_pss_kb(const struct wr_measurement *s);
double wr_metric_peak_memory_kb(const struct wr_measurement *s);
double wr_metric_latency_mean_us(const struct wr_measurement *s);
double wr_metric_latency_p50_us(const struct wr_measurement *s);
double wr_metric_latency_p99_us(const struct wr_measurement *s);
double wr_metric_latency_max_us(const struct wr_measurement *s);
double wr_metric_errors(const struct wr_measurement *s);
double wr_metric_voluntary_switches(const struct wr_measurement *s);
double wr_metric_involuntary_switches(const struct wr_measurement *s);
double wr_metric_server_busy(const struct wr_measurement *s);
double wr_metric_client_busy(const struct wr_measurement *s);

#endif
