/* SPDX-License-Identifier: Apache-2.0 */
/* The connection is one of the plugin `upstream`: names, TLS and unix sockets are its business. Replies are
 * parsed by hiredis. */
#include "conn.h"

#include <errno.h>

enum { READ_ROOM = 16 * 1024, OUT_MAX = 256 << 20, BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 1000 };

int redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings)
{
    c->settings = settings;
    c->worker = w;
    c->out = mk_buf_growing(OUT_MAX);
    c->reader = redisReaderCreate();
    return c->reader ? 0 : -ENOMEM;
}

static void drop(struct redis_conn *c)
{
    mk_link_give(c->link, MK_LINK_CLOSE);
    c->link = NULL;
    c->state = REDIS_DOWN;
    c->unparsed = 0;
    mk_buf_free(&c->out);
}

void redis_conn_fini(struct redis_conn *c)
{
    drop(c);
    if (c->reader)
        redisReaderFree(c->reader);
    c->reader = NULL;
}

void redis_conn_write(struct mk_buf *out, const mk_str *parts, size_t n)
{
    mk_buf_addf(out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        mk_buf_add_char(out, '$');
        mk_buf_add_num(out, parts[i].len);
        mk_buf_add(out, MK_STR("\r\n"));
        mk_buf_add(out, parts[i]);
        mk_buf_add(out, MK_STR("\r\n"));
    }
}

/* ---- Its end ---- */

static void explain(struct redis_conn *c, const char *why)
{
    struct mk_buf text = mk_buf_fixed(c->why, sizeof c->why - 1);
    mk_buf_addf(&text, "[REDIS] %.*s, %.*s: ", MK_STR_ARG(c->settings->name),
                MK_STR_ARG(c->settings->server));
    mk_buf_add(&text, mk_str_first(mk_str_from_c(why), sizeof c->why - 1 - text.len));
    c->why[text.len] = 0;
}

void redis_conn_fail(struct redis_conn *c, int error, const char *why)
{
    bool was_up = c->state == REDIS_UP;
    explain(c, why);
    drop(c);
    /* A new reader: the old one may be in the middle of a reply. */
    redisReader *fresh = redisReaderCreate();
    if (fresh) {
        redisReaderFree(c->reader);
        c->reader = fresh;
    }
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
    redis_conn_fail(c, e, e == -EHOSTUNREACH ? "its name does not resolve, or it is down" : strerror(-e));
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

static void greet(struct redis_conn *c)
{
    const struct redis_settings *s = c->settings;
    char room[16];
    struct mk_buf number = mk_buf_fixed(room, sizeof room);
    const mk_str named[] = {MK_STR("AUTH"), s->user, s->password}, unnamed[] = {MK_STR("AUTH"), s->password};
    c->greetings = 0;
    if (s->password.len && s->user.len)
        redis_conn_write(&c->out, named, 3);
    else if (s->password.len)
        redis_conn_write(&c->out, unnamed, 2);
    c->greetings += s->password.len > 0;
    if (s->database) {
        mk_buf_add_num(&number, s->database);
        redis_conn_write(&c->out, (const mk_str[]){MK_STR("SELECT"), mk_buf_str(&number)}, 2);
        c->greetings++;
    }
    c->state = REDIS_GREETING;
    if (!c->greetings)
        become_up(c);
}

static void on_greeting(struct redis_conn *c, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        redis_conn_fail(c, -EACCES, reply->str);
    else if (--c->greetings == 0)
        become_up(c);
}

/* ---- Bytes ---- */

void redis_conn_flush(struct redis_conn *c)
{
    if (c->out.failed) {
        redis_conn_fail(c, -ENOMEM, "out of memory for commands");
        return;
    }
    while (c->link && c->state >= REDIS_GREETING && c->out.len) {
        ssize_t n = mk_link_write(c->link, mk_buf_str(&c->out), false);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            fail_errno(c, (int)n);
            return;
        }
        mk_buf_drop(&c->out, (size_t)n);
    }
}

static void parse(struct redis_conn *c)
{
    void *reply;
    while (c->link) {
        reply = NULL;
        if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
            redis_conn_fail(c, -EPROTO, c->reader->errstr);
            return;
        }
        if (!reply)
            return;
        c->unparsed = 0;
        if (c->state == REDIS_GREETING)
            on_greeting(c, reply);
        else
            c->on_reply(c, reply);
        freeReplyObject(reply);
    }
}

static void read_all(struct redis_conn *c)
{
    char room[READ_ROOM];
    while (c->link) {
        ssize_t n = mk_link_read(c->link, room, sizeof room);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            redis_conn_fail(c, n < 0 ? (int)n : -ECONNRESET, "the server has closed the connection");
            return;
        }
        c->unparsed += (size_t)n;
        if (redisReaderFeed(c->reader, room, (size_t)n) != REDIS_OK) {
            redis_conn_fail(c, -ENOMEM, "out of memory for a reply");
            return;
        }
        parse(c);
        if (c->unparsed > c->settings->reply_max)
            redis_conn_fail(c, -EMSGSIZE, "a reply is longer than MaxReply");
    }
}

static void advance(struct redis_conn *c)
{
    if (c->state == REDIS_CONNECTING) {
        int e = mk_link_state(c->link);
        if (e == -EAGAIN)
            return;
        if (e) {
            fail_errno(c, e);
            return;
        }
        greet(c);
    }
    redis_conn_flush(c);
    read_all(c);
}

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    advance(ctx);
}

void redis_conn_open(struct redis_conn *c)
{
    const struct mk_link_wish wish = {.server = -1, .fresh = true};
    uint64_t now = mk_worker_now_ms(c->worker);
    if (c->state != REDIS_DOWN || now < c->retry_ms)
        return;
    c->since_ms = now;
    c->state = REDIS_CONNECTING;
    c->link = mk_link_take(c->worker, c->settings->upstream, &wish, on_ready, c);
    if (c->link)
        advance(c);
    else
        fail_errno(c, -ENOMEM);
}

void redis_conn_check(struct redis_conn *c)
{
    bool tries = c->state == REDIS_CONNECTING || c->state == REDIS_GREETING;
    if (tries && mk_worker_now_ms(c->worker) - c->since_ms >= c->settings->timeout_ms)
        redis_conn_fail(c, -ETIMEDOUT, "it does not answer within Timeout");
}
