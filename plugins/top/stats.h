/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of recorded requests for `monkey top`: by host, route, client or backend, or a list of requests. */
#ifndef TOP_RECORDER_STATS_H
#define TOP_RECORDER_STATS_H

#include <monkey/text.h>

#include "filter.h"

enum top_view {
    TOP_BY_HOST,
    TOP_BY_ROUTE,
    TOP_BY_CLIENT,
    TOP_BY_BACKEND,
    TOP_LIST_SLOW, /* the first of the lists of requests */
    TOP_LIST_FAILED,
    TOP_LIST_OPEN,
    TOP_VIEWS
};

enum top_column {
    TOP_RATE,
    TOP_REQUESTS,
    TOP_FAILED,
    TOP_IN_FLIGHT,
    TOP_MEAN,
    TOP_MAX,
    TOP_BYTES,
    TOP_NAME,
    TOP_COLUMNS
};

enum { TOP_NAME_MAX = 64, TOP_LIST_MAX = 1000 };

struct top_row {
    char name[TOP_NAME_MAX]; /* as the client sent it */
    unsigned name_len;
    uint64_t requests, failed, in_flight, max_us;
    double rate, failed_rate, bytes_rate; /* per second */
    double total_us;
    double key; /* the rows are sorted by it */
};

struct top_stats {
    enum top_view view;
    struct top_row total, *rows;
    size_t n_rows, rows_cap;
    struct top_entry *list; /* requests of a list, at most 2 * TOP_LIST_MAX */
    size_t n_list;
    struct top_damage damage;

    /* Private. */
    uint64_t now_ms;
    const struct top_filter *filter;
    struct top_entry *pending; /* matching requests of the current ring */
    size_t n_pending, pending_cap;
    uint64_t oldest_ms; /* when the first request of the current ring ended */
    uint32_t *buckets;  /* hash table: 1 + index of a row */
    size_t n_buckets;
    struct mk_hash_key hash_key;
    bool no_memory;
};

/* Reads the requests that ended in the last `filter->last_ms` milliseconds, which must not be 0, and those in flight.
 * Returns NULL, or the reason of a failure: the statistics are then empty. */
const char *top_stats_read(struct top_stats *s, const struct top_recording *from, enum top_view view,
                           struct top_filter *filter, uint64_t now_ms, bool *is_missing);
/* Sorts the rows by a column, in descending order except for names. */
void top_stats_sort(struct top_stats *s, enum top_column column);
void top_stats_free(struct top_stats *s);

#endif
