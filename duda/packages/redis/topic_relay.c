/* SPDX-License-Identifier: Apache-2.0 */
/* Each worker has its own subscription to the channel. It ignores messages from workers of its machine,
 * because it has already received them. */
#include "topic_relay.h"

#include <duda/topic.h>
#include <errno.h>
#include <monkey/mem.h>

#include "key_slot.h"

enum { ORIGIN = sizeof(uint64_t) };

struct redis_topic_relay {
    struct mk_worker *worker;
    struct redis_command_queue *queue;
    struct duda_redis_sub sub;
    struct duda_topic_relay relay;
};

static mk_str relay_channel(const struct redis_topic_relay *r)
{
    return mk_str_of(r->sub.channel, r->sub.channel_len);
}

/* Queues a PUBLISH command like those of handlers, and ignores its reply. */
static int relay_publish(void *ctx, mk_str message)
{
    struct redis_topic_relay *r = ctx;
    struct redis_batch *batch;
    struct mk_buf text = mk_buf_growing(ORIGIN + DUDA_TOPIC_MESSAGE_MAX + DUDA_TOPIC_NAME_MAX + 2);
    mk_buf_add(&text, mk_str_of((const char *)r->queue->conn.settings->origin, ORIGIN));
    mk_buf_add(&text, message);
    int e = text.failed ? -ENOMEM : redis_batch_begin(r->queue, NULL, 1, &batch);
    if (!e) {
        const mk_str parts[] = {MK_STR("PUBLISH"), relay_channel(r), mk_buf_str(&text)};
        redis_command_format(&r->queue->bytes, parts, 3);
        e = redis_batch_enqueue(r->queue, batch);
    }
    mk_buf_free(&text);
    return e == -EBUSY || e == -ECONNREFUSED ? -EAGAIN : e;
}

static void on_message(void *ctx, mk_str text)
{
    struct redis_topic_relay *r = ctx;
    if (text.len > ORIGIN && memcmp(text.p, r->queue->conn.settings->origin, ORIGIN) != 0)
        duda_topic_deliver(r->worker, mk_str_skip(text, ORIGIN));
}

struct redis_topic_relay *redis_topic_relay_new(struct mk_worker *w, struct redis_command_queue *q,
                                                struct redis_pubsub *h)
{
    struct redis_topic_relay *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    struct mk_buf name = mk_buf_fixed(r->sub.channel, sizeof r->sub.channel);
    mk_buf_addf(&name, REDIS_RESERVED_PREFIX "topics:%.*s", MK_STR_ARG(q->conn.settings->topic_relay));
    r->worker = w;
    r->queue = q;
    r->sub.channel_len = name.len;
    r->sub.on_message = on_message;
    r->sub.ctx = r;
    r->relay = (struct duda_topic_relay){.publish = relay_publish, .ctx = r};
    if (duda_topic_set_relay(w, &r->relay)) {
        mk_mem_free(r);
        return NULL;
    }
    redis_pubsub_subscribe(h, &r->sub);
    return r;
}

void redis_topic_relay_free(struct redis_topic_relay *r)
{
    if (!r)
        return;
    (void)duda_topic_set_relay(r->worker, NULL);
    redis_pubsub_unsubscribe(&r->sub);
    mk_mem_free(r);
}
