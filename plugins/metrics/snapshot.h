/* SPDX-License-Identifier: Apache-2.0 */
/* All numbers at one moment, and what they look like as text. */
#ifndef METRICS_SNAPSHOT_H
#define METRICS_SNAPSHOT_H

#include "settings.h"

struct labelled {
    mk_str name;
    struct totals totals;
};

struct snapshot {
    const struct mk_worker *worker;
    const struct metrics *metrics;
    struct totals all;
    size_t n_labels;
    struct labelled labels[];
};

/* On the heap; NULL when memory is out. */
struct snapshot *metrics_snapshot_take(const struct mk_worker *worker, const struct metrics *metrics);

/* Calls each() for every process that there is now. */
struct process_view {
    struct mk_worker_stats stats;
    struct process_info info;
    bool known; /* info is */
};
/* The i-th place; false when there are no more. A place that nobody has answers a pid of 0. */
bool metrics_snapshot_process(const struct snapshot *s, size_t i, struct process_view *out);

/* Prometheus, text format 0.0.4. */
void metrics_prometheus_print(const struct snapshot *s, struct mk_buf *out);
/* One object, without line ends. */
void metrics_json_print(const struct snapshot *s, struct mk_buf *out);

enum { TEXT_MAX = 64 << 20 };

#endif
