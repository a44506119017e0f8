/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as straight-line calls, and for functions. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "base.h"
#include "sections.h"

static void on_due(void *ctx)
{
    struct duda_postgres_sub *sub = ctx;
    sub->is_due = true;
    duda_wake(sub->d);
}

static void free_sub(void *ctx)
{
    postgres_hub_leave(ctx);
    postgres_hub_free_sub(ctx);
}

/* Of a handler it is freed when that returns. */
void duda_postgres_leave(struct duda_postgres_sub *sub)
{
    struct postgres_hub *h = sub->hub;
    postgres_hub_leave(sub);
    if (sub->d)
        return;
    if (h->delivers) {
        sub->gone = h->gone;
        h->gone = sub;
    } else {
        postgres_hub_free_sub(sub);
    }
}

static struct duda_postgres_sub *make(mk_str channel)
{
    struct duda_postgres_sub *sub = mk_mem_zalloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    sub->last = &sub->first;
    memcpy(sub->channel, channel.p, channel.len);
    return sub;
}

static struct duda_postgres_sub *make_for(struct duda *d, mk_str channel)
{
    struct duda_postgres_sub *sub = make(channel);
    if (!sub)
        return NULL;
    sub->d = d;
    sub->alarm = mk_alarm_new(duda_worker(d), on_due, sub);
    if (!sub->alarm) {
        free_sub(sub);
        return NULL;
    }
    return duda_defer(d, free_sub, sub) ? NULL : sub;
}

/* 0, -EOPNOTSUPP, -EINVAL. */
static int check(struct postgres_base *b, mk_str channel)
{
    if (!b)
        return -EOPNOTSUPP;
    return channel.len && channel.len <= DUDA_POSTGRES_CHANNEL_MAX && !memchr(channel.p, 0, channel.len)
               ? 0
               : -EINVAL;
}

static int listen_to(struct duda *d, struct postgres_base *b, struct duda_postgres_sub *sub)
{
    int e = 0;
    mk_alarm_set(sub->alarm, b->settings->timeout_ms);
    postgres_hub_join(&b->hub, sub);
    while (!sub->is_active && !sub->is_due && !e)
        e = duda_suspend(d);
    mk_alarm_stop(sub->alarm);
    if (!e && !sub->is_active)
        e = -ETIMEDOUT;
    if (e)
        postgres_hub_leave(sub);
    return e;
}

int duda_postgres_listen(struct duda *d, struct duda_sql *db, mk_str channel, struct duda_postgres_sub **out)
{
    struct postgres_base *b = postgres_base_of(db);
    int e = check(b, channel);
    *out = NULL;
    if (duda_ended(d))
        return duda_suspend(d);
    if (e)
        return e;
    struct duda_postgres_sub *sub = make_for(d, channel);
    uint64_t begun = pack_meter_begin(db->meter);
    e = sub ? listen_to(d, b, sub) : -ENOMEM;
    pack_meter_end(db->meter, begun, e);
    if (!e)
        *out = sub;
    return e;
}

/* 0: there is a message; 1: there is nothing. That some were lost is told once those that have arrived are
 * read; that the connection was lost once it is back, since only from then on none is missed. */
static int take(struct duda_postgres_sub *sub, mk_str *text)
{
    mk_mem_free(sub->current);
    sub->current = sub->first;
    if (sub->current) {
        sub->first = sub->current->next;
        if (!sub->first)
            sub->last = &sub->first;
        sub->n--;
        *text = mk_str_of(sub->current->text, sub->current->len);
        return 0;
    }
    if (sub->has_lost || sub->was_reset) {
        int e = sub->has_lost ? -EOVERFLOW : -ECONNRESET;
        sub->has_lost = sub->was_reset = false;
        return e;
    }
    return 1;
}

int duda_postgres_receive(struct duda *d, struct duda_postgres_sub *sub, uint32_t ms, mk_str *text)
{
    int e = 0, got = 1;
    *text = MK_ABSENT;
    if (duda_ended(d))
        return duda_suspend(d);
    if (!sub->hub)
        return -EINVAL;
    sub->is_due = false;
    if (ms)
        mk_alarm_set(sub->alarm, ms);
    while (!e && (got = take(sub, text)) > 0 && !sub->is_due)
        e = duda_suspend(d);
    mk_alarm_stop(sub->alarm);
    return e ? e : got > 0 ? -EAGAIN : got;
}

int duda_postgres_hear(struct mk_worker *w, const char *database, mk_str channel,
                       void (*on_message)(void *ctx, mk_str text), void *ctx, struct duda_postgres_sub **out)
{
    struct duda_sql *db = duda_sql_of(w, database);
    struct postgres_base *b = db ? postgres_base_of(db) : NULL;
    int e = db ? check(b, channel) : -ENOENT;
    if (out)
        *out = NULL;
    if (e)
        return e;
    struct duda_postgres_sub *sub = make(channel);
    if (!sub)
        return -ENOMEM;
    sub->on_message = on_message;
    sub->ctx = ctx;
    if (out)
        *out = sub; /* ahead of the first call */
    postgres_hub_join(&b->hub, sub);
    return 0;
}
