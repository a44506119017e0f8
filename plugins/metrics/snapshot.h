/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics at one moment, and their text formats. */
#ifndef METRICS_SNAPSHOT_H
#define METRICS_SNAPSHOT_H

#include "settings.h"

struct label_totals {
    mk_str name;
    struct totals totals;
};

struct snapshot {
    const struct mk_worker *worker;
    const struct metrics *metrics;
    struct totals all;
    size_t n_labels;
    struct label_totals labels[];
};

/* Allocates a snapshot on the heap. Returns NULL if out of memory. */
struct snapshot *metrics_snapshot_new(const struct mk_worker *worker, const struct metrics *metrics);

struct process_view {
    struct mk_worker_stats stats;
    struct process_info info;
    bool known; /* `info` is valid */
};
/* Gets the i-th slot. Returns false after the last slot. A free slot has pid 0. */
bool metrics_snapshot_process_at(const struct snapshot *s, size_t i, struct process_view *out);

/* Prints the text format 0.0.4 of Prometheus. */
void metrics_prometheus_print(const struct snapshot *s, struct mk_buf *out);
/* Prints one JSON object. Events of the live page have no list of certificates. */
void metrics_json_print(const struct snapshot *s, bool with_certificates, struct mk_buf *out);
/* Prints one object with a list for each field of the samples, and with the durations of each second of the
 * last minute. `samples` is scratch memory for SAMPLES samples. */
void metrics_json_print_history(const struct history *h, uint64_t now_ms, struct sample *samples,
                                struct mk_buf *out);

enum { TEXT_MAX = 64 << 20 };

#endif
