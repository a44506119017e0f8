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

/* Requests, bytes and classes are monotonic, even when a reload switches to another set of hosts with older
 * counts: only increments since the previous sample count. Quantiles are in microseconds; 0: no requests. */
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

/* Durations of requests that ended in the second before a sample. */
struct slice {
    uint64_t now_ms;
    uint64_t buckets[BUCKETS];
};

/* Each entry belongs to one second modulo the length of its ring. Its `now_ms` is 0 while incomplete. */
struct history {
    _Atomic uint64_t claimed; /* the second of the latest sample, plus 1 */
    struct {
        _Atomic uint64_t now_ms, values[FIELDS];
    } samples[SAMPLES];
    struct {
        _Atomic uint64_t now_ms;
        _Atomic uint32_t buckets[BUCKETS];
    } slices[SLICES];
    _Atomic uint64_t buckets[BUCKETS];             /* all durations until the latest sample */
    _Atomic uint64_t set;                          /* set of hosts in the latest sample; 0: none */
    _Atomic uint64_t raw[FIELDS], counted[FIELDS]; /* latest sample: raw values, and accumulated values */
};

/* True for one caller per second, which then adds the sample. Never true for a second before the latest
 * one. */
bool metrics_history_claim_second(struct history *h, uint64_t now_ms);
/* `buckets`: all durations so far; `set`: non-zero id of the set of hosts counted. Computes the quantiles of
 * the sample. */
void metrics_history_add(struct history *h, const struct sample *s, const uint64_t buckets[BUCKETS],
                         uint64_t set);

/* The samples of the last SAMPLES seconds, oldest first; missing seconds are omitted. Returns their
 * number. */
size_t metrics_history_read(const struct history *h, uint64_t now_ms, struct sample out[SAMPLES]);
/* The slice `back` seconds before now; false: none. */
bool metrics_history_slice(const struct history *h, uint64_t now_ms, unsigned back, struct slice *out);

#endif
