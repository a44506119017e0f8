/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a worker to a server: one for commands, one for publish/subscribe, and dedicated ones
 * for blocking commands. */
#ifndef DUDA_REDIS_REDIS_H
#define DUDA_REDIS_REDIS_H

#include <duda/redis.h>
#include <duda/store_backend.h>

#include "cluster.h"
#include "command_queue.h"
#include "pubsub.h"

/* A connection that one handler uses for a blocking command. */
struct redis_dedicated_conn {
    struct redis_dedicated_conn *next;
    struct redis_command_queue queue;
};

void redis_dedicated_conn_free(struct redis_dedicated_conn *b);

struct redis_topic_relay;

struct duda_redis {
    struct redis_command_queue queue; /* commands; in a cluster: to any node */
    struct redis_pubsub pubsub;
    struct duda_store shared;               /* this server as a store of duda/store.h */
    struct redis_cluster *cluster;          /* NULL: not a cluster */
    struct redis_dedicated_conn *dedicated; /* idle connections */
    unsigned n_dedicated;
    struct redis_topic_relay *topic_relay; /* NULL: topics are local to this machine */
};

/* Like duda_redis_do() and duda_redis_pipeline(), but for Duda's own keys. */
int redis_do_internal(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                      const mk_str *parts, size_t n);
int redis_pipeline_internal(struct duda_ctx *d, struct duda_redis *r,
                            const struct duda_redis_command *commands, size_t n,
                            struct duda_redis_reply *replies);
/* Like duda_redis_do() and duda_redis_eval(), but for writes of stores: they wait until as
 * many replicas as `Replicas` requires have confirmed the write, and set *is_kept to whether they have. If
 * `is_kept` is NULL, redis_eval_replicated() does not wait. */
int redis_do_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                        const mk_str *parts, size_t n, bool *is_kept);
int redis_eval_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                          struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n,
                          bool *is_kept);

#endif
