/* SPDX-License-Identifier: Apache-2.0 */
/* Listens to a channel when the first one wants it, and stops after the last one. A connection that is lost
 * comes back, and all channels with it. */
#include "hub.h"

#include <errno.h>
#include <monkey/mem.h>

enum { STATEMENT_MAX = 160 };

static struct duda_postgres_sub *other_of(const struct postgres_hub *h, const struct duda_postgres_sub *sub)
{
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next)
        if (s != sub && strcmp(s->channel, sub->channel) == 0)
            return s;
    return NULL;
}

/* ---- What is sent ---- */

/* A LISTEN under way: the hub lives longer. */
struct asked {
    struct postgres_hub *hub;
    uint64_t no;
};

static void begin(struct duda_postgres_sub *s)
{
    s->is_active = true;
    if (s->inbox.d) { /* from now on none is missed */
        s->inbox.was_reset = s->inbox.was_reset || s->was_active;
        s->was_active = true;
        pack_inbox_wake(&s->inbox);
    } else {
        s->on_message(s->ctx, MK_ABSENT);
    }
}

/* Functions may leave: so each is looked for anew. */
static void begin_all(struct postgres_hub *h, uint64_t no)
{
    struct duda_postgres_sub *s = h->subs;
    while (s) {
        if (s->listen_no != no || s->is_active) {
            s = s->next;
            continue;
        }
        begin(s);
        s = h->subs;
    }
}

static void on_listening(void *ctx, const struct postgres_job *job)
{
    struct asked *asked = ctx;
    struct postgres_hub *h = asked->hub;
    if (!job->error)
        begin_all(h, asked->no);
    else if (pack_link_is(&h->conn.link, PACK_LINK_UP)) /* it is there, but does not want to */
        mk_worker_log(h->conn.link.worker, MK_LOG_ERROR, "%s", job->problem);
    mk_mem_free(asked);
}

static bool send(struct postgres_hub *h, const char *command, const char *channel, struct asked *asked)
{
    char room[STATEMENT_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room - 1);
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
    room[text.len] = 0;
    struct postgres_job *job = postgres_job_new(mk_buf_str(&text), NULL, 0);
    if (!job)
        return false;
    job->on_over = asked ? on_listening : NULL;
    job->ctx = asked;
    postgres_conn_send(&h->conn, job);
    postgres_conn_flush(&h->conn);
    return true;
}

/* For all that want this channel. */
static void listen_to(struct postgres_hub *h, const char *channel)
{
    struct asked *asked = mk_mem_alloc(sizeof *asked);
    if (asked) {
        *asked = (struct asked){h, ++h->n_listens};
        for (struct duda_postgres_sub *s = h->subs; s; s = s->next)
            if (strcmp(s->channel, channel) == 0)
                s->listen_no = asked->no;
        if (send(h, "LISTEN", channel, asked))
            return;
        mk_mem_free(asked);
    }
    pack_link_fail(&h->conn.link, -ENOMEM, "out of memory");
}

/* When the connection has been quiet for Timeout. While a statement is under way, the link has its time. */
static void set_timer(struct postgres_hub *h)
{
    uint64_t now = mk_worker_now_ms(h->conn.link.worker), due = h->heard_ms + h->conn.settings->timeout_ms;
    if (h->subs && pack_link_is(&h->conn.link, PACK_LINK_UP) && !h->conn.link.sent.first)
        mk_timer_set(&h->timer, h->conn.link.worker, due > now ? (uint32_t)(due - now) : 1);
}

void postgres_hub_join(struct postgres_hub *h, struct duda_postgres_sub *sub)
{
    const struct duda_postgres_sub *other = other_of(h, sub);
    sub->hub = h;
    sub->listen_no = other ? other->listen_no : 0;
    sub->next = h->subs;
    sub->link = &h->subs;
    if (sub->next)
        sub->next->link = &sub->next;
    h->subs = sub;
    if (other && other->is_active)
        begin(sub);
    else if (!other && pack_link_is(&h->conn.link, PACK_LINK_UP))
        listen_to(h, sub->channel);
    pack_link_stay_up(&h->conn.link);
    set_timer(h);
}

