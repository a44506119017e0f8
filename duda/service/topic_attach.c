/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets that are subscribed to topics. */
#include <duda/scope.h>
#include <errno.h>

#include "service/suspend.h"
#include "service/topic_replay.h"
#include "service/websocket_type.h"

enum { TRY_AGAIN_LATER = 1013 };

static void on_topic_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct duda_websocket *s = m->owner;
    if (!delivery->framed)
        delivery->framed = mk_websocket_message_new(delivery->kind, delivery->text);
    int e = delivery->framed && s->end ? mk_websocket_send_message(s->end, delivery->framed) : 0;
    if (e == -EAGAIN && s->profile->options.slow == DUDA_SLOW_DISCONNECT) {
        (void)mk_websocket_close(s->end, TRY_AGAIN_LATER, MK_STR("too slow"));
        duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
    }
}

static struct duda_topic_scope topic_scope_of(const struct duda_websocket *s)
{
    return (struct duda_topic_scope){s->worker_ctx, duda_scope_of(s->owner)};
}

int duda_topic_attach(struct duda_websocket *s, const struct duda_topic *topic)
{
    if (s->members && s->members->is_reliable)
        return -EALREADY;
    return s->end ? duda_topics_subscribe(topic_scope_of(s), &s->members, topic, s, on_topic_message)
                  : -ECANCELED;
}

void duda_topic_detach(struct duda_websocket *s, const struct duda_topic *topic)
{
    duda_topics_unsubscribe(topic_scope_of(s), &s->members, topic);
}

/* ---- WebSockets whose clients miss no message ---- */

/* How often WebSockets compare their position with the log, in case another worker could not send a
 * message. */
enum { CHECK_MS = 5000 };

/* Frames a line with a word and an ID, and the text. NULL: out of memory. */
static struct mk_websocket_message *frame_with_id(const char *word, enum mk_websocket_kind kind,
                                                  const struct duda_topic_id *id, mk_str text)
{
    char id_text[DUDA_TOPIC_ID_TEXT_SIZE];
    struct mk_buf bytes = mk_buf_growing(DUDA_TOPIC_MESSAGE_MAX + 64);
    mk_buf_addf(&bytes, "%s %.*s\n", word, MK_STR_ARG(duda_topic_id_format(id, id_text)));
    mk_buf_add(&bytes, text);
    struct mk_websocket_message *framed =
        bytes.failed ? NULL : mk_websocket_message_new(kind, mk_buf_str(&bytes));
    mk_buf_free(&bytes);
    return framed;
}

/* Closes the WebSocket, so that the client reconnects with the ID of its last message. Frees its
 * subscription. */
static void close_lost(struct duda_websocket *s, mk_str reason)
{
    if (s->end)
        (void)mk_websocket_close(s->end, TRY_AGAIN_LATER, reason);
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
}

/* Sends a message that the client must not miss. If that fails, closes the WebSocket, and returns false;
 * NULL: out of memory. */
static bool send_or_close(struct duda_websocket *s, struct mk_websocket_message *framed)
{
    int e = framed ? mk_websocket_send_message(s->end, framed) : -ENOMEM;
    if (e && e != -ESHUTDOWN)
        close_lost(s, e == -EAGAIN ? MK_STR("too slow") : MK_STR("messages are missing"));
    return !e;
}

/* `kind` is that of the topic, for lines without a message. */
static struct mk_websocket_message *frame_kept(enum mk_websocket_kind kind, const struct duda_topic_kept *k)
{
    return k->has_gap ? frame_with_id("gap", kind, &k->prev, MK_STR(""))
                      : frame_with_id("message", k->kind, &k->id, k->text);
}

static void advance_position(struct duda_topic_position *at, const struct duda_topic_kept *k)
{
    at->cursor = k->has_gap ? k->prev : k->id;
    at->is_from_start = false;
}

static const struct duda_topic_frame *find_frame(const struct duda_topic_delivery *delivery,
                                                 const struct duda_topic_id *after)
{
    const struct duda_topic_frame *f = delivery->frames;
    while (f && !duda_topic_id_eq(&f->after, after))
        f = f->next;
    return f;
}

/* Reads from the log the message after the position, or a gap. Returns its frame, which all subscribers of the
 * delivery share; or NULL and the error. */
static const struct duda_topic_frame *read_frame(struct duda_subscriber *m, const struct duda_topic_log *log,
                                                 struct duda_topic_delivery *delivery, int *error)
{
    struct duda_topic_kept k;
    struct duda_topic_position at = m->position;
    struct mk_websocket_message *framed = NULL;
    int e = duda_topic_replay_log(log, duda_topic_table_name(m), &m->position, &k);
    if (e > 0 || k.has_gap) {
        framed = frame_kept(delivery->kind, &k);
        advance_position(&at, &k);
    }
    mk_buf_free(&k.bytes);
    *error = e < 0 ? e : -ENOMEM;
    return framed ? duda_topic_delivery_add_frame(delivery, &m->position.cursor, &at.cursor, framed) : NULL;
}

