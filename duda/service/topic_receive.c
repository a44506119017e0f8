/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that receive messages of topics. */
#include <duda/scope.h>
#include <errno.h>
#include <monkey/sized.h>

#include "service/suspend.h"
#include "service/topic_replay.h"
#include "service/worker_ctx.h"

/* A handler that receives kept messages compares its position with the log this often, in case another worker
 * could not send it a message. */
enum { CHECK_MS = 5000 };

/* A received message, after the name of its topic. */
struct received_message {
    struct mk_buf bytes;
    size_t name_len;
    enum mk_websocket_kind kind;
    bool is_kept, is_gap;
    struct duda_topic_id id; /* of a kept message */
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

/* Prepares the next entry of the queue, with the name of the topic. If memory is exhausted, commit_entry()
 * fails. */
static struct received_message *queue_entry(struct duda_topic_receiver *l, mk_str topic)
{
    struct received_message *h = &l->waiting[(l->first + l->n) % DUDA_TOPIC_QUEUE_MAX];
    mk_str name = duda_topics_short_name(duda_scope(l->d), topic);
    *h = (struct received_message){.bytes = mk_buf_growing(DUDA_TOPIC_NAME_MAX + DUDA_TOPIC_MESSAGE_MAX),
                                   .name_len = name.len,
                                   .kind = MK_WEBSOCKET_TEXT};
    mk_buf_add(&h->bytes, name);
    return h;
}

static bool commit_entry(struct duda_topic_receiver *l, struct received_message *h)
{
    if (h->bytes.failed) {
        mk_buf_free(&h->bytes);
        return false;
    }
    l->n++;
    return true;
}

static bool enqueue_delivery(struct duda_topic_receiver *l, const struct duda_topic_delivery *delivery)
{
    struct received_message *h = queue_entry(l, delivery->topic);
    h->kind = delivery->kind;
    h->is_kept = delivery->is_kept;
    h->id = delivery->id;
    mk_buf_add(&h->bytes, delivery->text);
    return commit_entry(l, h);
}

/* Handles a kept message for a subscriber that must not miss any. Enqueues the message if it directly follows
 * the last one and the queue has space; otherwise the handler reads it from the log later. */
static void on_reliable_message(struct duda_topic_receiver *l, struct duda_subscriber *m,
                                const struct duda_topic_delivery *delivery)
{
    if (!duda_topic_id_less(&m->position.cursor, &delivery->id))
        return; /* read from the log already */
    bool follows = duda_topic_id_eq(&m->position.cursor, &delivery->prev);
    if (!m->is_behind && follows && l->n < DUDA_TOPIC_QUEUE_MAX && enqueue_delivery(l, delivery)) {
        m->position.cursor = delivery->id;
    } else {
        m->is_behind = true;
        m->n_news++;
    }
}

static void on_topic_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct duda_topic_receiver *l = m->owner;
    if (m->is_reliable && delivery->is_kept) {
        on_reliable_message(l, m, delivery);
    } else {
        if (l->n == DUDA_TOPIC_QUEUE_MAX && !l->waiting[l->first].is_kept) {
            drop_oldest_message(l);
            l->missed++;
        }
        if (l->n == DUDA_TOPIC_QUEUE_MAX || !enqueue_delivery(l, delivery))
            l->missed++;
    }
    duda_wait_wake(&l->wait);
}

