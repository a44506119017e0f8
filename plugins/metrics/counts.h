/* SPDX-License-Identifier: Apache-2.0 */
/* Counts request outcomes in memory that all workers share and that outlives configurations. Each worker
 * has its own slot, so no locks are needed; readers add the slots up. */
#ifndef METRICS_COUNTS_H
#define METRICS_COUNTS_H

#include <monkey/plugin.h>
#include <stdatomic.h>

#include "history.h"

enum {
    SLOTS = 32, /* further workers share them */
    STATUS_COLUMNS = 64,
    STATUS_MAX = 600,
    STATUS_OTHER = 1, /* column and status of statuses without a column */
    TOTAL_ROWS = 128,
};

typedef _Atomic uint64_t counter;

struct slot {
    _Alignas(64) counter requests[STATUS_COLUMNS][MK_METHODS];
    counter endings[MK_ENDINGS];
    counter bytes, duration_us;
    counter buckets[BUCKETS];
};

/* The counts of one label, initially zero. */
struct counts {
    _Atomic uint8_t column_of[STATUS_MAX]; /* of a status; 0: not seen yet */
    _Atomic uint8_t columns;               /* in use, including column 0 */
    _Atomic uint32_t slots;                /* in use; readers skip the memory of the rest */
    struct slot slot[SLOTS];
};

/* A sum of counts, with a row for each status seen, in ascending order. */
struct totals {
    unsigned n_rows;
    uint16_t status[TOTAL_ROWS];
    uint64_t requests[TOTAL_ROWS][MK_METHODS];
    uint64_t endings[MK_ENDINGS];
    uint64_t bytes, duration_us;
    uint64_t buckets[BUCKETS];
};

/* The counts of the label, which all configurations share; NULL: out of memory (reported). */
struct counts *metrics_counts_of(struct mk_config *config, mk_str label);
void metrics_counts_add(struct counts *c, unsigned worker, const struct mk_record *record, bool timed);
/* Adds to `out`. */
void metrics_counts_sum(const struct counts *c, struct totals *out);
void metrics_totals_add(const struct totals *t, struct totals *out);

uint64_t metrics_totals_of_row(const struct totals *t, unsigned row);
uint64_t metrics_totals_of_method(const struct totals *t, unsigned method);
uint64_t metrics_totals_requests(const struct totals *t);
/* Responses by the first digit of their status; 0: no response was started. */
void metrics_totals_by_class(const struct totals *t, uint64_t out[CLASSES]);

/* "GET", ..., "other". */
const char *metrics_method_label(unsigned method);
/* "200", ..., "other"; 0: no response was started. `room` has at least 8 bytes. */
const char *metrics_status_label(unsigned status, char *room);

#endif
