/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is lent for one exchange; see monkey/upstream.h. */
#ifndef MK_UPSTREAM_LINK_H
#define MK_UPSTREAM_LINK_H

#include "upstream/pool.h"

struct mk_link {
    struct mk_list link;    /* among those that wait */
    struct mk_list changed; /* among those to be told */
    struct mk_group *group;
    struct mk_channel *channel; /* NULL: none yet, or none any more */
    struct mk_link_wish wish;
    void (*on_ready)(void *ctx, unsigned which);
    void *ctx;
    uint64_t began_us;
    uint64_t waits_since_ms; /* 0: it does not wait */
    int server;              /* the one that was chosen last; -1: none */
    int error;               /* it has failed; 0: not */
    bool was_kept;
    bool is_answered;
    bool is_check; /* of a server's health, whatever is known of it */
};

/* The connection to the server failed: tries the next one, waits, or fails. Never calls on_ready. */
void mk_link_next(struct mk_link *l);

#endif