/* Sends the message after the position, and advances the position. Returns false if the subscriber cannot
 * continue; the subscription may then have been freed. */
static bool send_next(struct duda_websocket *s, struct duda_subscriber *m,
                      struct duda_topic_delivery *delivery)
{
    const struct duda_topic_log *log = duda_topics_log(s->worker_ctx);
    struct mk_websocket_message *framed = NULL;
    struct duda_topic_id id = delivery->id;
    if (duda_topic_id_eq(&m->position.cursor, &delivery->prev)) {
        if (!delivery->framed_with_id)
            delivery->framed_with_id =
                frame_with_id("message", delivery->kind, &delivery->id, delivery->text);
        framed = delivery->framed_with_id;
    } else if (log) {
        int e = 0;
        const struct duda_topic_frame *f = find_frame(delivery, &m->position.cursor);
        f = f ? f : read_frame(m, log, delivery, &e);
        if (!f && e == -EBUSY) /* a later message or check_positions() tries again */
            return false;
        framed = f ? f->framed : NULL;
        id = f ? f->id : id;
    }
    if (!send_or_close(s, framed))
        return false;
    m->position.cursor = id;
    m->position.is_from_start = false;
    return true;
}

/* Sends the message, after all messages between the position and this one: messages from several workers may
 * arrive in another order, and a worker may have been unable to send a message. */
static void on_kept_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct duda_websocket *s = m->owner;
    if (!s->end || !delivery->is_kept || !duda_topic_id_less(&m->position.cursor, &delivery->id))
        return;
    if (m->is_behind) {
        m->n_news++;
        return;
    }
    while (send_next(s, m, delivery) && duda_topic_id_less(&m->position.cursor, &delivery->id))
        continue;
}

static void on_missed(struct duda_subscriber *m)
{
    const struct duda_websocket *s = m->owner;
    if (!m->is_behind)
        duda_topic_table_mark_lost(s->worker_ctx->topics, m);
    m->n_news++;
}

void duda_topics_close_lost(struct duda_worker_ctx *worker_ctx)
{
    struct duda_subscriber *m;
    while ((m = duda_topic_table_first_lost(worker_ctx->topics)))
        close_lost(m->owner, MK_STR("messages are missing"));
}

/* The ID of the last message of a topic, which is read once for all subscribers of the topic. */
struct position_check {
    const struct duda_topic_log *log;
    const struct duda_topic_entry *topic;
    struct duda_topic_id last;
};

/* A message that the log contains is on its way to this worker for a moment. It is missing if the WebSocket
 * had the same position at the last check. */
static bool check_position(struct duda_subscriber *m, void *ctx)
{
    struct position_check *check = ctx;
    const struct duda_websocket *s = m->owner;
    if (m->on_missed != on_missed || m->is_behind)
        return true;
    if (check->topic != m->topic && duda_topic_log_last(check->log, duda_topic_table_name(m), &check->last))
        return false; /* each further attempt could block the worker as long as this one */
    check->topic = m->topic;
    bool is_behind = duda_topic_id_less(&m->position.cursor, &check->last);
    if (is_behind && m->was_behind && duda_topic_id_eq(&m->checked, &m->position.cursor))
        duda_topic_table_mark_lost(s->worker_ctx->topics, m);
    m->was_behind = is_behind;
    m->checked = m->position.cursor;
    return true;
}

static void check_positions(struct mk_timer *t)
{
    struct duda_worker_ctx *worker_ctx = MK_CONTAINER(t, struct duda_worker_ctx, topic_timer);
    struct position_check check = {.log = worker_ctx->topic_log};
    duda_topic_table_for_each(worker_ctx->topics, check_position, &check);
    duda_topics_close_lost(worker_ctx);
    mk_timer_set(t, worker_ctx->worker, CHECK_MS);
}

static void start_checks(struct duda_worker_ctx *worker_ctx)
{
    if (mk_timer_is_set(&worker_ctx->topic_timer) || !duda_topics_log(worker_ctx))
        return;
    mk_timer_init(&worker_ctx->topic_timer, check_positions);
    mk_timer_set(&worker_ctx->topic_timer, worker_ctx->worker, CHECK_MS);
}

/* ---- Replay ---- */

/* A call of duda_topic_attach_after(). Its handler may be terminated during each wait. */
struct attach_wait {
    struct duda_wait wait; /* must be first */
    struct duda_websocket *s;
    const struct duda_topic *topic;      /* NULL: not subscribed */
    struct mk_websocket_message *framed; /* being sent; NULL: none */
    bool is_complete;
};

