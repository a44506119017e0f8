/* SPDX-License-Identifier: Apache-2.0 */
/* Sends LISTEN for the first subscriber of a channel, and UNLISTEN after the last one has left. A lost
 * connection is reopened, with a LISTEN for each channel. */
#include "pubsub.h"

#include <errno.h>
#include <monkey/mem.h>

enum { STATEMENT_MAX = 160 };

static struct duda_postgres_sub *find_sub_of_channel(const struct postgres_pubsub *h,
                                                     const struct duda_postgres_sub *sub)
{
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next)
        if (s != sub && strcmp(s->channel, sub->channel) == 0)
            return s;
    return NULL;
}

/* ---- Output ---- */

/* A LISTEN in flight; it ends before the pubsub is freed. */
struct listen_request {
    struct postgres_pubsub *pubsub;
    uint64_t no;
};

static void activate_sub(struct duda_postgres_sub *s)
{
    s->is_active = true;
    if (s->inbox.d) { /* a handler receives: from now on, it misses no message */
        s->inbox.was_reset = s->inbox.was_reset || s->was_active;
        s->was_active = true;
        package_message_queue_wake(&s->inbox);
    } else {
        s->on_message(s->ctx, MK_STR_NULL);
    }
}

/* Activates the subscriptions that a LISTEN covers. The search starts again after each of them, because
 * callbacks may unsubscribe. */
static void activate_subs(struct postgres_pubsub *h, uint64_t no)
{
    struct duda_postgres_sub *s = h->subs;
    while (s) {
        if (s->listen_no != no || s->is_active) {
            s = s->next;
            continue;
        }
        activate_sub(s);
        s = h->subs;
    }
}

static void on_listen_done(void *ctx, const struct postgres_query *query)
{
    struct listen_request *listen_request = ctx;
    struct postgres_pubsub *h = listen_request->pubsub;
    if (!query->error)
        activate_subs(h, listen_request->no);
    else if (package_conn_is_in_state(&h->conn.base, PACKAGE_CONN_READY)) /* up, but the statement failed */
        mk_worker_log(h->conn.base.worker, MK_LOG_ERROR, "%s", query->error_text);
    mk_mem_free(listen_request);
}

static bool send_channel_command(struct postgres_pubsub *h, const char *command, const char *channel,
                                 struct listen_request *listen_request)
{
    char buf[STATEMENT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    mk_buf_add(&text, mk_str_from_c(command));
    if (channel) {
        mk_buf_add(&text, MK_STR(" \""));
        for (const char *at = channel; *at; at++) {
            mk_buf_add_char(&text, *at);
            if (*at == '"')
                mk_buf_add_char(&text, '"');
        }
        mk_buf_add_char(&text, '"');
    }
    buf[text.len] = 0;
    struct postgres_query *query = postgres_query_new(mk_buf_str(&text), NULL, 0);
    if (!query)
        return false;
    query->on_done = listen_request ? on_listen_done : NULL;
    query->ctx = listen_request;
    postgres_conn_send(&h->conn, query);
    postgres_conn_flush(&h->conn);
    return true;
}

/* Sends one LISTEN for all subscribers of this channel. */
static void send_listen(struct postgres_pubsub *h, const char *channel)
{
    struct listen_request *listen_request = mk_mem_alloc(sizeof *listen_request);
    if (listen_request) {
        *listen_request = (struct listen_request){h, ++h->n_listens};
        for (struct duda_postgres_sub *s = h->subs; s; s = s->next)
            if (strcmp(s->channel, channel) == 0)
                s->listen_no = listen_request->no;
        if (send_channel_command(h, "LISTEN", channel, listen_request))
            return;
        mk_mem_free(listen_request);
    }
    package_conn_fail(&h->conn.base, -ENOMEM, "out of memory");
}

/* The timer fires when the connection has been idle for Timeout. While a statement is in flight, the timer of
 * the connection detects a hung server. */
static void set_probe_timer(struct postgres_pubsub *h)
{
    uint64_t now = mk_worker_now_ms(h->conn.base.worker),
             due = h->last_received_ms + h->conn.settings->timeout_ms;
    if (h->subs && package_conn_is_in_state(&h->conn.base, PACKAGE_CONN_READY) && !h->conn.base.sent.first)
        mk_timer_set(&h->timer, h->conn.base.worker, due > now ? (uint32_t)(due - now) : 1);
}

void postgres_pubsub_subscribe(struct postgres_pubsub *h, struct duda_postgres_sub *sub)
{
    const struct duda_postgres_sub *other = find_sub_of_channel(h, sub);
    sub->pubsub = h;
    sub->listen_no = other ? other->listen_no : 0;
    sub->next = h->subs;
    sub->prev_next = &h->subs;
    if (sub->next)
        sub->next->prev_next = &sub->next;
    h->subs = sub;
    if (other && other->is_active)
        activate_sub(sub);
    else if (!other && package_conn_is_in_state(&h->conn.base, PACKAGE_CONN_READY))
        send_listen(h, sub->channel);
    package_conn_stay_up(&h->conn.base);
    set_probe_timer(h);
}

void postgres_pubsub_unsubscribe(struct duda_postgres_sub *sub)
{
    struct postgres_pubsub *h = sub->pubsub;
    if (!h)
        return;
    *sub->prev_next = sub->next;
    if (sub->next)
        sub->next->prev_next = sub->prev_next;
    sub->pubsub = NULL;
    h->conn.base.stays_up = h->subs;
    if (!find_sub_of_channel(h, sub) && package_conn_is_in_state(&h->conn.base, PACKAGE_CONN_READY))
        (void)send_channel_command(h, "UNLISTEN", sub->channel, NULL);
}

void postgres_pubsub_free_sub(struct duda_postgres_sub *sub)
{
    package_message_queue_fini(&sub->inbox);
    mk_mem_free(sub);
}

/* ---- Input ---- */

/* Callbacks may end any subscription: those that have ended stay in memory until all callbacks have
 * returned. */
static void on_notify(struct postgres_conn *c, const char *channel, mk_str text)
{
    struct postgres_pubsub *h = (struct postgres_pubsub *)c;
    h->delivers = true;
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next) {
        if (!s->pubsub || !s->is_active || strcmp(s->channel, channel) != 0)
            continue;
        if (s->inbox.d)
            package_message_queue_push(&s->inbox, text);
        else
            s->on_message(s->ctx, text);
    }
    h->delivers = false;
    while (h->unsubscribed) {
        struct duda_postgres_sub *s = h->unsubscribed;
        h->unsubscribed = s->unsubscribed;
        postgres_pubsub_free_sub(s);
    }
}

