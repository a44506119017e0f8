/* SPDX-License-Identifier: Apache-2.0 */
/* The connection is one of the plugin `upstream`: names, TLS and unix sockets are its business. */
#include "conn.h"

#include <errno.h>

#include "link/link.h"

static const char too_long[] = "a reply is longer than MaxReply";

enum {
    READ_ROOM = 16 * 1024,
    MEMBER_MIN = 3, /* bytes of a member of a list, such as "+", CR, LF */
    OUT_MAX = 256 << 20,
    OUT_KEPT = 256 << 10,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000
};

void redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings)
{
    c->settings = settings;
    c->worker = w;
    c->out = mk_buf_growing(OUT_MAX);
    c->parser.list_max = (size_t)settings->reply_max / MEMBER_MIN;
    redis_parser_init(&c->parser);
}

static void drop(struct redis_conn *c)
{
    mk_upstream_conn_release(c->link, MK_UPSTREAM_CONN_CLOSE);
    c->link = NULL;
    c->state = REDIS_DOWN;
    c->unparsed = 0;
    mk_buf_free(&c->out);
}

void redis_conn_fini(struct redis_conn *c)
{
    drop(c);
    redis_parser_fini(&c->parser);
}

/* Into room that is there. */
static void put(struct mk_buf *out, const char *p, size_t len)
{
    memcpy(out->p + out->len, p, len);
    out->len += len;
}

/* A length, as "$12" or "*3", and the end of the line. */
static void put_count(struct mk_buf *out, char mark, size_t n)
{
    char line[] = {mark, (char)('0' + n % 10), '\r', '\n'};
    if (n < 10) {
        put(out, line, sizeof line);
        return;
    }
    mk_buf_add_char(out, mark);
    mk_buf_add_num(out, n);
    mk_buf_add(out, MK_STR("\r\n"));
}

void redis_conn_write(struct mk_buf *out, const mk_str *parts, size_t n)
{
    enum { COUNT_MAX = 24 };
    size_t size = COUNT_MAX;
    for (size_t i = 0; i < n; i++)
        size += COUNT_MAX + parts[i].len + 2;
    if (!mk_buf_reserve(out, size))
        return;
    put_count(out, '*', n);
    for (size_t i = 0; i < n; i++) {
        put_count(out, '$', parts[i].len);
        if (parts[i].len)
            put(out, parts[i].p, parts[i].len);
        put(out, "\r\n", 2);
    }
}

/* ---- Its end ---- */

static void explain(struct redis_conn *c, const char *why)
{
    struct mk_buf text = mk_buf_fixed(c->why, sizeof c->why - 1);
    mk_str server = c->address[0] ? mk_str_from_c(c->address) : c->settings->server;
    mk_buf_addf(&text, "[REDIS] %.*s, %.*s: ", MK_STR_ARG(c->settings->name), MK_STR_ARG(server));
    mk_buf_add(&text, mk_str_first(mk_str_from_c(why), sizeof c->why - 1 - text.len));
    c->why[text.len] = 0;
}

void redis_conn_fail(struct redis_conn *c, int error, const char *why)
{
    bool was_up = c->state == REDIS_UP;
    explain(c, why);
    drop(c);
    redis_parser_reset(&c->parser);
    c->backoff_ms = was_up ? 0 : c->backoff_ms ? c->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (c->backoff_ms > BACKOFF_MAX_MS)
        c->backoff_ms = BACKOFF_MAX_MS;
    c->retry_ms = mk_worker_now_ms(c->worker) + c->backoff_ms;
    if (!was_up && !c->is_reported) {
        mk_worker_log(c->worker, MK_LOG_ERROR, "%s", c->why);
        c->is_reported = true;
    }
    c->on_down(c, error);
}

static void fail_errno(struct redis_conn *c, int e)
{
    const char *why = e == -EHOSTUNREACH ? "its name does not resolve, or it is down" : strerror(-e);
    redis_conn_fail(c, pack_link_error(e), why);
}

/* ---- Its way up ---- */

