/* SPDX-License-Identifier: Apache-2.0 */
/* The number of recent sessions per client, in memory shared by all workers. The table has a fixed size: if a
 * bucket is full, the client with the fewest sessions is evicted. There are no locks: an entry is one word,
 * so a dying worker leaves nothing inconsistent. */
#ifndef DUDA_SERVICE_SESSION_RATE_H
#define DUDA_SERVICE_SESSION_RATE_H

#include <monkey/addr.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { DUDA_SESSION_RATE_SLOTS = 8, DUDA_SESSION_RATE_LINES = 4096 };

struct duda_session_rate {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their bucket */
    struct {
        _Atomic uint64_t slots[DUDA_SESSION_RATE_SLOTS];
    } lines[DUDA_SESSION_RATE_LINES];
};

/* Initializes zeroed memory; memory that is already in use stays unchanged. Called in the master, before
 * workers start. */
void duda_session_rate_init(struct duda_session_rate *b);
/* Counts a new session of the client: see mk_addr_client_prefix(). `window` is the number of the current time
 * window. Returns false if the client has already created `max` sessions in this window. */
bool duda_session_rate_allow(struct duda_session_rate *b, const struct mk_addr *client, uint64_t window,
                             uint64_t max);

#endif