static void on_statement_done(struct postgres_conn *c)
{
    struct postgres_pubsub *h = (struct postgres_pubsub *)c;
    h->last_received_ms = mk_worker_now_ms(c->base.worker);
    set_probe_timer(h);
}

/* Sends one LISTEN for each channel: all subscribers of a channel share the number of its LISTEN. */
static void on_up(struct package_conn *conn)
{
    struct postgres_pubsub *h = (struct postgres_pubsub *)conn;
    uint64_t before = h->n_listens;
    on_statement_done(&h->conn);
    for (struct duda_postgres_sub *s = h->subs; s && package_conn_is_in_state(conn, PACKAGE_CONN_READY);
         s = s->next)
        if (s->listen_no <= before)
            send_listen(h, s->channel);
}

static void on_down(struct package_conn *conn, int error)
{
    struct postgres_pubsub *h = (struct postgres_pubsub *)conn;
    (void)error;
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next) {
        s->is_active = false;
        s->listen_no = 0;
    }
}

/* ---- Keep-alive ---- */

/* Probes an idle connection, because a hung server does not close its connections. */
static void on_timer(struct mk_timer *t)
{
    struct postgres_pubsub *h = MK_CONTAINER(t, struct postgres_pubsub, timer);
    uint64_t idle_ms = mk_worker_now_ms(h->conn.base.worker) - h->last_received_ms;
    if (!h->subs || !package_conn_is_in_state(&h->conn.base, PACKAGE_CONN_READY) || h->conn.base.sent.first)
        return;
    if (idle_ms >= h->conn.settings->timeout_ms && !send_channel_command(h, "SELECT 1", NULL, NULL))
        h->last_received_ms += idle_ms; /* out of memory: probes later */
    set_probe_timer(h);
}

static const struct package_conn_ops package_ops = {.section = "POSTGRES",
                                                    .connect = postgres_conn_connect,
                                                    .close = postgres_conn_close,
                                                    .on_up = on_up,
                                                    .on_down = on_down,
                                                    .on_timeout = postgres_conn_on_timeout,
                                                    .finish = postgres_conn_finish_request};

int postgres_pubsub_init(struct postgres_pubsub *h, struct mk_worker *w,
                         const struct postgres_settings *settings, struct postgres_resolver *hosts)
{
    int e = postgres_conn_init(&h->conn, w, settings, hosts, &package_ops);
    h->conn.on_statement_done = on_statement_done;
    h->conn.on_notify = on_notify;
    mk_timer_init(&h->timer, on_timer);
    return e;
}

void postgres_pubsub_fini(struct postgres_pubsub *h)
{
    if (!h->conn.settings)
        return;
    postgres_conn_fini(&h->conn);
    while (h->subs) { /* only subscriptions with callbacks are left, because all handlers have ended */
        struct duda_postgres_sub *s = h->subs;
        postgres_pubsub_unsubscribe(s);
        postgres_pubsub_free_sub(s);
    }
    mk_timer_stop(&h->timer);
}
