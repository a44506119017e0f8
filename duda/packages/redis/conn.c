/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <errno.h>

static const char too_long[] = "the reply is longer than MaxReplySize";

enum { MEMBER_MIN = 3 }; /* minimum size of a list member, such as "+", CR, LF */

/* ---- Commands ---- */

/* The buffer must have enough space. */
static void append_bytes(struct mk_buf *out, const char *p, size_t len)
{
    memcpy(out->p + out->len, p, len);
    out->len += len;
}

/* Appends a length, such as "$12" or "*3", and a line ending. */
static void append_length(struct mk_buf *out, char mark, size_t n)
{
    char line[] = {mark, (char)('0' + n % 10), '\r', '\n'};
    if (n < 10) {
        append_bytes(out, line, sizeof line);
        return;
    }
    mk_buf_add_char(out, mark);
    mk_buf_add_num(out, n);
    mk_buf_add(out, MK_STR("\r\n"));
}

void redis_command_format(struct mk_buf *out, const mk_str *parts, size_t n)
{
    enum { COUNT_MAX = 24 };
    size_t size = COUNT_MAX;
    for (size_t i = 0; i < n; i++)
        size += COUNT_MAX + parts[i].len + 2;
    if (!mk_buf_reserve(out, size))
        return;
    append_length(out, '*', n);
    for (size_t i = 0; i < n; i++) {
        append_length(out, '$', parts[i].len);
        if (parts[i].len)
            append_bytes(out, parts[i].p, parts[i].len);
        append_bytes(out, "\r\n", 2);
    }
}

/* ---- Handshake ---- */

static void send_auth(struct redis_conn *c)
{
    const struct redis_settings *s = c->settings;
    const mk_str named[] = {MK_STR("AUTH"), s->user, s->password}, unnamed[] = {MK_STR("AUTH"), s->password};
    if (!s->password.len)
        return;
    redis_command_format(&c->stream.out, s->user.len ? named : unnamed, s->user.len ? 3 : 2);
    c->n_handshake_replies++;
}

/* If another server can replace this one, also sends PING or ROLE: commands are only sent when the server has
 * replied. */
static void send_handshake(struct redis_conn *c)
{
    const struct redis_settings *s = c->settings;
    struct mk_buf *out = &c->stream.out;
    char buf[16];
    struct mk_buf number = mk_buf_fixed(buf, sizeof buf);
    c->n_handshake_replies = 0;
    send_auth(c);
    if (s->database) {
        mk_buf_add_num(&number, s->database);
        redis_command_format(out, (const mk_str[]){MK_STR("SELECT"), mk_buf_str(&number)}, 2);
        c->n_handshake_replies++;
    }
    if (s->sentinel.len || s->cluster) {
        const mk_str role = MK_STR("ROLE"), ping = MK_STR("PING");
        redis_command_format(out, s->cluster ? &ping : &role, 1);
        c->n_handshake_replies++;
    }
    if (c->n_handshake_replies)
        package_conn_set_state(&c->stream.base, PACKAGE_CONN_HANDSHAKE);
    else
        package_conn_mark_ready(&c->stream.base);
}

static void on_handshake_reply(struct redis_conn *c, const struct duda_redis_reply *reply)
{
    struct package_conn *conn = &c->stream.base;
    if (reply->type == DUDA_REDIS_ERROR)
        package_conn_fail(conn, redis_reply_errno(reply) == -EAGAIN ? -EAGAIN : -ENOKEY, reply->text.p);
    else if (reply->type == DUDA_REDIS_LIST && reply->n && !mk_str_eq(reply->items[0].text, MK_STR("master")))
        package_conn_fail(conn, -EAGAIN, "the server is not the master");
    else if (--c->n_handshake_replies == 0)
        package_conn_mark_ready(conn);
}

/* ---- Sentinels ---- */

static void query_sentinel(struct redis_conn *c)
{
    const mk_str parts[] = {MK_STR("SENTINEL"), MK_STR("GET-MASTER-ADDR-BY-NAME"), c->settings->sentinel};
    redis_command_format(&c->stream.out, parts, 3);
    package_conn_set_state(&c->stream.base, PACKAGE_CONN_RESOLVING);
}

static void on_connected(struct package_stream *s)
{
    struct redis_conn *c = (struct redis_conn *)s;
    if (c->settings->sentinel.len && !c->address[0])
        query_sentinel(c);
    else
        send_handshake(c);
}

bool redis_address_format(mk_str host, mk_str port, char out[REDIS_ADDRESS_MAX])
{
    struct mk_buf text = mk_buf_fixed(out, REDIS_ADDRESS_MAX - 1);
    bool is_6 = host.len && memchr(host.p, ':', host.len);
    mk_buf_addf(&text, is_6 ? "[%.*s]:%.*s" : "%.*s:%.*s", MK_STR_ARG(host), MK_STR_ARG(port));
    out[text.len] = 0;
    return host.len && !text.failed;
}

