/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in which rooms of this worker, and what workers tell each other. */
#ifndef DUDA_SERVICE_TOPICS_H
#define DUDA_SERVICE_TOPICS_H

#include "service/duda_ctx.h"
#include "service/topic_table.h"

/* Whose rooms they are. */
struct duda_topic_scope {
    struct duda_worker_ctx *worker_ctx;
    mk_str scope;
};

/* One more room for the owner of this list. 0, -EALREADY, -EINVAL or -ENOMEM. */
int duda_topics_subscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list, mk_str topic,
                          void *owner, void (*on_message)(void *owner, struct duda_topic_delivery *delivery));
void duda_topics_unsubscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                             mk_str topic);
/* Leaves all rooms of the list. */
void duda_topics_unsubscribe_all(struct duda_worker_ctx *worker_ctx, struct duda_subscriber **list);

/* A room as the service named it. */
mk_str duda_topics_short_name(mk_str scope, mk_str full_name);

/* What another worker said. */
void duda_topics_deliver(struct duda_worker_ctx *worker_ctx, mk_str message);

#endif
