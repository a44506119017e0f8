/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how many of a server's connections one client address uses at once, across all workers. No client
 * gets all connections, however slow its requests are. */
#ifndef MK_UPSTREAM_CLIENT_SHARE_H
#define MK_UPSTREAM_CLIENT_SHARE_H

#include "upstream/pool_type.h"

/* Hash of the client's address, used in shared memory; 0: the client has no address and therefore no
 * limit. */
uint64_t mk_client_share_key(struct mk_pool *p, const struct mk_addr *peer);
/* Returns the limit for the server's connections, taken from the newest configuration. If a worker kept the
 * lower limit of an older configuration, the first request of the queue could not use a free slot in that
 * worker, and the requests of other workers would wait behind it. */
struct mk_conn_limit_rule mk_client_share_limit_rule(const struct mk_backend *o);
/* Does the client already use its full share of this server's connections? */
bool mk_client_share_is_used_up(const struct mk_backend *o, uint64_t client);

/* Cache for one pass over the wait queue: the clients that have used up their shares. */
struct mk_client_share_pass {
    uint64_t used_up[4];
    unsigned n;
};
/* Like mk_client_share_is_used_up(), but cached, for one server per pass. */
bool mk_client_share_is_used_up_in_pass(struct mk_client_share_pass *p, const struct mk_backend *o,
                                        uint64_t client);

/* The maximum number of requests of one client that may wait for the upstream in this worker. */
unsigned mk_client_share_queue_max(const struct mk_upstream *u);

#endif
