/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/metric.h"

static double get_seconds(const struct wr_measurement *s)
{
    return s->reported.seconds;
}

static double get_requests(const struct wr_measurement *s)
{
    return (double)s->reported.requests;
}

double wr_metric_rate(const struct wr_measurement *s)
{
    return s->reported.rate;
}

static double get_bytes(const struct wr_measurement *s)
{
    return (double)s->reported.bytes;
}

double wr_metric_errors(const struct wr_measurement *s)
{
    return (double)wr_result_errors(&s->reported);
}

double wr_metric_latency_mean_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.mean;
}

double wr_metric_latency_p50_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.p50;
}

static double get_latency_p75_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.p75;
}

static double get_latency_p90_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.p90;
}

double wr_metric_latency_p99_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.p99;
}

static double get_latency_p999_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.p999;
}

double wr_metric_latency_max_us(const struct wr_measurement *s)
{
    return s->reported.latency_us.max;
}

double wr_metric_user_cpu_us(const struct wr_measurement *s)
{
    return s->server.user_us;
}

double wr_metric_system_cpu_us(const struct wr_measurement *s)
{
    return s->server.system_us;
}

double wr_metric_cpu_us_per_request(const struct wr_measurement *s)
{
    return s->us_per_request;
}

double wr_metric_pss_kb(const struct wr_measurement *s)
{
    return s->pss_kb;
}

double wr_metric_peak_memory_kb(const struct wr_measurement *s)
{
    return s->peak_kb;
}

static double get_high_water_mark_kb(const struct wr_measurement *s)
{
    return s->hwm_kb;
}

double wr_metric_voluntary_switches(const struct wr_measurement *s)
{
    return s->voluntary;
}

double wr_metric_involuntary_switches(const struct wr_measurement *s)
{
    return s->involuntary;
}

static double get_syscalls_per_request(const struct wr_measurement *s)
{
    return s->syscalls;
}

double wr_metric_server_busy(const struct wr_measurement *s)
{
    return s->server.busy;
}

static double get_server_cores(const struct wr_measurement *s)
{
    return s->server.cores;
}

static double get_client_user_cpu_us(const struct wr_measurement *s)
{
    return s->client.user_us;
}

static double get_client_system_cpu_us(const struct wr_measurement *s)
{
    return s->client.system_us;
}

double wr_metric_client_busy(const struct wr_measurement *s)
{
    return s->client.busy;
}

static double get_client_cores(const struct wr_measurement *s)
{
    return s->client.cores;
}

static const struct wr_metric METRICS[] = {
    {"seconds", get_seconds, 6},
    {"requests", get_requests, 0},
    {"rate", wr_metric_rate, 3},
    {"bytes", get_bytes, 0},
    {"errors", wr_metric_errors, 0},
    {"mean_us", wr_metric_latency_mean_us, 3},
    {"p50_us", wr_metric_latency_p50_us, 3},
    {"p75_us", get_latency_p75_us, 3},
    {"p90_us", get_latency_p90_us, 3},
    {"p99_us", wr_metric_latency_p99_us, 3},
    {"p999_us", get_latency_p999_us, 3},
    {"max_us", wr_metric_latency_max_us, 3},
    {"user_us", wr_metric_user_cpu_us, 0},
    {"system_us", wr_metric_system_cpu_us, 0},
    {"us_per_request", wr_metric_cpu_us_per_request, 3},
    {"pss_kb", wr_metric_pss_kb, 0},
    {"peak_kb", wr_metric_peak_memory_kb, 0},
    {"hwm_kb", get_high_water_mark_kb, 0},
    {"voluntary", wr_metric_voluntary_switches, 0},
    {"involuntary", wr_metric_involuntary_switches, 0},
    {"syscalls", get_syscalls_per_request, 3},
    {"server_busy", wr_metric_server_busy, 4},
    {"server_cores", get_server_cores, 0},
    {"client_user_us", get_client_user_cpu_us, 0},
    {"client_system_us", get_client_system_cpu_us, 0},
    {"client_busy", wr_metric_client_busy, 4},
    {"client_cores", get_client_cores, 0},
    {NULL, NULL, 0},
};

const struct wr_metric *wr_metric_all(void)
{
    return METRICS;
}
