/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/check.h"

#include <errno.h>

#include "upstream/health.h"

/* "HTTP/1.1 200" */
enum { STATUS_AT = 9, STATUS_LEN = 12, HEAD_MAX = 1024, RESPONSE_MAX = 64 * 1024 };

struct mk_check {
    struct mk_outlet *outlet;
    struct mk_channel *channel; /* NULL: none is under way */
    struct mk_alarm *alarm;
    bool is_sent;
    bool is_judged;        /* the result is known; the rest of the response is read and dropped */
    char line[STATUS_LEN]; /* the beginning of the response */
    size_t len;            /* of the response so far */
    unsigned n_failed;     /* addresses in a row where connecting failed */
};

static void judge(struct mk_check *c, bool ok)
{
    const struct mk_server *s = c->outlet->server;
    bool was_refused = mk_health_is_refused(s);
    c->is_judged = true;
    c->n_failed = 0;
    mk_health_check(s, ok);
    mk_health_show(s, c->outlet->names.n > 0);
    if (ok == was_refused)
        mk_worker_log(c->outlet->pool->worker, MK_LOG_WARN,
                      "upstream %.*s: the server %.*s %s its health check", MK_STR_ARG(s->upstream->name),
                      MK_STR_ARG(s->name), ok ? "passes" : "fails");
}

/* The end of a check. What is judged already stays so. */
static void finish(struct mk_check *c, bool ok)
{
    if (c->channel)
        mk_channel_close(c->channel);
    c->channel = NULL;
    if (!c->is_judged)
        judge(c, ok);
}

static bool is_judgement(struct mk_check *c, const struct mk_addr *at, int error)
{
    struct mk_names *names = &c->outlet->names;
    if (mk_health_is_shortage(error))
        return false;
    return !at || !mk_names_fail(names, at) || ++c->n_failed >= names->n;
}

/* Connecting failed. What we lack says nothing about the server, nor does one of its addresses: the next
 * check may. */
static void give_up(struct mk_check *c, const struct mk_addr *at, int error)
{
    if (is_judgement(c, at, error))
        finish(c, false);
    else if (c->channel)
        mk_channel_close(c->channel);
    c->channel = NULL;
}

static bool send_request(struct mk_check *c)
{
    const struct mk_server *s = c->outlet->server;
    char room[HEAD_MAX];
    struct mk_buf head = mk_buf_fixed(room, sizeof room);
    mk_str host = s->host.p ? s->host : MK_STR("localhost");
    bool is_address6 = mk_str_find(host, ':') != MK_STR_NONE;
    mk_buf_addf(
        &head,
        "GET %.*s HTTP/1.1\r\nHost: %s%.*s%s\r\nUser-Agent: monkey-health\r\nConnection: close\r\n\r\n",
        MK_STR_ARG(s->upstream->settings->check), is_address6 ? "[" : "", MK_STR_ARG(host),
        is_address6 ? "]" : "");
    c->is_sent = true;
    return !head.failed && mk_channel_write(c->channel, mk_buf_str(&head), false) == (ssize_t)head.len;
}

static bool is_good(const struct mk_check *c)
{
    uint64_t status;
    mk_str line = mk_str_of(c->line, sizeof c->line);
    return mk_str_starts(line, MK_STR("HTTP/1.")) && mk_num_parse(mk_str_skip(line, STATUS_AT), &status) &&
           status >= 200 && status < 400;
}

/* The status decides. The rest is read as well: a server whose response stays unread finds its connection
 * reset, and may log an error for each check. */
static void read_response(struct mk_check *c)
{
    char rest[1024];
    while (c->len < RESPONSE_MAX) {
        bool has_status = c->len >= STATUS_LEN;
        ssize_t n = mk_channel_read(c->channel, has_status ? rest : c->line + c->len,
                                    has_status ? sizeof rest : STATUS_LEN - c->len);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            break;
        c->len += (size_t)n;
        if (c->len == STATUS_LEN)
            judge(c, is_good(c));
    }
    finish(c, false);
}

static void go_on(struct mk_check *c)
{
    const struct mk_server *s = c->outlet->server;
    if (c->channel->state == MK_CHANNEL_FAILED)
        give_up(c, &c->channel->to, c->channel->error);
    else if (c->channel->state != MK_CHANNEL_OPEN)
        return;
    else if (s->upstream->settings->check.p[0] != '/')
        finish(c, true); /* it accepts connections */
    else if (!c->is_sent && !send_request(c))
        finish(c, false);
    else
        read_response(c);
}

static void on_channel(struct mk_channel *channel, unsigned which)
{
    (void)which;
    go_on(channel->check);
}

static void begin(void *ctx)
{
    struct mk_check *c = ctx;
    struct mk_outlet *o = c->outlet;
    int error = -EHOSTUNREACH;
    if (c->channel && c->channel->state != MK_CHANNEL_OPEN)
        give_up(c, &c->channel->to, -ETIMEDOUT);
    else if (c->channel) /* it did not answer in time */
        finish(c, false);
    mk_alarm_set(c->alarm, o->server->upstream->settings->check_ms);
    mk_names_refresh(&o->names);
    const struct mk_addr *to = mk_names_next(&o->names);
    if (!to && mk_names_is_pending(&o->names))
        return;
    c->is_sent = c->is_judged = false;
    c->len = 0;
    c->channel = to ? mk_channel_dial(o->server, to, o->pool->worker, &o->session, &error) : NULL;
    if (!c->channel) {
        give_up(c, to, error);
        return;
    }
    c->channel->check = c;
    c->channel->on_ready = on_channel;
    go_on(c);
}

struct mk_check *mk_check_start(struct mk_outlet *o)
{
    struct mk_check *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->outlet = o;
    c->alarm = mk_alarm_new(o->pool->worker, begin, c);
    if (!c->alarm) {
        mk_mem_free(c);
        return NULL;
    }
    begin(c);
    return c;
}

void mk_check_stop(struct mk_check *c)
{
    if (!c)
        return;
    if (c->channel)
        mk_channel_close(c->channel);
    mk_alarm_free(c->alarm);
    mk_mem_free(c);
}