/* Connects to the address, or to a server of the configuration. */
static void start_connect(struct redis_conn *c)
{
    mk_str address = mk_str_from_c(c->address);
    c->stream.to = address.len ? address : MK_STR_NULL;
    c->stream.base.server = address.len ? address : c->settings->server;
    package_stream_connect(&c->stream.base);
}

static void on_sentinel_reply(struct redis_conn *c, const struct duda_redis_reply *reply)
{
    struct package_conn *conn = &c->stream.base;
    if (reply->type == DUDA_REDIS_LIST && reply->n == 2 &&
        redis_address_format(reply->items[0].text, reply->items[1].text, c->address)) {
        redis_conn_close(conn);
        start_connect(c);
        return;
    }
    c->address[0] = 0;
    package_conn_fail(conn, -EHOSTUNREACH,
                      reply->type == DUDA_REDIS_ERROR ? reply->text.p : "the Sentinel knows no such master");
}

/* ---- Replies ---- */

/* Reads the next reply; the owner says where it is stored. */
static int next_reply(struct redis_conn *c, struct duda_redis_reply **reply)
{
    c->parser.d = NULL;
    if (redis_conn_is_up(c) && c->ops->before_reply)
        c->ops->before_reply(c);
    return redis_reply_parser_next(&c->parser, reply);
}

/* Handles a push message. It belongs to no command: if we treated it as a reply, all later replies would be
 * assigned to the wrong commands. */
static void on_push(struct redis_conn *c, struct duda_redis_reply *push)
{
    if (redis_conn_is_up(c) && c->ops->on_push)
        c->ops->on_push(c, push);
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    if (package_conn_is_in_state(&c->stream.base, PACKAGE_CONN_RESOLVING))
        on_sentinel_reply(c, reply);
    else if (package_conn_is_in_state(&c->stream.base, PACKAGE_CONN_HANDSHAKE))
        on_handshake_reply(c, reply);
    else
        c->ops->on_reply(c, reply);
}

static void parse_replies(struct redis_conn *c)
{
    struct duda_redis_reply *reply;
    while (c->stream.upstream_conn) {
        int e = next_reply(c, &reply);
        if (e == -EAGAIN)
            return;
        if (e) {
            package_conn_fail(&c->stream.base, e, e == -EMSGSIZE ? too_long : c->parser.error_text);
            return;
        }
        c->unparsed = 0;
        if (c->parser.is_push)
            on_push(c, reply);
        else
            on_reply(c, reply);
    }
}

static void on_bytes(struct package_stream *s, mk_str bytes)
{
    struct redis_conn *c = (struct redis_conn *)s;
    c->unparsed += bytes.len;
    c->last_received_ms = mk_worker_now_ms(s->base.worker);
    if (redis_reply_parser_feed(&c->parser, bytes)) {
        package_conn_fail(&s->base, -ENOMEM, c->parser.error_text);
        return;
    }
    parse_replies(c);
    if (c->unparsed > c->settings->reply_max)
        package_conn_fail(&s->base, -EMSGSIZE, too_long);
}

/* ---- Lifetime ---- */

void redis_conn_connect(struct package_conn *conn)
{
    struct redis_conn *c = (struct redis_conn *)conn;
    if (c->settings->sentinel.len)
        c->address[0] = 0;
    start_connect(c);
}

void redis_conn_close(struct package_conn *conn)
{
    struct redis_conn *c = (struct redis_conn *)conn;
    package_stream_close(conn);
    c->unparsed = 0;
    redis_reply_parser_reset(&c->parser);
}

static const struct package_stream_ops stream_ops = {.on_connected = on_connected, .on_bytes = on_bytes};

int redis_conn_init(struct redis_conn *c, struct mk_worker *w, const struct redis_settings *settings,
                    const struct package_conn_ops *package_ops, const struct redis_conn_ops *ops,
                    const char *address)
{
    c->settings = settings;
    c->ops = ops;
    c->parser.list_max = (size_t)settings->reply_max / MEMBER_MIN;
    redis_reply_parser_init(&c->parser);
    if (address)
        memcpy(c->address, address, strnlen(address, REDIS_ADDRESS_MAX - 1));
    package_stream_init(&c->stream, &stream_ops, settings->upstream);
    return package_conn_init(&c->stream.base, w, package_ops, settings->name, settings->timeout_ms);
}

void redis_conn_fini(struct redis_conn *c)
{
    package_conn_fini(&c->stream.base);
    redis_reply_parser_fini(&c->parser);
}
