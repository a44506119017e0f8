/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that receive messages of topics. */
#include <duda/scope.h>
#include <errno.h>
#include <monkey/sized.h>

#include "service/suspend.h"
#include "service/topics.h"

/* A received message, after the name of its topic. */
struct received_message {
    struct mk_buf bytes;
    size_t name_len;
    enum mk_websocket_kind kind;
};

struct duda_topic_receiver {
    struct duda_wait wait; /* waits for a message; must be first */
    struct duda_ctx *d;
    struct mk_timer timer; /* timeout of the wait */
    struct duda_subscriber *members;
    unsigned first, n; /* index of the first queued message; number of queued messages */
    uint32_t missed;   /* number of messages dropped before the first queued one */
    struct received_message waiting[DUDA_TOPIC_QUEUE_MAX];
};

static struct duda_topic_scope topic_scope_of(struct duda_ctx *d)
{
    return (struct duda_topic_scope){d->worker_ctx, duda_scope(d)};
}

static void drop_oldest_message(struct duda_topic_receiver *l)
{
    mk_buf_free(&l->waiting[l->first].bytes);
    l->first = (l->first + 1) % DUDA_TOPIC_QUEUE_MAX;
    l->n--;
}

static void on_topic_message(void *owner, struct duda_topic_delivery *delivery)
{
    struct duda_topic_receiver *l = owner;
    if (l->n == DUDA_TOPIC_QUEUE_MAX) {
        drop_oldest_message(l);
        l->missed++;
    }
    struct received_message *h = &l->waiting[(l->first + l->n) % DUDA_TOPIC_QUEUE_MAX];
    mk_str name = duda_topics_short_name(duda_scope(l->d), delivery->topic);
    *h = (struct received_message){mk_buf_growing(DUDA_TOPIC_NAME_MAX + DUDA_TOPIC_MESSAGE_MAX), name.len,
                                   delivery->kind};
    mk_buf_add(&h->bytes, name);
    mk_buf_add(&h->bytes, delivery->text);
    if (h->bytes.failed) {
        mk_buf_free(&h->bytes);
        l->missed++;
    } else {
        l->n++;
    }
    duda_wait_wake(&l->wait);
}

static void topic_receiver_free(void *ctx)
{
    struct duda_topic_receiver *l = ctx;
    duda_topics_unsubscribe_all(l->d->worker_ctx, &l->members);
    while (l->n)
        drop_oldest_message(l);
    l->d->topic_receiver = NULL;
    mk_mem_free(l);
}

int duda_topic_subscribe(struct duda_ctx *d, mk_str name)
{
    if (!d->topic_receiver) {
        struct duda_topic_receiver *l = mk_mem_zalloc(1, sizeof *l);
        if (!l)
            return -ENOMEM;
        l->d = d;
        d->topic_receiver = l;
        int e = duda_defer(d, topic_receiver_free, l);
        if (e)
            return e;
    }
    return duda_topics_subscribe(topic_scope_of(d), &d->topic_receiver->members, name, d->topic_receiver,
                                 on_topic_message);
}

void duda_topic_unsubscribe(struct duda_ctx *d, mk_str name)
{
    if (d->topic_receiver)
        duda_topics_unsubscribe(topic_scope_of(d), &d->topic_receiver->members, name);
}

static void on_receive_timeout(struct mk_timer *t)
{
    struct duda_topic_receiver *l = MK_CONTAINER(t, struct duda_topic_receiver, timer);
    duda_wait_wake(&l->wait);
}

static void stop_receive_timer(struct duda_wait *w)
{
    mk_timer_stop(&((struct duda_topic_receiver *)w)->timer);
}

static int wait_for_message(struct duda_topic_receiver *l, uint32_t ms)
{
    if (l->n)
        return 0;
    mk_timer_init(&l->timer, on_receive_timeout);
    if (ms != MK_FOREVER)
        mk_timer_set(&l->timer, l->d->worker_ctx->worker, ms);
    int e = duda_suspend_until_drain(&l->wait);
    return l->n && e == -ESHUTDOWN && !l->d->cancel_error ? 0 : e ? e : l->n ? 0 : -ETIME;
}

static int await_message(struct duda_ctx *d, uint32_t ms)
{
    struct duda_topic_receiver *l = d->topic_receiver;
    if (!l)
        return -EINVAL;
    int e = duda_wait_begin(d, &l->wait, stop_receive_timer);
    if (e)
        return e;
    e = wait_for_message(l, ms);
    duda_wait_end(&l->wait);
    return e;
}

static int receive_topic_message(struct duda_ctx *d, uint32_t ms, struct duda_topic_message *out)
{
    struct duda_topic_receiver *l = d->topic_receiver;
    *out = (struct duda_topic_message){.kind = MK_WEBSOCKET_TEXT};
    int e = await_message(d, ms);
    if (e)
        return e;
    struct received_message *h = &l->waiting[l->first];
    mk_str all = mk_buf_str(&h->bytes);
    out->topic = duda_strdup(d, mk_str_first(all, h->name_len));
    out->data = duda_strdup(d, mk_str_skip(all, h->name_len));
    out->kind = h->kind;
    out->dropped = l->missed;
    l->missed = 0;
    drop_oldest_message(l);
    return out->topic.p && out->data.p ? 0 : -ENOMEM;
}

int duda_topic_receive_message_sized(struct duda_ctx *d, uint32_t ms, struct duda_topic_message *out,
                                     size_t out_size)
{
    struct duda_topic_message full = {0};
    int result = receive_topic_message(d, ms, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

int duda_topic_receive(struct duda_ctx *d, uint32_t ms, mk_str *out)
{
    struct duda_topic_message m;
    int e = duda_topic_receive_message(d, ms, &m);
    *out = e ? MK_STR_NULL : m.data;
    return e;
}
