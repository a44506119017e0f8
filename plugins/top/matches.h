/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that were selected, in the order in which they ended. */
#ifndef TOP_RECORDER_MATCHES_H
#define TOP_RECORDER_MATCHES_H

#include "reader.h"

struct top_match {
    struct top_entry entry; /* a copy: call top_reader_set_texts() before its texts are used */
    uint64_t order_ms;
};

struct top_matches {
    size_t max; /* keeps between `max` and twice as many of the last requests; 0: all */
    struct top_match *at;
    size_t n, cap;
    bool no_memory;
};

/* Returns false if out of memory. */
bool top_matches_add(struct top_matches *m, const struct top_entry *e);
void top_matches_sort(struct top_matches *m);
void top_matches_free(struct top_matches *m);

#endif
