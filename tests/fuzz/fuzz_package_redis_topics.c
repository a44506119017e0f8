/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis connection for topics delivers any bytes, even replies that Redis would not send: each subscriber
 * receives only well-formed messages for its own topic. */
#include <stdlib.h>

#include "fake_upstream.h"

#include <redis/redis.h>
#include <redis/topic_relay.h>
#include <service/topic_announce.h>
#include <service/topics.h>
#include <service/worker_ctx.h>

enum { MACHINES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char origin[] = "machine";
static struct duda_worker_ctx worker_ctx;
static unsigned input;
static mk_str all;

/* ---- Replacements for Duda and the command queue ---- */

struct duda_worker_ctx *duda_worker_ctx(struct mk_worker *worker)
{
    (void)worker;
    return &worker_ctx;
}

const struct mk_plugin *duda_worker_ctx_plugin(void)
{
    return NULL;
}

int redis_batch_begin(struct redis_command_queue *q, struct redis_reply_wait *wait, size_t n_replies,
                      struct redis_batch **out)
{
    (void)q, (void)wait, (void)n_replies, (void)out;
    return -EBUSY;
}

int redis_batch_enqueue(struct redis_command_queue *q, struct redis_batch *job)
{
    (void)q, (void)job;
    return 0;
}

void package_message_queue_push(struct package_message_queue *in, mk_str text)
{
    (void)in, (void)text;
}

void package_message_queue_wake(struct package_message_queue *in)
{
    (void)in;
}

void mk_websocket_message_free(struct mk_websocket_message *m)
{
    MK_ASSERT(!m);
}

unsigned mk_worker_count(const struct mk_worker *w)
{
    (void)w;
    return 1;
}

unsigned mk_worker_index(const struct mk_worker *w)
{
    (void)w;
    return 0;
}

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, unsigned to, mk_str message)
{
    (void)w, (void)plugin, (void)to, (void)message;
    return 0;
}

/* ---- Members ---- */

/* Called by the relay for kept messages, which this test does not publish. */
mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...)
{
    (void)d, (void)fmt;
    abort();
}

int redis_do_internal(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                      const mk_str *parts, size_t n)
{
    (void)d, (void)r, (void)reply, (void)parts, (void)n;
    abort();
}

int redis_pipeline_internal(struct duda_ctx *d, struct duda_redis *r,
                            const struct duda_redis_command *commands, size_t n,
                            struct duda_redis_reply *replies)
{
    (void)d, (void)r, (void)commands, (void)n, (void)replies;
    abort();
}

int redis_eval_replicated(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                          struct duda_redis_script *script, size_t n_keys, const mk_str *arguments, size_t n,
                          bool *is_kept)
{
    (void)d, (void)r, (void)reply, (void)script, (void)n_keys, (void)arguments, (void)n, (void)is_kept;
    abort();
}

void duda_topic_announce_change(struct duda_worker_ctx *ctx, mk_str topic, int change)
{
    (void)ctx, (void)topic, (void)change;
}

void duda_topic_announce_stop(struct duda_worker_ctx *ctx)
{
    (void)ctx;
}

void duda_topic_resync(struct mk_worker *worker)
{
    (void)worker;
}

static void on_received(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    MK_ASSERT(mk_str_eq(delivery->topic, mk_str_from_c(m->owner)) && !delivery->framed);
    MK_ASSERT(delivery->kind == MK_WEBSOCKET_TEXT || delivery->kind == MK_WEBSOCKET_BINARY);
    MK_ASSERT(delivery->text.len + delivery->topic.len + 2 < all.len);
    input++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char chat[] = "s:chat", other[] = "s:o";
    static const struct duda_topic chat_topic = {.name = MK_STR_INIT("chat")},
                                   other_topic = {.name = MK_STR_INIT("o")};
    const struct duda_topic_scope scope = {&worker_ctx, MK_STR("s")};
    uint64_t machine;
    struct duda_subscriber *subscribers = NULL;
    struct redis_settings settings = {.name = MK_STR("main"),
                                      .topic_relay = MK_STR("r"),
                                      .timeout_ms = 1000,
                                      .reply_max = MACHINES_MAX,
                                      .origin = &machine};
    struct redis_command_queue queue = {.conn.settings = &settings};
    struct redis_pubsub hub = {.subs = NULL};
    if (size < 2 || size > MACHINES_MAX)
        return 0;
    memcpy(&machine, origin, sizeof machine);
    all = mk_str_of((const char *)data, size);
    peer_piece = data[0] % 64 + 1;
    peer_input = mk_str_skip(all, 1);
    MK_ASSERT(duda_topics_subscribe(scope, &subscribers, &chat_topic, chat, on_received) == 0);
    MK_ASSERT(duda_topics_subscribe(scope, &subscribers, &other_topic, other, on_received) == 0);
    MK_ASSERT(redis_pubsub_init(&hub, NULL, &settings) == 0);
    struct redis_topic_relay *sizes = redis_topic_relay_new(NULL, &queue, &hub, NULL);
    MK_ASSERT(sizes);
    while (peer_input.len)
        package_conn_open(&hub.conn.stream.base);
    redis_topic_relay_free(sizes);
    redis_pubsub_fini(&hub);
    duda_topics_unsubscribe_all(&worker_ctx, &subscribers);
    duda_topic_table_free(worker_ctx.topics);
    worker_ctx.topics = NULL;
    MK_ASSERT(!peer_open && !worker_ctx.relay);
    return 0;
}
