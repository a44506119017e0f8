/* SPDX-License-Identifier: Apache-2.0 */
/* The last five minutes, one sample per second, in memory that all workers share and that outlives
 * configurations. One worker writes, all read; a worker may die at any instruction. */
#ifndef METRICS_HISTORY_H
#define METRICS_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <monkey/stats.h>

enum {
    BUCKETS = MK_STAT_FINE_BUCKETS,
    SAMPLES = 300, /* seconds of the history */
    SLICES = 60,   /* seconds with separate durations */
    RECENT = 10,   /* seconds that quantiles of a sample cover */
    CLASSES = 6,
};

/* Requests, bytes and classes never fall, and never jump when a reload brings another set of hosts, whose
 * counts may be old: only what was added since the sample before counts. Quantiles are in microseconds; 0: no
 * requests. */
enum field {
    FIELD_REQUESTS,
    FIELD_BYTES,
    FIELD_CONNECTIONS,
    FIELD_MEMORY,
    FIELD_CLASSES,
    FIELD_P50 = FIELD_CLASSES + CLASSES,
    FIELD_P90,
    FIELD_P99,
    FIELD_P999,
    FIELDS,
};

struct sample {
    uint64_t now_ms; /* clock of the loop, the same for all workers */
    uint64_t values[FIELDS];
};

/* The durations of requests that ended in the second before a sample. */
struct slice {
    uint64_t now_ms;
    uint64_t buckets[BUCKETS];
};

/* A place belongs to one second modulo the length of its ring. Its `now_ms` is 0 while it is incomplete. */
struct history {
    _Atomic uint64_t claimed; /* the second of the latest sample, plus 1 */
    struct {
        _Atomic uint64_t now_ms, values[FIELDS];
    } samples[SAMPLES];
    struct {
        _Atomic uint64_t now_ms;
        _Atomic uint32_t buckets[BUCKETS];
    } slices[SLICES];
    _Atomic uint64_t buckets[BUCKETS]; /* all durations until the latest sample */
    _Atomic uint64_t set;              /* of hosts that the latest sample was of; 0: there is none */
    _Atomic uint64_t raw[FIELDS], counted[FIELDS]; /* in the latest sample: as it came, and as it was kept */
};

/* True for one caller in each second, which then adds the sample. Never true for a second before the latest
 * one. */
bool metrics_history_claim_second(struct history *h, uint64_t now_ms);
/* `buckets`: all durations so far; `set`: another number for each set of hosts that these counts are of, not
 * 0. Determines the quantiles of the sample. */
void metrics_history_add(struct history *h, const struct sample *s, const uint64_t buckets[BUCKETS],
                         uint64_t set);

/* The samples of the last SAMPLES seconds, oldest first; a second without one is absent. Returns how many. */
size_t metrics_history_read(const struct history *h, uint64_t now_ms, struct sample out[SAMPLES]);
/* The slice `back` seconds before now; false: none. */
bool metrics_history_slice(const struct history *h, uint64_t now_ms, unsigned back, struct slice *out);

#endif
