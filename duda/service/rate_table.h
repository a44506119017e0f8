/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of rate limits, in memory shared by all workers. The table has a fixed size: if all slots of a
 * line are in use, the counter with the fewest uses is evicted. There are no locks: an entry is one word, so
 * a dying worker leaves nothing inconsistent. */
#ifndef DUDA_SERVICE_RATE_TABLE_H
#define DUDA_SERVICE_RATE_TABLE_H

#include <monkey/text.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    DUDA_RATE_SLOTS = 8,
    DUDA_RATE_LINES = 8192,
    DUDA_RATE_MAX = (1 << 18) - 1,
    DUDA_RATE_WINDOW_MAX_S = 86400
};

struct duda_rate_table {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their line */
    struct {
        _Atomic uint64_t slots[DUDA_RATE_SLOTS];
    } lines[DUDA_RATE_LINES];
};

/* Initializes zeroed memory; memory that is already in use stays unchanged. Called in the master, before
 * workers start. */
void duda_rate_table_init(struct duda_rate_table *t);

/* A limit: `max` uses in a window of `window_s` seconds, which begins with the first use. */
struct duda_rate {
    uint32_t max, window_s;
};
/* Parses "10/minute": a number up to DUDA_RATE_MAX, and second, minute, hour or day. */
bool duda_rate_parse(mk_str text, struct duda_rate *out);

struct duda_rate_state {
    uint32_t remaining; /* uses left in the window */
    uint32_t reset_s;   /* seconds until the window ends, at least 1 */
};
/* Counts a use of the key. Returns false, and counts nothing, if the limit is reached. `now` is in
 * seconds. */
bool duda_rate_table_use(struct duda_rate_table *t, mk_str key, const struct duda_rate *rate, int64_t now,
                         struct duda_rate_state *out);

#endif
