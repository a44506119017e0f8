/* SPDX-License-Identifier: Apache-2.0 */
/* Request statistics per host: by method and status, outcome, bytes sent and duration. */
#ifndef METRICS_REQUEST_COUNTS_H
#define METRICS_REQUEST_COUNTS_H

#include <monkey/plugin.h>
#include <monkey/stats.h>

#include "history.h"

enum {
    STATUSES = 62,    /* number of statuses that each host and worker counts separately */
    STATUS_OTHER = 1, /* stands for all other statuses */
    TOTAL_ROWS = 128,
    METHODS = MK_METHOD_PATCH + 1,      /* all others count as MK_METHOD_UNKNOWN */
    OUTCOMES = MK_OUTCOME_SHUTDOWN + 1, /* all others are not counted */
};

/* The label of a host, and its series. */
struct label {
    mk_str name;
    unsigned index;
    uint32_t host, outcomes[OUTCOMES]; /* series numbers; 0: no series was left */
    struct label *next;
};

/* Per-configuration data. */
struct counts {
    struct mk_stat_registry *registry;
    unsigned requests, outcomes, hosts; /* table numbers */
    uint32_t loop;                      /* series of the event loop; 0: no series was left */
    struct label *labels;
    unsigned n_labels;
    bool is_full; /* the registry had no series left; already logged */
};

/* The counters of one worker, indexed by label. */
struct counters;

/* A sum of counts, with a row for each status seen, in ascending order. */
struct totals {
    unsigned n_rows;
    uint16_t status[TOTAL_ROWS];
    uint64_t requests[TOTAL_ROWS][METHODS];
    uint64_t outcomes[OUTCOMES];
    uint64_t bytes, duration_us;
    uint64_t buckets[BUCKETS];
};

/* Call this in load(). Returns false if out of memory, which is reported. */
bool metrics_request_counts_init(struct counts *c, struct mk_config *config);
/* Returns the label with that name; NULL if out of memory. Call this in host(). */
struct label *metrics_request_counts_label(struct counts *c, struct mk_config *config, mk_str name);

/* Returns NULL if out of memory. */
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
/* Counts responses by the first digit of their status; 0 means that no response was started. */
void metrics_totals_sum_by_class(const struct totals *t, uint64_t out[CLASSES]);

/* Returns "GET", ..., "other". */
const char *metrics_method_label(unsigned method);
/* Returns "200", ..., "other"; "0" means that no response was started. `buf` has at least 8 bytes. */
const char *metrics_status_label(unsigned status, char *buf);

#endif
