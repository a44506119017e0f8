/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets that are subscribed to topics. */
#include <duda/scope.h>
#include <errno.h>

#include "service/suspend.h"
#include "service/topic_replay.h"
#include "service/websocket_type.h"

enum { TRY_AGAIN_LATER = 1013 };

/* Sends a message of a topic. Returns false after closing the WebSocket of a client that is too slow. */
static bool send_framed(struct duda_websocket *s, struct mk_websocket_message *framed, bool is_closed_if_slow)
{
    if (mk_websocket_send_message(s->end, framed) != -EAGAIN || !is_closed_if_slow)
        return true;
    (void)mk_websocket_close(s->end, TRY_AGAIN_LATER, MK_STR("too slow"));
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
    return false;
}

static void on_topic_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct duda_websocket *s = m->owner;
    if (!delivery->framed)
        delivery->framed = mk_websocket_message_new(delivery->kind, delivery->text);
    if (delivery->framed && s->end)
        (void)send_framed(s, delivery->framed, s->profile->options.slow == DUDA_SLOW_DISCONNECT);
}

static struct duda_topic_scope topic_scope_of(const struct duda_websocket *s)
{
    return (struct duda_topic_scope){s->worker_ctx, duda_scope_of(s->owner)};
}

int duda_topic_attach(struct duda_websocket *s, const struct duda_topic *topic)
{
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

/* Closes the WebSocket, so that the client reconnects with the ID of its last message. */
static void close_lost(struct duda_websocket *s)
{
    if (s->end)
        (void)mk_websocket_close(s->end, TRY_AGAIN_LATER, MK_STR("messages are missing"));
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
}

static struct mk_websocket_message *frame_kept(enum mk_websocket_kind kind, const struct duda_topic_kept *k)
{
    return k->has_gap ? frame_with_id("gap", kind, &k->prev, MK_STR(""))
                      : frame_with_id("message", kind, &k->id, k->text);
}

static void advance_position(struct duda_topic_position *at, const struct duda_topic_kept *k)
{
    at->cursor = k->has_gap ? k->prev : k->id;
    at->is_from_start = false;
}

/* Sends all messages after the position from the log: messages from several workers may arrive in another
 * order, and a worker may have been unable to send a message. */
static void catch_up_from_log(struct duda_websocket *s, struct duda_subscriber *m,
                              const struct duda_topic_log *log, enum mk_websocket_kind kind)
{
    for (bool is_done = false; !is_done;) {
        struct duda_topic_kept k;
        is_done = duda_topic_replay_log(log, duda_topic_table_name(m), &m->position, &k) <= 0 && !k.has_gap;
        struct mk_websocket_message *framed = is_done ? NULL : frame_kept(kind, &k);
        mk_buf_free(&k.bytes);
        if (framed && send_framed(s, framed, true))
            advance_position(&m->position, &k);
        else
            is_done = true;
        mk_websocket_message_free(framed);
    }
}

static void on_kept_message(struct duda_subscriber *m, struct duda_topic_delivery *delivery)
{
    struct duda_websocket *s = m->owner;
    if (!s->end || !delivery->is_kept || !duda_topic_id_less(&m->position.cursor, &delivery->id))
        return;
    if (m->is_behind) {
        m->n_news++;
        return;
    }
    const struct duda_topic_log *log = duda_topics_log(s->worker_ctx);
    if (log && !duda_topic_id_eq(&m->position.cursor, &delivery->prev)) {
        catch_up_from_log(s, m, log, delivery->kind);
        return;
    }
    if (!delivery->framed_with_id)
        delivery->framed_with_id = frame_with_id("message", delivery->kind, &delivery->id, delivery->text);
    if (!delivery->framed_with_id || !duda_topic_id_eq(&m->position.cursor, &delivery->prev))
        close_lost(s);
    else if (send_framed(s, delivery->framed_with_id, true))
        m->position.cursor = delivery->id;
}

static void on_missed(struct duda_subscriber *m)
{
    m->is_lost = !m->is_behind;
    m->n_news++;
}

void duda_topics_close_lost(struct duda_worker_ctx *worker_ctx)
{
    struct duda_subscriber *m;
    while ((m = duda_topic_table_find_lost(worker_ctx->topics)))
        close_lost(m->owner);
}

/* A message that the log contains is on its way to this worker for a moment. It is missing if the WebSocket
 * had the same position at the last check. */
static void check_position(struct duda_subscriber *m)
{
    struct duda_topic_id last;
    if (m->on_missed != on_missed || m->is_behind)
        return;
    const struct duda_websocket *s = m->owner;
    bool is_behind = !duda_topic_log_last(s->worker_ctx->topic_log, duda_topic_table_name(m), &last) &&
                     duda_topic_id_less(&m->position.cursor, &last);
    m->is_lost = is_behind && m->was_behind && duda_topic_id_eq(&m->checked, &m->position.cursor);
    m->was_behind = is_behind;
    m->checked = m->position.cursor;
}

static void check_positions(struct mk_timer *t)
{
    struct duda_worker_ctx *worker_ctx = MK_CONTAINER(t, struct duda_worker_ctx, topic_timer);
    duda_topic_table_for_each(worker_ctx->topics, check_position);
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

/* Sends the frame, and frees it; waits while the send queue is full. */
static int send_and_free(struct duda_ctx *d, struct duda_websocket *s, struct mk_websocket_message *framed)
{
    int e = framed ? 0 : -ENOMEM;
    while (!e && (e = s->end ? mk_websocket_send_message(s->end, framed) : -ECANCELED) == -EAGAIN)
        e = duda_suspend(d);
    mk_websocket_message_free(framed);
    return e == -ESHUTDOWN ? -ECANCELED : e;
}

/* Reads the next kept message after *at, and sends it. Returns 1; 0: there is none; or an error. */
static int send_next_kept(struct duda_ctx *d, struct duda_websocket *s, mk_str topic,
                          enum mk_websocket_kind kind, struct duda_topic_position *at)
{
    struct duda_topic_kept k;
    int e = duda_topic_replay_next(d, topic, at, &k);
    if (k.has_gap || e > 0) {
        int sent = send_and_free(d, s, frame_kept(kind, &k));
        advance_position(at, &k);
        e = sent ? sent : 1;
    }
    mk_buf_free(&k.bytes);
    return e == -EBUSY ? -EAGAIN : e;
}

/* Sends the kept messages to the client, until it has all of them. The subscription may end during a wait. */
static int replay_kept_messages(struct duda_ctx *d, struct duda_websocket *s, const struct duda_topic *topic,
                                mk_str last_id)
{
    struct duda_subscriber *m = s->members; /* the newest */
    struct duda_topic_position at = m->position;
    mk_str name = duda_strdup(d, duda_topic_table_name(m));
    int e = name.p ? duda_topic_replay_begin(d, name, last_id, &at) : -ENOMEM;
    enum mk_websocket_kind kind = duda_topics_kind(topic);
    if (!e && !last_id.len)
        e = send_and_free(d, s, frame_with_id("start", kind, &at.cursor, MK_STR("")));
    size_t mark = duda_arena_mark(d);
    unsigned news = 0;
    for (bool is_done = false; !e && !is_done;) {
        m = duda_topics_find(topic_scope_of(s), &s->members, topic);
        news = m ? m->n_news : 0;
        e = m ? send_next_kept(d, s, name, kind, &at) : -ECANCELED;
        duda_arena_rewind(d, mark);
        m = duda_topics_find(topic_scope_of(s), &s->members, topic);
        is_done = e == 0 && m && m->n_news == news;
        e = e > 0 ? 0 : e;
    }
    if (!e) {
        m->position = at;
        m->is_behind = false;
    }
    return e;
}

int duda_topic_attach_after(struct duda_ctx *d, struct duda_websocket *s, const struct duda_topic *topic,
                            mk_str last_id)
{
    if (!topic || !topic->keep || s->attaching || (s->d && s->d != d))
        return -EINVAL;
    if (!duda_topics_log(s->worker_ctx) && !s->worker_ctx->relay->read_kept)
        return -ENOTSUP;
    int e = s->end ? duda_topics_subscribe(topic_scope_of(s), &s->members, topic, s, on_kept_message)
                   : -ECANCELED;
    if (e)
        return e;
    s->members->is_reliable = s->members->is_behind = true;
    s->members->on_missed = on_missed;
    s->attaching = d;
    e = replay_kept_messages(d, s, topic, last_id);
    s->attaching = NULL;
    if (e)
        duda_topics_unsubscribe(topic_scope_of(s), &s->members, topic);
    else
        start_checks(s->worker_ctx);
    if (!s->end && !s->d)
        duda_websocket_end_callbacks(s, s->close_code);
    return e;
}
