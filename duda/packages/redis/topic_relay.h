/* SPDX-License-Identifier: Apache-2.0 */
/* What is said in rooms, from machine to machine. */
#ifndef DUDA_REDIS_TOPIC_RELAY_H
#define DUDA_REDIS_TOPIC_RELAY_H

#include "command_queue.h"
#include "pubsub.h"

struct redis_topic_relay;

/* NULL: no memory, or no Duda. */
struct redis_topic_relay *redis_topic_relay_new(struct mk_worker *w, struct redis_command_queue *q,
                                                struct redis_pubsub *h);
/* Before the hub goes. NULL is fine. */
void redis_topic_relay_free(struct redis_topic_relay *r);

#endif
