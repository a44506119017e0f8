/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of the last five minutes, one per second, in memory that all workers share and that outlives
 * configurations. One worker writes and all read. A worker may die at any instruction. */
#ifndef METRICS_HISTORY_H
#define METRICS_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <monkey/stats.h>

enum {
    BUCKETS = MK_STAT_FINE_BUCKETS,
    SAMPLES = 300, /* length of the history in seconds */
    SLICES = 60,   /* number of seconds whose durations are kept separately */
    RECENT = 10,   /* number of seconds that the quantiles of a sample cover */
    CLASSES = 6,
};

/* Requests, bytes and classes never decrease, even if a reload switches to another set of hosts with
 * older counts: only increments since the previous sample are added. Quantiles are in microseconds; 0: no
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
    uint64_t now_ms; /* the loop's clock, which is the same in all workers */
    uint64_t values[FIELDS];
};

/* The durations of the requests that ended in the second before a sample. */
struct slice {
    uint64_t now_ms;
    uint64_t buckets[BUCKETS];
};

/* The index of an entry is its second modulo the length of the ring. `now_ms` is 0 while an entry is
 * incomplete. */
struct history {
    _Atomic uint64_t claimed; /* the second of the latest sample, plus 1 */
    struct {
        _Atomic uint64_t now_ms, values[FIELDS];
    } samples[SAMPLES];
    struct {
        _Atomic uint64_t now_ms;
        _Atomic uint32_t buckets[BUCKETS];
    } slices[SLICES];
    _Atomic uint64_t buckets[BUCKETS];             /* all durations up to the latest sample */
    _Atomic uint64_t set;                          /* set of hosts in the latest sample; 0: none */
    _Atomic uint64_t raw[FIELDS], counted[FIELDS]; /* raw and accumulated values of the latest sample */
};

/* Returns true for one caller per second, which then adds the sample. Never returns true for a second before
 * the latest one. */
bool metrics_history_claim_second(struct history *h, uint64_t now_ms);
/* Adds a sample and computes its quantiles. `buckets` contains all durations so far; `set` is the non-zero id
 * of the set of hosts that are counted. */
void metrics_history_add(struct history *h, const struct sample *s, const uint64_t buckets[BUCKETS],
                         uint64_t set);

/* Reads the samples of the last SAMPLES seconds, oldest first, omitting missing seconds. Returns their
 * number. */
size_t metrics_history_read(const struct history *h, uint64_t now_ms, struct sample out[SAMPLES]);
/* Gets the slice of `back` seconds ago. Returns false if there is none. */
bool metrics_history_slice(const struct history *h, uint64_t now_ms, unsigned back, struct slice *out);

#endif
