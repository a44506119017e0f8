/* SPDX-License-Identifier: Apache-2.0 */
/* Publish/subscribe of a server: one connection per worker, and its subscriptions. */
#ifndef DUDA_REDIS_PUBSUB_H
#define DUDA_REDIS_PUBSUB_H

#include <duda/redis.h>

#include "common/package_message_queue.h"
#include "conn.h"

struct duda_redis_sub {
    struct duda_redis_sub *next, **prev_next;
    struct redis_pubsub *pubsub; /* NULL: unsubscribed */
    struct package_message_queue
        inbox; /* for a handler that receives; otherwise on_message(ctx, text) is called for each message */
    void (*on_message)(void *ctx, mk_str text);
    void (*on_active)(void *ctx); /* the server has confirmed the subscription; NULL: not called */
    void *ctx;
    bool is_active;
    size_t channel_len;
    char channel[DUDA_REDIS_CHANNEL_MAX];
};

struct redis_pubsub {
    struct redis_conn conn; /* must be first: a connection is cast to its pubsub */
    struct mk_timer timer;
    struct duda_redis_sub *subs;
    uint64_t last_received_ms, pinged_ms; /* pinged_ms: 0 if no PING is outstanding */
};

int redis_pubsub_init(struct redis_pubsub *h, struct mk_worker *w, const struct redis_settings *settings);
void redis_pubsub_fini(struct redis_pubsub *h);
void redis_pubsub_subscribe(struct redis_pubsub *h, struct duda_redis_sub *sub);
void redis_pubsub_unsubscribe(struct duda_redis_sub *sub);

#endif
