/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for subscriptions, whose messages a handler receives or a callback gets. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

#include "common/package.h"
#include "pool.h"

static void free_sub(void *ctx)
{
    postgres_pubsub_unsubscribe(ctx);
    postgres_pubsub_free_sub(ctx);
}

/* A handler's subscription is freed when the handler returns. */
void duda_postgres_unsubscribe(struct duda_postgres_sub *sub)
{
    struct postgres_pubsub *h = sub->pubsub;
    postgres_pubsub_unsubscribe(sub);
    if (sub->inbox.d)
        return;
    if (h->delivers) {
        sub->unsubscribed = h->unsubscribed;
        h->unsubscribed = sub;
    } else {
        postgres_pubsub_free_sub(sub);
    }
}

static struct duda_postgres_sub *sub_new(mk_str channel)
{
    struct duda_postgres_sub *sub = mk_mem_zalloc(1, sizeof *sub);
    if (!sub)
        return NULL;
    memcpy(sub->channel, channel.p, channel.len);
    return sub;
}

static struct duda_postgres_sub *sub_new_for_handler(struct duda_ctx *d, mk_str channel)
{
    struct duda_postgres_sub *sub = sub_new(channel);
    if (!sub)
        return NULL;
    package_message_queue_init(&sub->inbox, d, DUDA_POSTGRES_MESSAGES_MAX);
    return duda_defer(d, free_sub, sub) ? NULL : sub;
}

/* Returns 0, -EOPNOTSUPP without a PostgreSQL database, or -EINVAL for an invalid channel name. */
static int check_channel(struct postgres_pool *b, mk_str channel)
{
    if (!b)
        return -EOPNOTSUPP;
    return channel.len && channel.len <= DUDA_POSTGRES_CHANNEL_MAX && !memchr(channel.p, 0, channel.len)
               ? 0
               : -EINVAL;
}

static int subscribe_and_wait(struct postgres_pool *b, struct duda_postgres_sub *sub)
{
    postgres_pubsub_subscribe(&b->pubsub, sub);
    int e = package_message_queue_wait_for(&sub->inbox, &sub->is_active, b->settings->timeout_ms);
    if (e)
        postgres_pubsub_unsubscribe(sub);
    return e;
}

int duda_postgres_subscribe(struct duda_ctx *d, struct duda_sql_db *db, mk_str channel,
                            struct duda_postgres_sub **out)
{
    struct package_call call;
    *out = NULL;
    if (!db)
        return -ENODEV;
    struct postgres_pool *b = postgres_pool_from_sql(db);
    int e = check_channel(b, channel);
    e = e ? e : package_call_begin(&call, d, db->meter);
    if (e)
        return e;
    struct duda_postgres_sub *sub = sub_new_for_handler(d, channel);
    e = package_call_end(&call, sub ? subscribe_and_wait(b, sub) : -ENOMEM);
    if (!e)
        *out = sub;
    return e;
}

int duda_postgres_receive(struct duda_ctx *d, struct duda_postgres_sub *sub, uint32_t ms, mk_str *text)
{
    (void)d;
    *text = MK_STR_NULL;
    return sub->pubsub ? package_message_queue_receive(&sub->inbox, ms, text) : -EINVAL;
}

int duda_postgres_subscribe_callback(struct mk_worker *w, const char *database, mk_str channel,
                                     void (*on_message)(void *ctx, mk_str text), void *ctx,
                                     struct duda_postgres_sub **out)
{
    struct duda_sql_db *db = duda_sql_of(w, database);
    struct postgres_pool *b = db ? postgres_pool_from_sql(db) : NULL;
    int e = db ? check_channel(b, channel) : -ENODEV;
    if (out)
        *out = NULL;
    if (e)
        return e;
    struct duda_postgres_sub *sub = sub_new(channel);
    if (!sub)
        return -ENOMEM;
    sub->on_message = on_message;
    sub->ctx = ctx;
    if (out)
        *out = sub; /* set before the first message: on_message() may use it */
    postgres_pubsub_subscribe(&b->pubsub, sub);
    return 0;
}
