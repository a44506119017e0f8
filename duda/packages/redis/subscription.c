/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of duda/redis.h for subscriptions. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "common/package.h"
#include "key_slot.h"
#include "redis.h"

static void free_sub(void *ctx)
{
    struct duda_redis_sub *sub = ctx;
    redis_pubsub_unsubscribe(sub);
    package_message_queue_fini(&sub->inbox);
    mk_mem_free(sub);
}

static struct duda_redis_sub *sub_new(struct duda_ctx *d, mk_str channel)
{
    struct duda_redis_sub *sub = mk_mem_zalloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->channel_len = channel.len;
    memcpy(sub->channel, channel.p, channel.len);
    package_message_queue_init(&sub->inbox, d, DUDA_REDIS_MESSAGES_MAX);
    return duda_defer(d, free_sub, sub) ? NULL : sub;
}

static int subscribe_and_wait(struct duda_ctx *d, struct duda_redis *r, mk_str channel,
                              struct duda_redis_sub **out)
{
    if (!channel.len || channel.len > DUDA_REDIS_CHANNEL_MAX)
        return -EINVAL;
    if (redis_is_reserved_key(channel))
        return -EPERM;
    struct duda_redis_sub *sub = sub_new(d, channel);
    if (!sub)
        return -ENOMEM;
    redis_pubsub_subscribe(&r->pubsub, sub);
    int e = package_message_queue_wait_for(&sub->inbox, &sub->is_active, r->pubsub.conn.settings->timeout_ms);
    if (e)
        redis_pubsub_unsubscribe(sub);
    else
        *out = sub;
    return e;
}

int duda_redis_subscribe(struct duda_ctx *d, struct duda_redis *r, mk_str channel,
                         struct duda_redis_sub **out)
{
    struct package_call call;
    *out = NULL;
    if (!r)
        return -ENODEV;
    int e = package_call_begin(&call, d, NULL);
    return package_call_end(&call, e ? e : subscribe_and_wait(d, r, channel, out));
}

int duda_redis_receive(struct duda_ctx *d, struct duda_redis_sub *sub, uint32_t ms, mk_str *message)
{
    (void)d;
    *message = MK_STR_NULL;
    return sub->pubsub ? package_message_queue_receive(&sub->inbox, ms, message) : -EINVAL;
}

void duda_redis_unsubscribe(struct duda_redis_sub *sub)
{
    redis_pubsub_unsubscribe(sub);
}
