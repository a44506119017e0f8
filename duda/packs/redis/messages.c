/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions as straight-line calls. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "redis.h"

static void on_due(void *ctx)
{
    struct duda_redis_sub *sub = ctx;
    sub->is_due = true;
    duda_wake(sub->d);
}

static void free_sub(void *ctx)
{
    struct duda_redis_sub *sub = ctx;
    redis_hub_leave(sub);
    mk_alarm_free(sub->alarm);
    mk_mem_free(sub->current);
    for (struct redis_message *m = sub->first, *next; m; m = next) {
        next = m->next;
        mk_mem_free(m);
    }
    mk_mem_free(sub);
}

static struct duda_redis_sub *make(struct duda *d, mk_str channel)
{
    struct duda_redis_sub *sub = mk_mem_zalloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->d = d;
    sub->last = &sub->first;
    sub->channel_len = channel.len;
    memcpy(sub->channel, channel.p, channel.len);
    sub->alarm = mk_alarm_new(duda_worker(d), on_due, sub);
    if (!sub->alarm) {
        free_sub(sub);
        return NULL;
    }
    return duda_defer(d, free_sub, sub) ? NULL : sub;
}

int duda_redis_subscribe(struct duda *d, struct duda_redis *r, mk_str channel, struct duda_redis_sub **out)
{
    int e = 0;
    *out = NULL;
    if (duda_ended(d))
        return duda_suspend(d);
    if (!channel.len || channel.len > DUDA_REDIS_CHANNEL_MAX)
        return -EINVAL;
    struct duda_redis_sub *sub = make(d, channel);
    if (!sub)
        return -ENOMEM;
    mk_alarm_set(sub->alarm, r->hub.conn.settings->timeout_ms);
    redis_hub_join(&r->hub, sub);
    while (!sub->is_active && !sub->is_due && !e)
        e = duda_suspend(d);
    mk_alarm_stop(sub->alarm);
    if (!e && !sub->is_active)
        e = -ETIMEDOUT;
    if (e)
        redis_hub_leave(sub);
    else
        *out = sub;
    return e;
}

/* 0: there is a message; 1: there is nothing. */
static int take(struct duda_redis_sub *sub, mk_str *message)
{
    mk_mem_free(sub->current);
    sub->current = sub->first;
    if (sub->current) {
        sub->first = sub->current->next;
        if (!sub->first)
            sub->last = &sub->first;
        sub->n--;
        *message = mk_str_of(sub->current->text, sub->current->len);
        return 0;
    }
    if (sub->has_lost || sub->was_reset) {
        int e = sub->has_lost ? -EOVERFLOW : -ECONNRESET;
        sub->has_lost = sub->was_reset = false;
        return e;
    }
    return 1;
}

int duda_redis_receive(struct duda *d, struct duda_redis_sub *sub, uint32_t ms, mk_str *message)
{
    int e = 0, got = 1;
    *message = MK_ABSENT;
    if (duda_ended(d))
        return duda_suspend(d);
    if (!sub->hub)
        return -EINVAL;
    sub->is_due = false;
    if (ms)
        mk_alarm_set(sub->alarm, ms);
    while (!e && (got = take(sub, message)) > 0 && !sub->is_due)
        e = duda_suspend(d);
    mk_alarm_stop(sub->alarm);
    return e ? e : got > 0 ? -EAGAIN : got;
}

void duda_redis_leave(struct duda_redis_sub *sub)
{
    redis_hub_leave(sub);
}
