/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a service: counters, gauges and histograms, which the plugin `metrics` and `monkey shell`
 * show. */
#ifndef DUDA_METRICS_H
#define DUDA_METRICS_H

#include <duda/service.h>
#include <monkey/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Limits of metrics. */
enum {
    DUDA_METRICS_MAX = 64,           /**< metrics of a service */
    DUDA_METRIC_LABELS_MAX = 3,      /**< labels of a metric; part of the ABI, so it never changes */
    DUDA_METRIC_SERIES_MAX = 128,    /**< combinations of label values of a metric */
    DUDA_METRIC_LABEL_VALUE_MAX = 96 /**< bytes of a label value; longer ones are truncated */
};

/** The type of a metric, which one of the macros below sets. */
enum duda_metric_kind { DUDA_METRIC_COUNTER, DUDA_METRIC_GAUGE, DUDA_METRIC_HISTOGRAM, DUDA_METRIC_DURATION };

/** A metric; the macros below define it. */
struct duda_metric {
    size_t size; /**< sizeof(struct duda_metric) when the service was compiled */
    enum duda_metric_kind kind;
    const char *name, *help;
    const char *labels[1 + DUDA_METRIC_LABELS_MAX]; /**< the first one is unused; NULL ends the list */
    const char *file;
    int line;
    unsigned index; /**< set when the service is loaded */
};
/** A struct for each type, so that the compiler rejects a function for metrics of another type. */
struct duda_counter {
    struct duda_metric metric;
};
struct duda_gauge {
    struct duda_metric metric;
};
struct duda_histogram {
    struct duda_metric metric;
};
struct duda_duration {
    struct duda_metric metric;
};

/* clang-format off */
/**
 * Defines a metric at the top of a source file. The arguments are a static variable, the name of the metric,
 * its help text, and the names of up to three labels. The full name begins with the name of the service:
 * `orders_total` of the service `shop` is `shop_orders_total`. The names of counters end in `_total`, those
 * of durations in `_seconds`.
 *
 *     DUDA_COUNTER(orders, "orders_total", "Orders placed.", "country", "payment");
 *     DUDA_GAUGE(open_carts, "open_carts", "Carts with at least one item.");
 *     DUDA_HISTOGRAM(order_items, "order_items", "Items of an order.");
 *     DUDA_DURATION(checkout, "checkout_seconds", "Duration of a checkout.", "step");
 *
 *     duda_counter_add(d, &orders, 1, MK_STR("NL"), MK_STR("card"));
 *     duda_gauge_add(d, &open_carts, -1);
 *     duda_histogram_observe(d, &order_items, 3);
 *     duda_duration_observe_us(d, &checkout, 1500, MK_STR("address"));
 *
 * Every combination of label values has its own series, which exists until the server stops. Use values from
 * a small set, never IDs or text from clients. Each metric has at most DUDA_METRIC_SERIES_MAX series. Further
 * combinations are counted in one series with the value `other` for each label, and each worker logs this
 * once.
 *
 * Updates take no lock: each worker has its own values, and readers add them up. Counters and histograms
 * survive reloads and the exit of a worker, but not a restart of the server.
 */
#define DUDA_COUNTER(variable, name, ...)                                                                    \
    DUDA_METRIC_ENTRY(duda_counter, DUDA_METRIC_COUNTER, variable, name, __VA_ARGS__, )
#define DUDA_GAUGE(variable, name, ...)                                                                      \
    DUDA_METRIC_ENTRY(duda_gauge, DUDA_METRIC_GAUGE, variable, name, __VA_ARGS__, )
/** A histogram of numbers that are not durations, such as sizes. */
#define DUDA_HISTOGRAM(variable, name, ...)                                                                  \
    DUDA_METRIC_ENTRY(duda_histogram, DUDA_METRIC_HISTOGRAM, variable, name, __VA_ARGS__, )
/** A histogram of durations, observed in microseconds and exported in seconds. */
#define DUDA_DURATION(variable, name, ...)                                                                   \
    DUDA_METRIC_ENTRY(duda_duration, DUDA_METRIC_DURATION, variable, name, __VA_ARGS__, )
/** Implementation of the macros above. The section lists the metrics of all source files of the service. */
#define DUDA_METRIC_ENTRY(type_, kind_, variable, name_, help_, ...)                                         \
    static struct type_ variable = {{sizeof(struct duda_metric), kind_, name_, help_,                        \
                                     {MK_API_NULL, __VA_ARGS__}, __FILE__, __LINE__, 0}};                    \
    __attribute__((used, section("duda_metrics"))) static struct duda_metric *const                          \
        duda_metric_##variable = &variable.metric
