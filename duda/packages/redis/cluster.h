/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis Cluster as a worker sees it: which node has which slot, and a connection to each. */
#ifndef DUDA_REDIS_CLUSTER_H
#define DUDA_REDIS_CLUSTER_H

#include "request.h"

struct redis_cluster;

/* `any` reaches any of its nodes. NULL: no memory. */
struct redis_cluster *redis_cluster_new(struct mk_worker *w, const struct redis_settings *settings,
                                        struct redis_command_queue *any);
void redis_cluster_free(struct redis_cluster *c);

/* The node of a slot; asks the cluster for its map if that is missing or old. May wait. 0, or an error of
 * which *out is the queue. */
int redis_cluster_find_node(struct duda_ctx *d, struct redis_cluster *c, int slot,
                            struct redis_command_queue **out);

/* What a reply means for its request. */
enum redis_redirect {
    REDIS_REDIRECT_NONE,
    REDIS_REDIRECT_MOVED, /* to the node *to, which has it for good */
    REDIS_REDIRECT_ASK,   /* this time to the node *to, with ASKING */
    REDIS_REDIRECT_RETRY  /* the cluster is about to change */
};
enum redis_redirect redis_cluster_parse_redirect(struct redis_cluster *c,
                                                 const struct duda_redis_reply *replies, size_t n,
                                                 struct redis_command_queue **to);
/* The map may be wrong: a node does not answer. */
void redis_cluster_invalidate(struct redis_cluster *c);

#endif