void postgres_hub_leave(struct duda_postgres_sub *sub)
{
    struct postgres_hub *h = sub->hub;
    if (!h)
        return;
    *sub->link = sub->next;
    if (sub->next)
        sub->next->link = sub->link;
    sub->hub = NULL;
    h->conn.link.stays_up = h->subs;
    if (!other_of(h, sub) && pack_link_is(&h->conn.link, PACK_LINK_UP))
        (void)send(h, "UNLISTEN", sub->channel, NULL);
}

void postgres_hub_free_sub(struct duda_postgres_sub *sub)
{
    pack_inbox_fini(&sub->inbox);
    mk_mem_free(sub);
}

/* ---- What arrives ---- */

/* Functions may leave, with any subscription: those that have left stay in memory until all have heard it. */
static void on_notify(struct postgres_conn *c, const char *channel, mk_str text)
{
    struct postgres_hub *h = (struct postgres_hub *)c;
    h->delivers = true;
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next) {
        if (!s->hub || !s->is_active || strcmp(s->channel, channel) != 0)
            continue;
        if (s->inbox.d)
            pack_inbox_put(&s->inbox, text);
        else
            s->on_message(s->ctx, text);
    }
    h->delivers = false;
    while (h->gone) {
        struct duda_postgres_sub *s = h->gone;
        h->gone = s->gone;
        postgres_hub_free_sub(s);
    }
}

static void on_free(struct postgres_conn *c)
{
    struct postgres_hub *h = (struct postgres_hub *)c;
    h->heard_ms = mk_worker_now_ms(c->link.worker);
    set_timer(h);
}

/* Each channel once: behind the first of them the others have its number. */
static void on_up(struct pack_link *l)
{
    struct postgres_hub *h = (struct postgres_hub *)l;
    uint64_t before = h->n_listens;
    on_free(&h->conn);
    for (struct duda_postgres_sub *s = h->subs; s && pack_link_is(l, PACK_LINK_UP); s = s->next)
        if (s->listen_no <= before)
            listen_to(h, s->channel);
}

static void on_down(struct pack_link *l, int error)
{
    struct postgres_hub *h = (struct postgres_hub *)l;
    (void)error;
    for (struct duda_postgres_sub *s = h->subs; s; s = s->next) {
        s->is_active = false;
        s->listen_no = 0;
    }
}

/* ---- The clock ---- */

/* A server that is frozen closes nothing: a quiet connection is asked for a sign of life. */
static void on_due(struct mk_timer *t)
{
    struct postgres_hub *h = MK_CONTAINER(t, struct postgres_hub, timer);
    uint64_t quiet_ms = mk_worker_now_ms(h->conn.link.worker) - h->heard_ms;
    if (!h->subs || !pack_link_is(&h->conn.link, PACK_LINK_UP) || h->conn.link.sent.first)
        return;
    if (quiet_ms >= h->conn.settings->timeout_ms && !send(h, "SELECT 1", NULL, NULL))
        h->heard_ms += quiet_ms; /* without memory it asks later */
    set_timer(h);
}

static const struct pack_link_ops link_ops = {.section = "POSTGRES",
                                              .connect = postgres_conn_connect,
                                              .close = postgres_conn_close,
                                              .on_up = on_up,
                                              .on_down = on_down,
                                              .on_late = postgres_conn_on_late,
                                              .finish = postgres_conn_finish};

int postgres_hub_init(struct postgres_hub *h, struct mk_worker *w, const struct postgres_settings *settings,
                      struct postgres_hosts *hosts)
{
    int e = postgres_conn_init(&h->conn, w, settings, hosts, &link_ops);
    h->conn.on_free = on_free;
    h->conn.on_notify = on_notify;
    mk_timer_init(&h->timer, on_due);
    return e;
}

void postgres_hub_fini(struct postgres_hub *h)
{
    if (!h->conn.settings)
        return;
    postgres_conn_fini(&h->conn);
    while (h->subs) { /* of functions: handlers have ended */
        struct duda_postgres_sub *s = h->subs;
        postgres_hub_leave(s);
        postgres_hub_free_sub(s);
    }
    mk_timer_stop(&h->timer);
}
