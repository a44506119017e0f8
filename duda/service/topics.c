/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topics.h"

#include <duda/scope.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/utf8.h>

#include "service/topic_announce.h"
#include "service/websocket_type.h"
#include "service/worker_ctx.h"

/* ---- Subscriptions ---- */

/* "SCOPE:TOPIC". */
struct full_name {
    char topic[DUDA_SCOPE_MAX + 1 + DUDA_TOPIC_NAME_MAX];
};
_Static_assert(sizeof(struct full_name) <= INT8_MAX, "its length is a byte of a message");

/* Returns the name of the topic with its scope, like duda_scope_add() but faster, because each published
 * message needs it. Absent: the topic is NULL or a family, or its name is too long. */
static mk_str full_topic_name(mk_str scope, const struct duda_topic *topic, struct full_name *full)
{
    if (!topic || topic->is_family != (topic->key.len > 0) || topic->name.len > DUDA_TOPIC_NAME_MAX ||
        topic->key.len > DUDA_TOPIC_NAME_MAX - topic->name.len || scope.len > DUDA_SCOPE_MAX)
        return MK_STR_NULL;
    char *at = full->topic;
    if (scope.len)
        memcpy(at, scope.p, scope.len);
    at += scope.len;
    *at++ = ':';
    memcpy(at, topic->name.p, topic->name.len);
    at += topic->name.len;
    if (topic->key.len)
        memcpy(at, topic->key.p, topic->key.len);
    return mk_str_of(full->topic, scope.len + 1 + topic->name.len + topic->key.len);
}

mk_str duda_topics_short_name(mk_str scope, mk_str full_name)
{
    return mk_str_skip(full_name, scope.len + 1);
}

static struct duda_subscriber **find_subscription(struct duda_subscriber **list, mk_str topic)
{
    while (*list && !mk_str_eq(duda_topic_table_name(*list), topic))
        list = &(*list)->sibling;
    return list;
}

struct duda_subscriber *duda_topics_find(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                                         const struct duda_topic *topic)
{
    struct full_name full;
    return *find_subscription(list, full_topic_name(topic_scope.scope, topic, &full));
}

static size_t count_subscriptions(const struct duda_subscriber *list)
{
    size_t n = 0;
    for (; list; list = list->sibling)
        n++;
    return n;
}

static void count_subscriber(struct duda_worker_ctx *worker_ctx, mk_str topic, struct duda_subscriber *m)
{
    m->is_counted = duda_subscriber_counts_add(&worker_ctx->subscriber_counts, topic);
    if (!m->is_counted && !worker_ctx->has_uncounted_subscribers)
        mk_worker_log(
            worker_ctx->worker, MK_LOG_WARN,
            "topics: a worker counts the subscribers of at most %d topics, and there can be at most %d "
            "workers: duda_topic_subscribers() returns too few",
            (int)DUDA_SUBSCRIBER_TOPICS, (int)DUDA_CRASH_WORKERS_MAX);
    worker_ctx->has_uncounted_subscribers = worker_ctx->has_uncounted_subscribers || !m->is_counted;
    if (m->is_counted)
        duda_topic_announce_change(worker_ctx, topic, 1);
}

int duda_topics_subscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                          const struct duda_topic *descriptor, void *owner,
                          void (*on_message)(struct duda_subscriber *m, struct duda_topic_delivery *delivery))
{
    struct duda_worker_ctx *worker_ctx = topic_scope.worker_ctx;
    struct full_name full;
    mk_str topic = full_topic_name(topic_scope.scope, descriptor, &full);
    if (!topic.p)
        return -EINVAL;
    if (*find_subscription(list, topic))
        return -EALREADY;
    if (count_subscriptions(*list) == DUDA_TOPIC_SUBSCRIPTIONS_MAX)
        return -EDQUOT;
    if (!worker_ctx->topics)
        worker_ctx->topics = duda_topic_table_new();
    struct duda_subscriber *m = worker_ctx->topics ? mk_mem_zalloc(1, sizeof *m) : NULL;
    if (!m)
        return -ENOMEM;
    m->owner = owner;
    m->on_message = on_message;
    m->position.keep_s = descriptor->keep_s;
    int e = duda_topic_table_add(worker_ctx->topics, topic, m);
    if (e) {
        mk_mem_free(m);
        return e;
    }
    m->sibling = *list;
    *list = m;
    if (descriptor->counts_subscribers)
        count_subscriber(worker_ctx, topic, m);
    return 0;
}

static void remove_subscription(struct duda_worker_ctx *worker_ctx, struct duda_subscriber **at)
{
    struct duda_subscriber *m = *at;
    *at = m->sibling;
    if (m->is_counted) {
        duda_subscriber_counts_remove(&worker_ctx->subscriber_counts, duda_topic_table_name(m));
        duda_topic_announce_change(worker_ctx, duda_topic_table_name(m), -1);
    }
    duda_topic_table_remove(worker_ctx->topics, m);
    mk_mem_free(m);
}