/* clang-format on */

/** Adds n to a counter. Labels are mk_str values, in the order of their names. */
MK_API void duda_counter_add_values(struct duda_ctx *d, const struct duda_counter *counter, uint64_t n,
                                    const mk_str *labels, size_t n_labels);
/**
 * Adds a number, which may be negative, to the gauge of this worker. The gauge is the sum over all workers;
 * the part of a worker disappears when the worker exits. Use this function for resources of the worker, such
 * as open files.
 */
MK_API void duda_gauge_add_values(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t n,
                                  const mk_str *labels, size_t n_labels);
/**
 * Sets the gauge for the whole server; negative values become 0. The last call in any worker wins. Use this
 * function for values outside of the workers, such as the length of a queue in a database. Use either this
 * function or duda_gauge_add() for a gauge, never both.
 *
 *     DUDA_GAUGE(queued, "queued", "Orders in the queue.");
 *     duda_gauge_set(d, &queued, 7);
 */
MK_API void duda_gauge_set_values(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t value,
                                  const mk_str *labels, size_t n_labels);
/** Adds a value to a histogram. */
MK_API void duda_histogram_observe_values(struct duda_ctx *d, const struct duda_histogram *histogram,
                                          uint64_t value, const mk_str *labels, size_t n_labels);
/**
 * Adds a duration, in microseconds, to a histogram of durations.
 *
 *     DUDA_DURATION(imports, "imports_seconds", "Durations of imports.");
 *     uint64_t began_us = mk_clock_us();
 *     int e = import_orders(d);
 *     duda_duration_observe_us(d, &imports, mk_clock_us() - began_us);
 */
MK_API void duda_duration_observe_us_values(struct duda_ctx *d, const struct duda_duration *duration,
                                            uint64_t us, const mk_str *labels, size_t n_labels);

#ifndef __cplusplus
/** The label values of a call and their number, as two arguments. */
#define DUDA_LABELS(...)                                                                                     \
    (const mk_str[]){MK_STR_NULL, ##__VA_ARGS__} + 1,                                                        \
        MK_LEN(((const mk_str[]){MK_STR_NULL, ##__VA_ARGS__})) - 1
/** The functions above, with the label values as a variable number of arguments. */
#define duda_counter_add(d, counter, n, ...) duda_counter_add_values(d, counter, n, DUDA_LABELS(__VA_ARGS__))
#define duda_gauge_add(d, gauge, n, ...)     duda_gauge_add_values(d, gauge, n, DUDA_LABELS(__VA_ARGS__))
#define duda_gauge_set(d, gauge, value, ...) duda_gauge_set_values(d, gauge, value, DUDA_LABELS(__VA_ARGS__))
#define duda_histogram_observe(d, histogram, value, ...)                                                     \
    duda_histogram_observe_values(d, histogram, value, DUDA_LABELS(__VA_ARGS__))
#define duda_duration_observe_us(d, duration, us, ...)                                                       \
    duda_duration_observe_us_values(d, duration, us, DUDA_LABELS(__VA_ARGS__))
#endif

#ifdef __cplusplus
}

template <typename... strings>
inline void duda_counter_add(struct duda_ctx *d, const struct duda_counter *counter, uint64_t n,
                             const strings &...labels)
{
    const mk_str values[] = {mk_str{}, labels...};
    duda_counter_add_values(d, counter, n, values + 1, sizeof...(labels));
}
template <typename... strings>
inline void duda_gauge_add(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t n,
                           const strings &...labels)
{
    const mk_str values[] = {mk_str{}, labels...};
    duda_gauge_add_values(d, gauge, n, values + 1, sizeof...(labels));
}
template <typename... strings>
inline void duda_gauge_set(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t value,
                           const strings &...labels)
{
    const mk_str values[] = {mk_str{}, labels...};
    duda_gauge_set_values(d, gauge, value, values + 1, sizeof...(labels));
}
template <typename... strings>
inline void duda_histogram_observe(struct duda_ctx *d, const struct duda_histogram *histogram, uint64_t value,
                                   const strings &...labels)
{
    const mk_str values[] = {mk_str{}, labels...};
    duda_histogram_observe_values(d, histogram, value, values + 1, sizeof...(labels));
}
template <typename... strings>
inline void duda_duration_observe_us(struct duda_ctx *d, const struct duda_duration *duration, uint64_t us,
                                     const strings &...labels)
{
    const mk_str values[] = {mk_str{}, labels...};
    duda_duration_observe_us_values(d, duration, us, values + 1, sizeof...(labels));
}
#endif

#endif