static void become_up(struct redis_conn *c)
{
    c->state = REDIS_UP;
    c->backoff_ms = 0;
    if (c->is_reported)
        mk_worker_log(c->worker, MK_LOG_INFO, "[REDIS] %.*s is back", MK_STR_ARG(c->settings->name));
    c->is_reported = false;
    c->on_up(c);
}

static void log_in(struct redis_conn *c)
{
    const struct redis_settings *s = c->settings;
    const mk_str named[] = {MK_STR("AUTH"), s->user, s->password}, unnamed[] = {MK_STR("AUTH"), s->password};
    if (!s->password.len)
        return;
    redis_conn_write(&c->out, s->user.len ? named : unnamed, s->user.len ? 3 : 2);
    c->greetings++;
}

/* What can be replaced by another server has to give a sign of life, before commands are said to be sent. */
static void greet(struct redis_conn *c)
{
    const struct redis_settings *s = c->settings;
    char room[16];
    struct mk_buf number = mk_buf_fixed(room, sizeof room);
    c->greetings = 0;
    log_in(c);
    if (s->database) {
        mk_buf_add_num(&number, s->database);
        redis_conn_write(&c->out, (const mk_str[]){MK_STR("SELECT"), mk_buf_str(&number)}, 2);
        c->greetings++;
    }
    if (s->sentinel.len || s->cluster) {
        const mk_str role = MK_STR("ROLE"), ping = MK_STR("PING");
        redis_conn_write(&c->out, s->cluster ? &ping : &role, 1);
        c->greetings++;
    }
    c->state = REDIS_GREETING;
    if (!c->greetings)
        become_up(c);
}

static void on_greeting(struct redis_conn *c, const struct duda_redis_reply *reply)
{
    if (reply->type == DUDA_REDIS_ERROR)
        redis_conn_fail(c, redis_reply_error(reply) == -EAGAIN ? -EAGAIN : -ENOKEY, reply->text.p);
    else if (reply->type == DUDA_REDIS_LIST && reply->n && !mk_str_eq(reply->items[0].text, MK_STR("master")))
        redis_conn_fail(c, -EAGAIN, "it is not the master");
    else if (--c->greetings == 0)
        become_up(c);
}

/* ---- Sentinels ---- */

static void dial(struct redis_conn *c);

static void ask_for_master(struct redis_conn *c)
{
    const mk_str parts[] = {MK_STR("SENTINEL"), MK_STR("GET-MASTER-ADDR-BY-NAME"), c->settings->sentinel};
    redis_conn_write(&c->out, parts, 3);
    c->state = REDIS_ASKING;
}

bool redis_conn_address(mk_str host, mk_str port, char out[REDIS_ADDRESS_MAX])
{
    struct mk_buf text = mk_buf_fixed(out, REDIS_ADDRESS_MAX - 1);
    bool is_6 = host.len && memchr(host.p, ':', host.len);
    mk_buf_addf(&text, is_6 ? "[%.*s]:%.*s" : "%.*s:%.*s", MK_STR_ARG(host), MK_STR_ARG(port));
    out[text.len] = 0;
    return host.len && !text.failed;
}

static void on_master(struct redis_conn *c, const struct duda_redis_reply *reply)
{
    if (reply->type != DUDA_REDIS_LIST || reply->n != 2 ||
        !redis_conn_address(reply->items[0].text, reply->items[1].text, c->address)) {
        c->address[0] = 0;
        redis_conn_fail(c, -EHOSTUNREACH,
                        reply->type == DUDA_REDIS_ERROR ? reply->text.p
                                                        : "the Sentinel knows no such master");
        return;
    }
    drop(c);
    redis_parser_reset(&c->parser);
    dial(c);
}

/* ---- Bytes ---- */

void redis_conn_flush(struct redis_conn *c)
{
    if (c->out.failed) {
        redis_conn_fail(c, -ENOMEM, "out of memory for commands");
        return;
    }
    while (c->link && c->state >= REDIS_ASKING && c->out.len) {
        ssize_t n = mk_upstream_conn_write(c->link, mk_buf_str(&c->out), false);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            fail_errno(c, (int)n);
            return;
        }
        mk_buf_drop(&c->out, (size_t)n);
    }
    if (!c->out.len && c->out.cap > OUT_KEPT)
        mk_buf_free(&c->out);
}

