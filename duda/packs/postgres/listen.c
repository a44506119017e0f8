/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as straight-line calls, and for functions. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "base.h"
#include "sections.h"

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
    if (sub->inbox.d)
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
    memcpy(sub->channel, channel.p, channel.len);
    return sub;
}

static struct duda_postgres_sub *make_for(struct duda *d, mk_str channel)
{
    struct duda_postgres_sub *sub = make(channel);
    if (!sub)
        return NULL;
    pack_inbox_init(&sub->inbox, d, DUDA_POSTGRES_MESSAGES_MAX);
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

static int listen_to(struct postgres_base *b, struct duda_postgres_sub *sub)
{
    postgres_hub_join(&b->hub, sub);
    int e = pack_inbox_await(&sub->inbox, &sub->is_active, b->settings->timeout_ms);
    if (e)
        postgres_hub_leave(sub);
    return e;
}

int duda_postgres_listen(struct duda *d, struct duda_sql *db, mk_str channel, struct duda_postgres_sub **out)
{
    struct pack_call call;
    *out = NULL;
    if (!db)
        return -ENODEV;
    struct postgres_base *b = postgres_base_of(db);
    int e = check(b, channel);
    e = e ? e : pack_call_begin(&call, d, db->meter);
    if (e)
        return e;
    struct duda_postgres_sub *sub = make_for(d, channel);
    e = pack_call_end(&call, sub ? listen_to(b, sub) : -ENOMEM);
    if (!e)
        *out = sub;
    return e;
}

int duda_postgres_receive(struct duda *d, struct duda_postgres_sub *sub, uint32_t ms, mk_str *text)
{
    (void)d;
    *text = MK_ABSENT;
    return sub->hub ? pack_inbox_receive(&sub->inbox, ms, text) : -EINVAL;
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
