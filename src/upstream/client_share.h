/* SPDX-License-Identifier: Apache-2.0 */
/* How many of a server's connections the requests of one client address use at the same time, in all workers:
 * no client gets them all, however slow its requests are. */
#ifndef MK_UPSTREAM_CLIENT_SHARE_H
#define MK_UPSTREAM_CLIENT_SHARE_H

#include "upstream/pool_type.h"

/* The number that stands for the client in memory that all workers share; 0: it has no address of its own, so
 * no share limits it. */
uint64_t mk_client_share_key(struct mk_pool *p, const struct mk_addr *peer);
/* What limits the connections of all workers to the server, as the last configuration has it: a worker of a
 * former one, whose requests wait longest, would hold up others with less. */
struct mk_conn_limit_rule mk_client_share_limit_rule(const struct mk_backend *o);
/* Has the client as many connections to this server as it may? */
bool mk_client_share_is_used_up(const struct mk_backend *o, uint64_t client);

/* Clients whose shares were found to be used up, to look only once for each in a pass over those that wait. */
struct mk_client_share_pass {
    uint64_t used_up[4];
    unsigned n;
};
/* As mk_client_share_is_used_up(), for one server in each pass. */
bool mk_client_share_is_used_up_in_pass(struct mk_client_share_pass *p, const struct mk_backend *o,
                                        uint64_t client);

/* How many of a worker's requests that wait for the upstream may be of one client. */
unsigned mk_client_share_queue_max(const struct mk_upstream *u);

#endif
