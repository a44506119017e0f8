/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's view of a Redis Cluster: the slot map, and a connection to each node. */
#ifndef DUDA_REDIS_CLUSTER_H
#define DUDA_REDIS_CLUSTER_H

#include "request.h"

struct redis_cluster;

/* `any` is connected to any of the nodes. Returns NULL if out of memory. */
struct redis_cluster *redis_cluster_new(struct mk_worker *w, const struct redis_settings *settings,
                                        struct redis_command_queue *any);
void redis_cluster_free(struct redis_cluster *c);

/* Finds the node of a slot, and fetches the slot map if it is missing or stale, which may wait. Returns 0, or
 * an error of the queue *out. */
int redis_cluster_find_node(struct duda_ctx *d, struct redis_cluster *c, int slot,
                            struct redis_command_queue **out);

/* The action that a reply requests from the client. */
enum redis_redirect {
    REDIS_REDIRECT_NONE,
    REDIS_REDIRECT_MOVED, /* resend to the node *to, the new owner of the slot */
    REDIS_REDIRECT_ASK,   /* resend this request to the node *to, with ASKING */
    REDIS_REDIRECT_RETRY  /* retry: the cluster is reconfiguring */
};
enum redis_redirect redis_cluster_parse_redirect(struct redis_cluster *c,
                                                 const struct duda_redis_reply *replies, size_t n,
                                                 struct redis_command_queue **to);
/* Call this when a node does not respond: the slot map may be stale, so the next command fetches it again. */
void redis_cluster_invalidate(struct redis_cluster *c);

#endif
