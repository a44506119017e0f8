/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions in this worker, and messages between workers. */
#ifndef DUDA_SERVICE_TOPICS_H
#define DUDA_SERVICE_TOPICS_H

#include "service/duda_ctx.h"
#include "service/topic_log.h"
#include "service/topic_table.h"

/* The owner of the topics. */
struct duda_topic_scope {
    struct duda_worker_ctx *worker_ctx;
    mk_str scope;
};

static inline enum mk_websocket_kind duda_topics_kind(const struct duda_topic *topic)
{
    return topic->kind == MK_WEBSOCKET_BINARY ? MK_WEBSOCKET_BINARY : MK_WEBSOCKET_TEXT;
}

/* Adds a topic to the subscriptions of this owner. Returns 0, -EALREADY, -EINVAL or -ENOMEM. */
int duda_topics_subscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                          const struct duda_topic *topic, void *owner,
                          void (*on_message)(struct duda_subscriber *m,
                                             struct duda_topic_delivery *delivery));
/* Returns the subscription of this owner; NULL: none. */
struct duda_subscriber *duda_topics_find(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                                         const struct duda_topic *topic);
void duda_topics_unsubscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                             const struct duda_topic *topic);
/* Unsubscribes from all topics of the list. */
void duda_topics_unsubscribe_all(struct duda_worker_ctx *worker_ctx, struct duda_subscriber **list);

/* Returns the topic name without its scope, as the service knows it. */
mk_str duda_topics_short_name(mk_str scope, mk_str full_name);

/* Returns the log of kept messages in this worker; NULL: a relay keeps them. */
const struct duda_topic_log *duda_topics_log(const struct duda_worker_ctx *worker_ctx);

/* Delivers a message published by another worker. */
void duda_topics_deliver(struct duda_worker_ctx *worker_ctx, mk_str message);

/* Closes the WebSockets that have lost messages, so that their clients reconnect. */
void duda_topics_close_lost(struct duda_worker_ctx *worker_ctx);

#endif
