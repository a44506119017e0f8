/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions as straight-line calls. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "keys.h"
#include "redis.h"
#include "sections.h"

static void free_sub(void *ctx)
{
    struct duda_redis_sub *sub = ctx;
    redis_hub_leave(sub);
    pack_inbox_fini(&sub->inbox);
    mk_mem_free(sub);
}

static struct duda_redis_sub *make(struct duda *d, mk_str channel)
{
    struct duda_redis_sub *sub = mk_mem_zalloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->channel_len = channel.len;
    memcpy(sub->channel, channel.p, channel.len);
    pack_inbox_init(&sub->inbox, d, DUDA_REDIS_MESSAGES_MAX);
    return duda_defer(d, free_sub, sub) ? NULL : sub;
}

static int subscribe(struct duda *d, struct duda_redis *r, mk_str channel, struct duda_redis_sub **out)
{
    if (!channel.len || channel.len > DUDA_REDIS_CHANNEL_MAX)
        return -EINVAL;
    if (redis_is_own(channel))
        return -EPERM;
    struct duda_redis_sub *sub = make(d, channel);
    if (!sub)
        return -ENOMEM;
    redis_hub_join(&r->hub, sub);
    int e = pack_inbox_await(&sub->inbox, &sub->is_active, r->hub.conn.settings->timeout_ms);
    if (e)
        redis_hub_leave(sub);
    else
        *out = sub;
    return e;
}

int duda_redis_subscribe(struct duda *d, struct duda_redis *r, mk_str channel, struct duda_redis_sub **out)
{
    struct pack_call call;
    *out = NULL;
    if (!r)
        return -ENODEV;
    int e = pack_call_begin(&call, d, NULL);
    return pack_call_end(&call, e ? e : subscribe(d, r, channel, out));
}

int duda_redis_receive(struct duda *d, struct duda_redis_sub *sub, uint32_t ms, mk_str *message)
{
    (void)d;
    *message = MK_ABSENT;
    return sub->hub ? pack_inbox_receive(&sub->inbox, ms, message) : -EINVAL;
}

void duda_redis_leave(struct duda_redis_sub *sub)
{
    redis_hub_leave(sub);
}
