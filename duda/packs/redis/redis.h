/* SPDX-License-Identifier: Apache-2.0 */
/* A server as a worker has it: a connection for commands, one for messages, and those that wait for commands
 * that block. */
#ifndef DUDA_REDIS_REDIS_H
#define DUDA_REDIS_REDIS_H

#include <duda/store_backend.h>

#include "cluster.h"
#include "hub.h"
#include "queue.h"
#include "rooms.h"

/* A connection that a command may block. */
struct redis_blocker {
    struct redis_blocker *next;
    struct redis_queue queue;
};

void redis_blocker_free(struct redis_blocker *b);

struct duda_redis {
    struct redis_queue queue; /* of a cluster: any node */
    struct redis_hub hub;
    struct duda_store shared;       /* it, for duda/store.h */
    struct redis_cluster *cluster;  /* NULL: it is none */
    struct redis_blocker *blockers; /* idle ones */
    unsigned n_blockers;
    struct redis_rooms *rooms; /* NULL: they end at this machine */
};

#endif
