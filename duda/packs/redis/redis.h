/* SPDX-License-Identifier: Apache-2.0 */
/* A server as a worker has it: a connection for commands, and one for messages. */
#ifndef DUDA_REDIS_REDIS_H
#define DUDA_REDIS_REDIS_H

#include <duda/store_backend.h>

#include "hub.h"
#include "queue.h"

struct duda_redis {
    struct redis_queue queue;
    struct redis_hub hub;
    struct duda_store shared; /* it, for duda/store.h */
};

#endif