static void on_attach_end(struct duda_wait *w)
{
    struct attach_wait *a = (struct attach_wait *)w;
    struct duda_websocket *s = a->s;
    mk_websocket_message_free(a->framed);
    s->attaching = NULL;
    if (!a->is_complete && a->topic)
        duda_topics_unsubscribe(topic_scope_of(s), &s->members, a->topic);
    if (!s->end && !s->d)
        duda_websocket_end_callbacks(s, s->close_code);
}

/* Sends the frame, and frees it; waits while the send queue is full. */
static int send_and_free(struct attach_wait *a, struct mk_websocket_message *framed)
{
    const struct duda_websocket *s = a->s;
    int e = framed ? 0 : -ENOMEM;
    a->framed = framed;
    while (!e && (e = s->end ? mk_websocket_send_message(s->end, framed) : -ECANCELED) == -EAGAIN)
        e = duda_suspend(a->wait.d);
    a->framed = NULL;
    mk_websocket_message_free(framed);
    return e == -ESHUTDOWN ? -ECANCELED : e;
}

/* Reads the next kept message after *at, and sends it. Returns 1; 0: there is none; or an error. */
static int send_next_kept(struct attach_wait *a, mk_str topic, struct duda_topic_position *at)
{
    struct duda_topic_kept k;
    struct mk_websocket_message *framed = NULL;
    int e = duda_topic_replay_next(a->wait.d, topic, at, &k);
    bool is_sent = k.has_gap || e > 0;
    if (is_sent) {
        framed = frame_kept(duda_topics_kind(a->topic), &k);
        advance_position(at, &k);
    } else if (e == 0) { /* the client has everything, even if the last message has expired */
        at->cursor = k.prev;
        at->is_from_start = false;
    }
    mk_buf_free(&k.bytes); /* before the wait: a handler terminated there would leak it */
    if (!is_sent)
        return e == -EBUSY ? -EAGAIN : e;
    e = send_and_free(a, framed);
    return e ? e : 1;
}

static struct duda_subscriber *find_attached(const struct attach_wait *a)
{
    return duda_topics_find(topic_scope_of(a->s), &a->s->members, a->topic);
}

/* Sends the kept messages to the client, until it has all of them. The subscription may end during a wait. */
static int replay_kept_messages(struct attach_wait *a, mk_str last_id)
{
    struct duda_ctx *d = a->wait.d;
    struct duda_subscriber *m = find_attached(a);
    struct duda_topic_position at = m->position;
    mk_str name = duda_strdup(d, duda_topic_table_name(m));
    int e = name.p ? duda_topic_replay_begin(d, name, last_id, &at) : -ENOMEM;
    if (!e && !last_id.len)
        e = send_and_free(a, frame_with_id("start", duda_topics_kind(a->topic), &at.cursor, MK_STR("")));
    size_t mark = duda_arena_mark(d);
    unsigned news = 0;
    for (bool is_done = false; !e && !is_done;) {
        m = find_attached(a);
        news = m ? m->n_news : 0;
        e = m ? send_next_kept(a, name, &at) : -ECANCELED;
        duda_arena_rewind(d, mark);
        m = find_attached(a);
        is_done = e == 0 && m && m->n_news == news;
        e = e > 0 ? 0 : e;
    }
    if (!e) {
        m->position = at;
        m->is_behind = false;
    }
    return e;
}

static int check_may_attach_after(const struct duda_ctx *d, const struct duda_websocket *s,
                                  const struct duda_topic *topic)
{
    if (!topic || !topic->keep || s->attaching || (s->d && s->d != d))
        return -EINVAL;
    if (!duda_topics_log(s->worker_ctx) && !s->worker_ctx->relay->read_kept)
        return -ENOTSUP;
    if (!s->end)
        return -ECANCELED;
    return s->members ? -EALREADY : 0; /* the lines with IDs do not name the topic */
}

int duda_topic_attach_after(struct duda_ctx *d, struct duda_websocket *s, const struct duda_topic *topic,
                            mk_str last_id)
{
    struct attach_wait a = {.s = s};
    int e = check_may_attach_after(d, s, topic);
    e = e ? e : duda_wait_begin(d, &a.wait, on_attach_end);
    if (e)
        return e;
    s->attaching = d;
    e = duda_topics_subscribe(topic_scope_of(s), &s->members, topic, s, on_kept_message);
    if (!e) {
        a.topic = topic;
        s->members->is_reliable = s->members->is_behind = true;
        s->members->on_missed = on_missed;
        e = replay_kept_messages(&a, last_id);
    }
    a.is_complete = !e;
    if (!e)
        start_checks(s->worker_ctx);
    duda_wait_end(&a.wait); /* may free the WebSocket */
    return e;
}
