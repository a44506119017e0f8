/* SPDX-License-Identifier: Apache-2.0 */
/* A server as a worker has it: a connection for commands, one for messages, and those that wait for commands
 * that block. */
#ifndef DUDA_REDIS_REDIS_H
#define DUDA_REDIS_REDIS_H

#include <duda/redis.h>
#include <duda/store_backend.h>

#include "cluster.h"
#include "command_queue.h"
#include "pubsub.h"
#include "topic_relay.h"

/* A connection that a command may block. */
struct redis_dedicated_conn {
    struct redis_dedicated_conn *next;
    struct redis_command_queue queue;
};

void redis_dedicated_conn_free(struct redis_dedicated_conn *b);

struct duda_redis {
    struct redis_command_queue queue; /* of a cluster: any node */
    struct redis_pubsub pubsub;
    struct duda_store shared;               /* it, for duda/store.h */
    struct redis_cluster *cluster;          /* NULL: it is none */
    struct redis_dedicated_conn *dedicated; /* idle ones */
    unsigned n_dedicated;
    struct redis_topic_relay *rooms; /* NULL: they end at this machine */
};

/* As duda_redis_do() and duda_redis_pipeline(), for keys of Duda. */
int redis_do_internal(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                      const mk_str *parts, size_t n);
int redis_pipeline_internal(struct duda_ctx *d, struct duda_redis *r,
                            const struct duda_redis_command *commands, size_t n,
                            struct duda_redis_reply *replies);
/* As duda_redis_do() and duda_redis_eval(), for writes of stores, which wait for Replicas: *is_kept says
 * whether so many have it. NULL, for a script: it does not wait. */
int redis_do_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                        const mk_str *parts, size_t n, bool *is_kept);
int redis_eval_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                          struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n,
                          bool *is_kept);

#endif
