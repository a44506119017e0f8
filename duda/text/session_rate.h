/* SPDX-License-Identifier: Apache-2.0 */
/* How many sessions each client has begun of late, in memory that all workers share. Its size is fixed: when a line is full,
 * the client with the fewest gives way. There are no locks: a client is one word, so a worker that dies leaves nothing
 * inconsistent. */
#ifndef DUDA_TEXT_SESSION_RATE_H
#define DUDA_TEXT_SESSION_RATE_H

#include <monkey/addr.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { DUDA_SESSION_RATE_SLOTS = 8, DUDA_SESSION_RATE_LINES = 4096 };

struct duda_session_rate {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their line */
    struct {
        _Atomic uint64_t slots[DUDA_SESSION_RATE_SLOTS];
    } lines[DUDA_SESSION_RATE_LINES];
};

/* Uses zeroed memory, or such that is in use already. In the master, before workers start. */
void duda_session_rate_init(struct duda_session_rate *b);
/* One more of the client, see mk_addr_client(). `window` is the number of the time span that is counted. False: it has
 * begun `max` in it. */
bool duda_session_rate_allow(struct duda_session_rate *b, const struct mk_addr *client, uint64_t window,
                             uint64_t max);

#endif
