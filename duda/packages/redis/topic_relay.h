/* SPDX-License-Identifier: Apache-2.0 */
/* Relays messages of topics between machines, through a Redis channel. */
#ifndef DUDA_REDIS_TOPIC_RELAY_H
#define DUDA_REDIS_TOPIC_RELAY_H

#include "command_queue.h"
#include "pubsub.h"

struct duda_redis;
struct redis_topic_relay;

/* Returns NULL if out of memory, or if Duda does not run in this worker. */
struct redis_topic_relay *redis_topic_relay_new(struct mk_worker *w, struct redis_command_queue *q,
                                                struct redis_pubsub *h, struct duda_redis *redis);
/* Call it before you free the pubsub. `r` may be NULL. */
void redis_topic_relay_free(struct redis_topic_relay *r);

#endif