void duda_topics_unsubscribe(struct duda_topic_scope topic_scope, struct duda_subscriber **list,
                             const struct duda_topic *topic)
{
    struct full_name full;
    struct duda_subscriber **at = find_subscription(list, full_topic_name(topic_scope.scope, topic, &full));
    if (*at)
        remove_subscription(topic_scope.worker_ctx, at);
}

void duda_topics_unsubscribe_all(struct duda_worker_ctx *worker_ctx, struct duda_subscriber **list)
{
    while (*list)
        remove_subscription(worker_ctx, list);
}

int duda_topic_subscribers(struct duda_ctx *d, const struct duda_topic *topic, uint64_t *n)
{
    struct full_name full;
    mk_str name = full_topic_name(duda_scope(d), topic, &full);
    *n = 0;
    if (!name.p || !topic->counts_subscribers)
        return -EINVAL;
    const struct duda_topic_relay *relay = d->worker_ctx->relay;
    uint64_t far = 0;
    int e = relay && relay->count_subscribers ? relay->count_subscribers(d, relay->ctx, name, &far) : 0;
    if (!e)
        *n = far + duda_subscriber_counts_sum(&d->worker_ctx->subscriber_counts, name);
    return e;
}

/* ---- Publishing ---- */

/* A flag in the kind of a message, which marks a kept one. */
enum { IS_KEPT = 0x40 };

/* Encodes a message for other workers: kind, length of the name, the IDs if it is a kept message, name,
 * text. */
static void encode_worker_message(struct mk_buf *out, const struct duda_topic_delivery *m)
{
    const struct duda_topic_id ids[2] = {m->prev, m->id};
    mk_buf_add_char(out, (char)((int)m->kind | (m->is_kept ? IS_KEPT : 0)));
    mk_buf_add_char(out, (char)m->topic.len);
    if (m->is_kept)
        mk_buf_add(out, mk_str_of((const char *)ids, sizeof ids));
    mk_buf_add(out, m->topic);
    mk_buf_add(out, m->text);
}

static bool decode_worker_message(mk_str message, struct duda_topic_delivery *m)
{
    struct duda_topic_id ids[2] = {0};
    *m = (struct duda_topic_delivery){.kind = MK_WEBSOCKET_TEXT};
    if (message.len < 2)
        return false;
    size_t name_len = (size_t)message.p[1];
    m->is_kept = message.p[0] & IS_KEPT;
    if ((message.p[0] & ~IS_KEPT) == MK_WEBSOCKET_BINARY)
        m->kind = MK_WEBSOCKET_BINARY;
    mk_str rest = mk_str_skip(message, 2);
    if (rest.len < name_len + (m->is_kept ? sizeof ids : 0))
        return false;
    if (m->is_kept) {
        memcpy(ids, rest.p, sizeof ids);
        rest = mk_str_skip(rest, sizeof ids);
    }
    m->prev = ids[0];
    m->id = ids[1];
    m->topic = mk_str_first(rest, name_len);
    m->text = mk_str_skip(rest, name_len);
    return true;
}

void duda_topics_deliver(struct duda_worker_ctx *worker_ctx, mk_str message)
{
    struct duda_topic_delivery delivery;
    if (worker_ctx->topics && decode_worker_message(message, &delivery))
        duda_topic_table_publish(worker_ctx->topics, &delivery);
}

static int send_to_other_workers(struct mk_worker *worker, mk_str message)
{
    int result = 0;
    for (unsigned i = 0; i < mk_worker_count(worker); i++) {
        int e =
            i == mk_worker_index(worker) ? 0 : mk_worker_send(worker, duda_worker_ctx_plugin(), i, message);
        if (e && e != -ENOTCONN)
            result = e;
    }
    return result;
}

/* Delivers the message to the subscribers of this worker, and sends it to other workers and machines. */
static int distribute(struct duda_worker_ctx *worker_ctx, struct duda_topic_delivery *delivery)
{
    struct mk_worker *worker = worker_ctx->worker;
    if (worker_ctx->topics)
        duda_topic_table_publish(worker_ctx->topics, delivery);
    if (mk_worker_count(worker) < 2 && !worker_ctx->relay)
        return 0;
    struct mk_buf message = mk_buf_growing(DUDA_TOPIC_MESSAGE_MAX + sizeof(struct full_name) + 64);
    encode_worker_message(&message, delivery);
    int e = message.failed ? -ENOMEM : send_to_other_workers(worker, mk_buf_str(&message));
    if (worker_ctx->relay && !message.failed) {
        int far = worker_ctx->relay->publish(worker_ctx->relay->ctx, mk_buf_str(&message));
        e = e ? e : far;
    }
    mk_buf_free(&message);
    return e;
}

const struct duda_topic_log *duda_topics_log(const struct duda_worker_ctx *worker_ctx)
{
    return worker_ctx->relay ? NULL : worker_ctx->topic_log;
}

/* Appends the message to the log, and distributes it. The message is published once it is in the log: a
 * worker that does not receive it reads it there. */