static void on_missed(struct duda_subscriber *m)
{
    m->is_behind = true;
    m->n_news++;
    duda_wait_wake(&((struct duda_topic_receiver *)m->owner)->wait);
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

static int get_topic_receiver(struct duda_ctx *d, struct duda_topic_receiver **out)
{
    *out = d->topic_receiver;
    if (d->topic_receiver)
        return 0;
    struct duda_topic_receiver *l = *out = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->d = d;
    d->topic_receiver = l;
    return duda_defer(d, topic_receiver_free, l);
}

int duda_topic_subscribe(struct duda_ctx *d, const struct duda_topic *topic)
{
    struct duda_topic_receiver *l;
    int e = get_topic_receiver(d, &l);
    return e ? e : duda_topics_subscribe(topic_scope_of(d), &l->members, topic, l, on_topic_message);
}

int duda_topic_subscribe_after(struct duda_ctx *d, const struct duda_topic *topic, mk_str last_id)
{
    if (topic && !topic->keep)
        return -EINVAL;
    if (!duda_topics_log(d->worker_ctx) && !d->worker_ctx->relay->read_kept)
        return -ENOTSUP;
    int e = duda_topic_subscribe(d, topic);
    if (e)
        return e;
    struct duda_subscriber *m = d->topic_receiver->members; /* the newest */
    m->is_reliable = true;
    m->is_behind = true; /* messages that arrive during a wait are read afterwards */
    m->on_missed = on_missed;
    e = duda_topic_replay_begin(d, duda_topic_table_name(m), last_id, &m->position);
    if (e)
        duda_topic_unsubscribe(d, topic);
    return e;
}

void duda_topic_unsubscribe(struct duda_ctx *d, const struct duda_topic *topic)
{
    if (d->topic_receiver)
        duda_topics_unsubscribe(topic_scope_of(d), &d->topic_receiver->members, topic);
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

/* ---- Reading kept messages ---- */

/* Enqueues the message. If there is a gap, enqueues the gap instead; the message, if there is one, is then
 * read again. */
static int enqueue_kept(struct duda_topic_receiver *l, struct duda_subscriber *m,
                        const struct duda_topic_kept *k)
{
    struct received_message *h = queue_entry(l, duda_topic_table_name(m));
    h->is_kept = true;
    h->is_gap = k->has_gap;
    h->kind = k->kind;
    h->id = k->has_gap ? k->prev : k->id;
    mk_buf_add(&h->bytes, k->has_gap ? MK_STR("") : k->text);
    if (!commit_entry(l, h))
        return -ENOMEM;
    m->position.cursor = h->id;
    return 1;
}

/* Reads the next kept message of the subscription into the queue. Returns 1; 0: there is none; or an
 * error. */
static int read_kept_message(struct duda_topic_receiver *l, struct duda_subscriber *m)
{
    struct duda_topic_kept k;
    int e = duda_topic_replay_next(l->d, duda_topic_table_name(m), &m->position, &k);
    if (e > 0 || k.has_gap)
        e = enqueue_kept(l, m, &k);
    m->position.is_from_start = m->position.is_from_start && e <= 0;
    mk_buf_free(&k.bytes);
    return e;
}

/* Reads the kept messages that a subscription has not received yet, up to the capacity of the queue. */
static int catch_up_subscription(struct duda_topic_receiver *l, struct duda_subscriber *m)
{
    unsigned news = m->n_news;
    int e = 1;
    m->is_behind = true;
    while (e > 0 && l->n < DUDA_TOPIC_QUEUE_MAX) {
        e = read_kept_message(l, m);
        if (e == 0 && news != m->n_news) /* a message has arrived during the wait */
            e = 1;
        news = m->n_news;
    }
    m->is_behind = e != 0;
    return e < 0 && e != -EBUSY ? e : 0;
}

/* The log of this machine is always read, because that costs little. Messages of a relay are read only if
 * some are known to be missing. */
static int catch_up(struct duda_topic_receiver *l)
{
    bool always = duda_topics_log(l->d->worker_ctx);
    for (struct duda_subscriber *m = l->members; m; m = m->sibling) {
        int e = m->is_reliable && (always || m->is_behind) ? catch_up_subscription(l, m) : 0;
        if (e)
            return e;
    }
    return 0;
}

static bool has_reliable_subscription(const struct duda_topic_receiver *l)
{
    const struct duda_subscriber *m = l->members;
    while (m && !m->is_reliable)
        m = m->sibling;
    return m;
}

static int await_once(struct duda_topic_receiver *l, uint32_t ms)
{
    int e = duda_wait_begin(l->d, &l->wait, stop_receive_timer);
    if (e)
        return e;
    e = wait_for_message(l, ms);
    duda_wait_end(&l->wait);
    return e;
}

static int await_reliable_message(struct duda_topic_receiver *l, uint32_t ms)
{
    uint64_t now = mk_worker_now_ms(l->d->worker_ctx->worker), end = ms == MK_FOREVER ? UINT64_MAX : now + ms;
    for (;;) {
        int e = l->n ? 0 : catch_up(l);
        if (e || l->n)
            return e;
        e = await_once(l, end - now < CHECK_MS ? (uint32_t)(end - now) : CHECK_MS);
        now = mk_worker_now_ms(l->d->worker_ctx->worker);
        if (e != -ETIME)
            return e;
        if (now >= end)
            return catch_up(l) || !l->n ? -ETIME : 0;
    }
}

static int await_message(struct duda_ctx *d, uint32_t ms)
{
    struct duda_topic_receiver *l = d->topic_receiver;
    if (!l)
        return -EINVAL;
    return has_reliable_subscription(l) ? await_reliable_message(l, ms) : await_once(l, ms);
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
    out->data = h->is_gap ? MK_STR_NULL : duda_strdup(d, mk_str_skip(all, h->name_len));
    out->kind = h->kind;
    out->dropped = l->missed;
    out->has_gap = h->is_gap;
    bool failed = !out->topic.p || (!h->is_gap && !out->data.p);
    if (h->is_kept) {
        char text[DUDA_TOPIC_ID_TEXT_SIZE];
        out->id = duda_strdup(d, duda_topic_id_format(&h->id, text));
        failed = failed || !out->id.p;
    }
    l->missed = 0;
    drop_oldest_message(l);
    return failed ? -ENOMEM : 0;
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

static bool resync_subscriber(struct duda_subscriber *m, void *ctx)
{
    (void)ctx;
    if (m->on_missed)
        m->on_missed(m);
    return true;
}

void duda_topic_resync(struct mk_worker *worker)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    if (!worker_ctx || !worker_ctx->topics)
        return;
    duda_topic_table_for_each(worker_ctx->topics, resync_subscriber, NULL);
    duda_topics_close_lost(worker_ctx);
}
