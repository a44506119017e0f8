/* SPDX-License-Identifier: Apache-2.0 */
/* Request statistics per host: by method and status, outcome, bytes sent and duration. */
#ifndef METRICS_REQUEST_COUNTS_H
#define METRICS_REQUEST_COUNTS_H

#include <monkey/plugin.h>
#include <monkey/stats.h>

#include "history.h"

enum {
    STATUSES = 62,    /* counted separately per host and worker */
    STATUS_OTHER = 1, /* all others */
    TOTAL_ROWS = 128,
};

/* Label of a host, and its series. */
struct label {
    mk_str name;
    unsigned index;
    uint32_t host, endings[MK_OUTCOMES]; /* series; 0: too many */
    struct label *next;
};

/* Per configuration. */
struct counts {
    struct mk_stat_registry *registry;
    unsigned requests, endings, hosts; /* tables */
    struct label *labels;
    unsigned n_labels;
    bool is_full; /* reported */
};

/* Counters of one worker, indexed by label. */
struct counters;

/* A sum of counts, with a row for each status seen, in ascending order. */
struct totals {
    unsigned n_rows;
    uint16_t status[TOTAL_ROWS];
    uint64_t requests[TOTAL_ROWS][MK_METHODS];
    uint64_t endings[MK_OUTCOMES];
    uint64_t bytes, duration_us;
    uint64_t buckets[BUCKETS];
};

/* In load(). False: out of memory (reported). */
bool metrics_request_counts_init(struct counts *c, struct mk_config *config);
/* In host(): the label with that name. NULL: out of memory. */
struct label *metrics_request_counts_label(struct counts *c, struct mk_config *config, mk_str name);

/* NULL: out of memory. */
struct counters *metrics_counters_new(struct mk_worker *w, const struct counts *c);
void metrics_counters_free(struct counters *c);
void metrics_counters_add(struct counters *c, const struct label *l, const struct mk_access_record *record,
                          bool timed);

/* Adds the counts of a label to `out`. */
void metrics_request_counts_sum(const struct counts *c, const struct label *l, struct totals *out);
void metrics_totals_add(const struct totals *t, struct totals *out);

uint64_t metrics_totals_row_sum(const struct totals *t, unsigned row);
uint64_t metrics_totals_method_sum(const struct totals *t, unsigned method);
uint64_t metrics_totals_requests(const struct totals *t);
/* Responses by the first digit of their status; 0: no response was started. */
void metrics_totals_by_class(const struct totals *t, uint64_t out[CLASSES]);

/* "GET", ..., "other". */
const char *metrics_method_label(unsigned method);
/* "200", ..., "other"; 0: no response was started. `buf` has at least 8 bytes. */
const char *metrics_status_label(unsigned status, char *buf);

#endif
