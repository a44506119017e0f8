/* SPDX-License-Identifier: Apache-2.0 */
/* What requests became of, counted in memory that all workers share and that outlives configurations. Each
 * worker has a slot of its own, so that nobody waits for anybody; a reader adds them up. */
#ifndef METRICS_COUNTS_H
#define METRICS_COUNTS_H

#include <monkey/plugin.h>
#include <stdatomic.h>

enum {
    SLOTS = 32, /* workers beyond share them */
    STATUS_COLUMNS = 64,
    STATUS_MAX = 600,
    STATUS_OTHER = 1, /* column and status of those that found no column any more */
    TOTAL_ROWS = 128,

    /* Durations: exact below 8 us, then 8 buckets for each doubling, up to 2^37 us (38 hours). */
    PARTS_LOG2 = 3,
    PARTS = 1 << PARTS_LOG2,
    DOUBLINGS = 34,
    BUCKETS = PARTS * (DOUBLINGS + 1),
};

typedef _Atomic uint64_t counter;

struct slot {
    _Alignas(64) counter requests[STATUS_COLUMNS][MK_METHODS];
    counter endings[MK_ENDINGS];
    counter bytes, duration_us;
    counter buckets[BUCKETS];
};

/* All of one label, zero at first. */
struct counts {
    _Atomic uint8_t column_of[STATUS_MAX]; /* of a status; 0: it was not seen yet */
    _Atomic uint8_t columns;               /* given out, column 0 included */
    _Atomic uint32_t slots;                /* used; so that nobody touches the memory of the others */
    struct slot slot[SLOTS];
};

/* A sum of counts: a row for each status that was seen, in their order. */
struct totals {
    unsigned n_rows;
    uint16_t status[TOTAL_ROWS];
    uint64_t requests[TOTAL_ROWS][MK_METHODS];
    uint64_t endings[MK_ENDINGS];
    uint64_t bytes, duration_us;
    uint64_t buckets[BUCKETS];
};

/* The counts of that label, the same ones for all configurations; NULL when memory is out (reported). */
struct counts *metrics_counts_of(struct mk_config *config, mk_str label);
void metrics_counts_add(struct counts *c, unsigned worker, const struct mk_record *record, bool timed);
/* Adds to what `out` holds. */
void metrics_counts_sum(const struct counts *c, struct totals *out);
void metrics_totals_add(const struct totals *t, struct totals *out);

uint64_t metrics_totals_of_row(const struct totals *t, unsigned row);
uint64_t metrics_totals_of_method(const struct totals *t, unsigned method);
uint64_t metrics_totals_requests(const struct totals *t);
uint64_t metrics_totals_timed(const struct totals *t);
/* The duration that `thousandths` of all requests stay below, in microseconds; 0 when there are none. */
uint64_t metrics_totals_quantile(const struct totals *t, unsigned thousandths);

/* Where a bucket ends, in microseconds: what it counts is shorter. */
uint64_t metrics_bucket_end(unsigned bucket);

/* "GET", ..., "other". */
const char *metrics_method_label(unsigned method);
/* "200", ..., "other"; 0: no response was begun. `room` is at least 8. */
const char *metrics_status_label(unsigned status, char *room);

#endif
