/* SPDX-License-Identifier: Apache-2.0 */
/* Selects recorded requests: the options of `monkey recorder`. */
#ifndef TOP_RECORDER_FILTER_H
#define TOP_RECORDER_FILTER_H

#include <monkey/addr.h>

#include "reader.h"

struct top_filter {
    uint64_t last_ms;  /* 0: any */
    uint64_t since_ms; /* requests that ended earlier do not match; see top_filter_set_now() */
    uint64_t slower_us;
    unsigned status_min, status_max; /* 0: any */
    bool only_failed, only_open;
    bool has_client;
    mk_str host, path, upstream, id; /* patterns; empty: any */
    struct mk_network client;
};

/* Parses a duration such as 500ms, 5m or 1h; a bare number is in seconds. */
bool top_filter_parse_ms(mk_str text, uint64_t *ms);
/* Parses 5xx, 404 or 400-499. */
bool top_filter_parse_status(mk_str text, struct top_filter *f);
/* Requests that ended in the last `last_ms` milliseconds match. */
void top_filter_set_now(struct top_filter *f, uint64_t now_ms);
/* Has the request failed: a status from 500, no complete response, or lost? */
bool top_filter_is_failed(const struct mk_recorder_record *r);
bool top_filter_match(const struct top_filter *f, const struct top_entry *e);

#endif
