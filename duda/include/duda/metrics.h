/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a service: counters, gauges and histograms, for plugin metrics and `monkey shell`. */
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
    DUDA_METRIC_SERIES_MAX = 128,    /**< combinations of label values of a metric */
    DUDA_METRIC_LABEL_VALUE_MAX = 96 /**< bytes of a label value; longer ones are truncated */
};

/** The type of a metric. */
enum duda_metric_kind { DUDA_METRIC_COUNTER, DUDA_METRIC_GAUGE, DUDA_METRIC_HISTOGRAM, DUDA_METRIC_DURATION };

/** A metric; the macros below define it. */
struct duda_metric {
    size_t size; /**< sizeof(struct duda_metric) when the service was compiled */
    enum duda_metric_kind kind;
    const char *name, *help;
    const char *labels[1 + MK_STAT_LABELS_MAX]; /**< the first one is unused; NULL ends the list */
    const char *file;
    int line;
    unsigned index; /**< set when the service is loaded */
};
/** The types of metrics, so that the compiler detects a function for another type. */
struct duda_counter {
    struct duda_metric metric;
};
struct duda_gauge {
    struct duda_metric metric;
};
struct duda_histogram {
    struct duda_metric metric;
};

/* clang-format off */
/**
 * Defines a metric, at the top of a source file: a static variable, the name of the metric, its help, and the
 * names of up to three labels. Its full name begins with the name of the service: `orders_total` of the
 * service `shop` is `shop_orders_total`. The names of counters end in `_total`, those of durations in
 * `_seconds`.
 *
 *     DUDA_COUNTER(orders, "orders_total", "Orders placed.", "country", "payment");
 *     DUDA_GAUGE(open_carts, "open_carts", "Carts with at least one item.");
 *     DUDA_HISTOGRAM(order_items, "order_items", "Items of an order.");
 *     DUDA_DURATION(checkout, "checkout_seconds", "Duration of a checkout.", "step");
 *
 *     duda_counter_add(d, &orders, 1, MK_STR("NL"), MK_STR("card"));
 *     duda_gauge_add(d, &open_carts, -1);
 *     duda_histogram_observe(d, &order_items, 3);
 *     duda_histogram_observe(d, &checkout, 1500, MK_STR("address"));
 *
 * Every combination of label values is a series of its own, which lives until the server stops. Use values
 * from a small set, never IDs or text of clients. Each metric has at most DUDA_METRIC_SERIES_MAX series; for
 * further combinations, each label has the value `other`, and a line in the log reports it.
 *
 * Counting takes no lock: each worker has its own values, and readers add them up. Counters and histograms
 * survive reloads and the death of a worker, but not a restart.
 */
#define DUDA_COUNTER(variable, name, ...)                                                                    \
    DUDA_METRIC_ENTRY(duda_counter, DUDA_METRIC_COUNTER, variable, name, __VA_ARGS__, )
#define DUDA_GAUGE(variable, name, ...)                                                                      \
    DUDA_METRIC_ENTRY(duda_gauge, DUDA_METRIC_GAUGE, variable, name, __VA_ARGS__, )
/** A histogram of numbers, such as sizes. */
#define DUDA_HISTOGRAM(variable, name, ...)                                                                  \
    DUDA_METRIC_ENTRY(duda_histogram, DUDA_METRIC_HISTOGRAM, variable, name, __VA_ARGS__, )
/** A histogram of durations, observed in microseconds and exported in seconds. */
#define DUDA_DURATION(variable, name, ...)                                                                   \
    DUDA_METRIC_ENTRY(duda_histogram, DUDA_METRIC_DURATION, variable, name, __VA_ARGS__, )
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
 * when a worker ends, its part disappears. Use this for what the handlers hold, such as open files.
 */
MK_API void duda_gauge_add_values(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t n,
                                  const mk_str *labels, size_t n_labels);
/** Sets the gauge of the whole server; the last call of any worker counts. Use this for what is outside of
 * the workers, such as the length of a queue in a database. A gauge uses either this function or
 * duda_gauge_add(). */
MK_API void duda_gauge_set_values(struct duda_ctx *d, const struct duda_gauge *gauge, uint64_t value,
                                  const mk_str *labels, size_t n_labels);
/** Adds a value to a histogram: a number, or for DUDA_DURATION() a duration in microseconds. */
MK_API void duda_histogram_observe_values(struct duda_ctx *d, const struct duda_histogram *histogram,
                                          uint64_t value, const mk_str *labels, size_t n_labels);

#ifndef __cplusplus
/** The label values of a call, and their number. */
#define DUDA_LABELS(...)                                                                                     \
    (const mk_str[]){MK_STR_NULL, ##__VA_ARGS__} + 1,                                                        \
        MK_LEN(((const mk_str[]){MK_STR_NULL, ##__VA_ARGS__})) - 1
/** The functions with the label values as arguments. */
#define duda_counter_add(d, counter, n, ...) duda_counter_add_values(d, counter, n, DUDA_LABELS(__VA_ARGS__))
#define duda_gauge_add(d, gauge, n, ...)     duda_gauge_add_values(d, gauge, n, DUDA_LABELS(__VA_ARGS__))
#define duda_gauge_set(d, gauge, value, ...) duda_gauge_set_values(d, gauge, value, DUDA_LABELS(__VA_ARGS__))
#define duda_histogram_observe(d, histogram, value, ...)                                                     \
    duda_histogram_observe_values(d, histogram, value, DUDA_LABELS(__VA_ARGS__))
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
inline void duda_gauge_set(struct duda_ctx *d, const struct duda_gauge *gauge, uint64_t value,
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
#endif

#endif