/* The next reply, for whoever waits for it. */
static int next_reply(struct redis_conn *c, struct duda_redis_reply **reply)
{
    c->parser.d = NULL;
    if (c->state == REDIS_UP && c->before_reply)
        c->before_reply(c);
    return redis_parser_next(&c->parser, reply);
}

/* It answers no command: taken for a reply, it would shift all that follow. */
static void on_push(struct redis_conn *c, struct duda_redis_reply *push)
{
    if (c->state == REDIS_UP && c->on_push)
        c->on_push(c, push);
}

static void parse(struct redis_conn *c)
{
    struct duda_redis_reply *reply;
    while (c->link) {
        int e = next_reply(c, &reply);
        if (e == -EAGAIN)
            return;
        if (e) {
            redis_conn_fail(c, e, e == -EMSGSIZE ? too_long : c->parser.why);
            return;
        }
        c->unparsed = 0;
        if (c->parser.is_push)
            on_push(c, reply);
        else if (c->state == REDIS_ASKING)
            on_master(c, reply);
        else if (c->state == REDIS_GREETING)
            on_greeting(c, reply);
        else
            c->on_reply(c, reply);
    }
}

/* A piece that does not fill the room was all there is, but for TLS, which hands out its records one by one,
 * and at the end, of which no further event tells. */
static bool may_be_more(const struct redis_conn *c, unsigned which, size_t n)
{
    return n == READ_ROOM || which & (MK_ENDED | MK_HUNG_UP) || mk_upstream_is_tls(c->settings->upstream);
}

static void read_all(struct redis_conn *c, unsigned which)
{
    char room[READ_ROOM];
    for (bool more = true; c->link && more;) {
        ssize_t n = mk_upstream_conn_read(c->link, room, sizeof room);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            redis_conn_fail(c, n < 0 ? (int)n : -ECONNRESET, "the server has closed the connection");
            return;
        }
        more = may_be_more(c, which, (size_t)n);
        c->unparsed += (size_t)n;
        c->heard_ms = mk_worker_now_ms(c->worker);
        if (redis_parser_feed(&c->parser, mk_str_of(room, (size_t)n))) {
            redis_conn_fail(c, -ENOMEM, c->parser.why);
            return;
        }
        parse(c);
        if (c->unparsed > c->settings->reply_max)
            redis_conn_fail(c, -EMSGSIZE, too_long);
    }
}

static void advance(struct redis_conn *c, unsigned which)
{
    if (c->state == REDIS_CONNECTING) {
        int e = mk_upstream_conn_state(c->link);
        if (e == -EAGAIN)
            return;
        if (e) {
            fail_errno(c, e);
            return;
        }
        if (c->settings->sentinel.len && !c->address[0])
            ask_for_master(c);
        else
            greet(c);
    }
    redis_conn_flush(c);
    read_all(c, which);
}

static void on_ready(void *ctx, unsigned which)
{
    advance(ctx, which);
}

static void dial(struct redis_conn *c)
{
    const struct mk_upstream_conn_options options = {
        .server = -1, .fresh = true, .to = c->address[0] ? mk_str_from_c(c->address) : MK_ABSENT};
    c->state = REDIS_CONNECTING;
    c->link = mk_upstream_conn_acquire(c->worker, c->settings->upstream, &options, on_ready, c);
    if (c->link)
        advance(c, MK_ENDED);
    else
        fail_errno(c, -ENOMEM);
}

void redis_conn_open(struct redis_conn *c)
{
    uint64_t now = mk_worker_now_ms(c->worker);
    if (c->state != REDIS_DOWN || now < c->retry_ms)
        return;
    if (c->settings->sentinel.len)
        c->address[0] = 0;
    c->since_ms = now;
    dial(c);
}

void redis_conn_check(struct redis_conn *c)
{
    bool tries = c->state != REDIS_DOWN && c->state != REDIS_UP;
    if (tries && mk_worker_now_ms(c->worker) - c->since_ms >= c->settings->timeout_ms)
        redis_conn_fail(c, -ETIMEDOUT, "it does not answer within Timeout");
}