static int publish_kept(struct duda_worker_ctx *worker_ctx, const struct duda_topic *topic,
                        struct duda_topic_delivery *delivery)
{
    const struct duda_topic_log_rule rule = {topic->keep, topic->keep_s};
    delivery->is_kept = true;
    int e =
        duda_topic_log_append(worker_ctx->topic_log, delivery->topic, &rule, (unsigned char)delivery->kind,
                              delivery->text, mk_clock_unix_ms(), &delivery->prev, &delivery->id);
    if (e)
        return e == -EBUSY ? -EAGAIN : e;
    (void)distribute(worker_ctx, delivery);
    return 0;
}

/* Stores the message with the relay, which then delivers it to all workers, including this one. May wait.
 * `d` is the publishing handler; NULL: a callback. */
static int relay_kept(struct duda_ctx *d, const struct duda_topic_relay *relay,
                      const struct duda_topic *topic, const struct duda_topic_delivery *delivery)
{
    if (!d || !relay->publish_kept)
        return -ENOTSUP;
    return relay->publish_kept(d, relay->ctx, delivery->topic, delivery->kind, delivery->text, topic->keep,
                               topic->keep_s);
}

/* `d` is the publishing handler; NULL: a callback. The subscriber with the owner `except` does not get the
 * message; NULL: none. */
static int publish(struct duda_topic_scope topic_scope, struct duda_ctx *d, const struct duda_topic *topic,
                   mk_str text, const void *except)
{
    const struct duda_topic_relay *relay = topic_scope.worker_ctx->relay;
    struct full_name full;
    struct duda_topic_delivery delivery = {
        .topic = full_topic_name(topic_scope.scope, topic, &full), .text = text, .except = except};
    if (!delivery.topic.p || (topic->keep && except))
        return -EINVAL;
    if (text.len > DUDA_TOPIC_MESSAGE_MAX)
        return -EMSGSIZE;
    delivery.kind = duda_topics_kind(topic);
    if (delivery.kind == MK_WEBSOCKET_TEXT && mk_utf8_find_invalid(text) != MK_STR_NONE)
        return -EBADMSG; /* browsers would close their WebSockets */
    if (!topic->keep)
        return distribute(topic_scope.worker_ctx, &delivery);
    return relay ? relay_kept(d, relay, topic, &delivery)
                 : publish_kept(topic_scope.worker_ctx, topic, &delivery);
}

static int publish_and_count(struct duda_topic_scope topic_scope, struct duda_ctx *d,
                             const struct duda_topic *topic, mk_str text, const void *except)
{
    uint64_t begun = mk_clock_us();
    mk_meter_begin(topic_scope.worker_ctx->n_published);
    int e = publish(topic_scope, d, topic, text, except);
    mk_meter_end(topic_scope.worker_ctx->n_published, mk_clock_us() - begun, e < 0);
    return e;
}

static struct duda_topic_scope scope_of_handler(struct duda_ctx *d)
{
    return (struct duda_topic_scope){d->worker_ctx, duda_scope(d)};
}

static struct duda_topic_scope scope_of_websocket(const struct duda_websocket *s)
{
    return (struct duda_topic_scope){s->worker_ctx, duda_scope_of(s->owner)};
}

int duda_topic_publish(struct duda_ctx *d, const struct duda_topic *topic, mk_str data)
{
    return publish_and_count(scope_of_handler(d), d, topic, data, NULL);
}

int duda_topic_publish_from(struct duda_websocket *s, const struct duda_topic *topic, mk_str data)
{
    return publish_and_count(scope_of_websocket(s), NULL, topic, data, NULL);
}

int duda_topic_publish_others(struct duda_websocket *s, const struct duda_topic *topic, mk_str data)
{
    return publish_and_count(scope_of_websocket(s), NULL, topic, data, s);
}

int duda_topic_publish_as(struct mk_worker *worker, const struct duda_service_ref *owner,
                          const struct duda_topic *topic, mk_str data)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    return worker_ctx ? publish_and_count((struct duda_topic_scope){worker_ctx, duda_scope_of(owner)}, NULL,
                                          topic, data, NULL)
                      : -EINVAL;
}

/* ---- Other machines ---- */

int duda_topic_set_relay(struct mk_worker *worker, const struct duda_topic_relay *relay)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    if (worker_ctx)
        worker_ctx->relay = relay;
    if (worker_ctx && !relay)
        duda_topic_announce_stop(worker_ctx);
    return worker_ctx ? 0 : -EINVAL;
}

void duda_topic_deliver(struct mk_worker *worker, mk_str message)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    if (worker_ctx)
        duda_topics_deliver(worker_ctx, message);
}

void duda_topic_deliver_kept(struct mk_worker *worker, mk_str topic, enum mk_websocket_kind kind, mk_str text,
                             mk_str prev, mk_str id)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    struct duda_topic_delivery delivery = {.topic = topic, .text = text, .kind = kind, .is_kept = true};
    if (worker_ctx && worker_ctx->topics && duda_topic_id_parse(prev, &delivery.prev) &&
        duda_topic_id_parse(id, &delivery.id))
        duda_topic_table_publish(worker_ctx->topics, &delivery);
}
