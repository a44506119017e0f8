/* SPDX-License-Identifier: Apache-2.0 */
/* Sends SUBSCRIBE for the first subscriber of a channel, and UNSUBSCRIBE after the last one has left. A lost
 * connection is reopened, with a SUBSCRIBE for each channel. */
#include "pubsub.h"

#include <errno.h>
#include <monkey/mem.h>

enum { QUIET_MS = 10000 };

static mk_str channel_of(const struct duda_redis_sub *sub)
{
    return mk_str_of(sub->channel, sub->channel_len);
}

static struct duda_redis_sub *find_sub_of_channel(const struct redis_pubsub *h,
                                                  const struct duda_redis_sub *sub)
{
    for (struct duda_redis_sub *s = h->subs; s; s = s->next)
        if (s != sub && mk_str_eq(channel_of(s), channel_of(sub)))
            return s;
    return NULL;
}

static void send_channel_command(struct redis_pubsub *h, const char *command,
                                 const struct duda_redis_sub *sub)
{
    const mk_str parts[] = {mk_str_from_c(command), channel_of(sub)};
    if (!redis_conn_is_up(&h->conn))
        return;
    redis_command_format(&h->conn.stream.out, parts, 2);
    package_stream_flush(&h->conn.stream);
}

/* The timer fires when a PING is due, or when its reply is late. It is lazy: input does not set it again, but
 * on_timer() does. */
static void set_ping_timer(struct redis_pubsub *h)
{
    uint64_t now = mk_worker_now_ms(h->conn.stream.base.worker);
    uint64_t due =
        h->pinged_ms ? h->pinged_ms + h->conn.settings->timeout_ms : h->last_received_ms + QUIET_MS;
    if (h->subs && redis_conn_is_up(&h->conn))
        mk_timer_set(&h->timer, h->conn.stream.base.worker, due > now ? (uint32_t)(due - now) : 1);
}

void redis_pubsub_subscribe(struct redis_pubsub *h, struct duda_redis_sub *sub)
{
    const struct duda_redis_sub *other = find_sub_of_channel(h, sub);
    sub->pubsub = h;
    sub->is_active = other && other->is_active;
    sub->next = h->subs;
    sub->prev_next = &h->subs;
    if (sub->next)
        sub->next->prev_next = &sub->next;
    h->subs = sub;
    if (!other)
        send_channel_command(h, "SUBSCRIBE", sub);
    package_conn_stay_up(&h->conn.stream.base);
    set_ping_timer(h);
}

void redis_pubsub_unsubscribe(struct duda_redis_sub *sub)
{
    struct redis_pubsub *h = sub->pubsub;
    if (!h)
        return;
    *sub->prev_next = sub->next;
    if (sub->next)
        sub->next->prev_next = sub->prev_next;
    sub->pubsub = NULL;
    h->conn.stream.base.stays_up = h->subs;
    if (!find_sub_of_channel(h, sub))
        send_channel_command(h, "UNSUBSCRIBE", sub);
}

/* ---- Input ---- */

static mk_str reply_text_at(const struct duda_redis_reply *reply, size_t i)
{
    return i < reply->n && reply->items[i].type == DUDA_REDIS_TEXT ? reply->items[i].text : MK_STR_NULL;
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    struct redis_pubsub *h = (struct redis_pubsub *)c;
    h->last_received_ms = mk_worker_now_ms(c->stream.base.worker);
    if (h->pinged_ms) {
        h->pinged_ms = 0;
        set_ping_timer(h);
    }
    if (reply->type == DUDA_REDIS_STATUS) /* reply to PING, in RESP3 */
        return;
    if (reply->type != DUDA_REDIS_LIST) {
        package_conn_fail(&c->stream.base, -ENOKEY,
                          reply->type == DUDA_REDIS_ERROR
                              ? reply->text.p
                              : "the server sent an unexpected reply to SUBSCRIBE");
        return;
    }
    mk_str kind = reply_text_at(reply, 0), channel = reply_text_at(reply, 1), text = reply_text_at(reply, 2);
    for (struct duda_redis_sub *s = h->subs; s; s = s->next) {
        if (!channel.p || !mk_str_eq(channel_of(s), channel))
            continue;
        if (mk_str_eq(kind, MK_STR("subscribe"))) {
            s->is_active = true;
            package_message_queue_wake(&s->inbox);
            if (s->on_active)
                s->on_active(s->ctx);
        } else if (mk_str_eq(kind, MK_STR("message")) && text.p) {
            if (s->inbox.d)
                package_message_queue_push(&s->inbox, text);
            else
                s->on_message(s->ctx, text);
        }
    }
}

static void on_up(struct package_conn *conn)
{
    struct redis_pubsub *h = (struct redis_pubsub *)conn;
    h->last_received_ms = mk_worker_now_ms(conn->worker);
    h->pinged_ms = 0;
    set_ping_timer(h);
    for (struct duda_redis_sub *s = h->subs; s; s = s->next) {
        const mk_str parts[] = {MK_STR("SUBSCRIBE"), channel_of(s)};
        redis_command_format(&h->conn.stream.out, parts, 2);
    }
}

static void on_down(struct package_conn *conn, int error)
{
    struct redis_pubsub *h = (struct redis_pubsub *)conn;
    (void)error;
    for (struct duda_redis_sub *s = h->subs; s; s = s->next) {
        s->inbox.was_reset = s->inbox.was_reset || s->is_active;
        s->is_active = false;
        package_message_queue_wake(&s->inbox);
    }
}

/* ---- Keep-alive ---- */

/* Probes an idle connection, because a hung server does not close its connections. */
static void on_timer(struct mk_timer *t)
{
    struct redis_pubsub *h = MK_CONTAINER(t, struct redis_pubsub, timer);
    if (!h->subs || !redis_conn_is_up(&h->conn))
        return;
    uint64_t now = mk_worker_now_ms(h->conn.stream.base.worker);
    if (h->pinged_ms && now - h->pinged_ms >= h->conn.settings->timeout_ms) {
        package_conn_fail(&h->conn.stream.base, -ETIMEDOUT, "no reply to PING within Timeout");
    } else if (!h->pinged_ms && now - h->last_received_ms >= QUIET_MS) {
        h->pinged_ms = now;
        redis_command_format(&h->conn.stream.out, (const mk_str[]){MK_STR("PING")}, 1);
        package_stream_flush(&h->conn.stream);
    }
    set_ping_timer(h);
}

static const struct package_conn_ops package_ops = {.section = "REDIS",
                                                    .connect = redis_conn_connect,
                                                    .close = redis_conn_close,
                                                    .on_up = on_up,
                                                    .on_down = on_down};

static const struct redis_conn_ops conn_ops = {.on_reply = on_reply, .on_push = on_reply};

int redis_pubsub_init(struct redis_pubsub *h, struct mk_worker *w, const struct redis_settings *settings)
{
    int e = redis_conn_init(&h->conn, w, settings, &package_ops, &conn_ops, NULL);
    mk_timer_init(&h->timer, on_timer);
    return e;
}

void redis_pubsub_fini(struct redis_pubsub *h)
{
    redis_conn_fini(&h->conn);
    mk_timer_stop(&h->timer);
}
