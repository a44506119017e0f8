/* SPDX-License-Identifier: Apache-2.0 */
/* Commands wait for the end of the loop iteration, and then for their replies. The server counts as up once
 * it has answered a probe, because a hung server still accepts connections. */
#include "conn.h"

#include <errno.h>
#include <monkey/mem.h>

enum { PIECE_MAX = 16 * 1024, LINES_MAX = 4096 };

void memcached_call_free(struct memcached_call *call)
{
    if (call)
        mk_buf_free(&call->bytes);
    mk_mem_free(call);
}

static void complete_call(struct memcached_call *call, const struct memcached_reply *reply, int error)
{
    if (call->on_reply)
        call->on_reply(call->ctx, reply, error);
    memcached_call_free(call);
}

static void finish_call(struct package_conn *conn, struct package_request *r, int error, bool is_sent)
{
    (void)conn, (void)is_sent;
    complete_call((struct memcached_call *)r, NULL, error);
}

static void close_stream(struct package_conn *conn)
{
    struct memcached_conn *s = (struct memcached_conn *)conn;
    package_stream_close(conn);
    mk_buf_free(&s->in);
}

/* ---- Output ---- */

static void on_connected(struct package_stream *stream)
{
    package_conn_set_state(&stream->base, PACKAGE_CONN_HANDSHAKE);
    mk_buf_add(&stream->out, MK_STR("mn\r\n"));
}

static void send_waiting_commands(struct package_conn *conn)
{
    struct package_stream *stream = (struct package_stream *)conn;
    for (struct package_request *r = conn->waiting.first; r; r = r->next) {
        struct memcached_call *call = (struct memcached_call *)r;
        mk_buf_add(&stream->out, mk_buf_str(&call->bytes));
        mk_buf_free(&call->bytes);
    }
    package_request_queue_append(&conn->sent, &conn->waiting);
    package_stream_flush(stream);
}

/* ---- Input ---- */

static void on_probe_reply(struct package_conn *conn, const struct memcached_reply *reply)
{
    if (reply->word == MEMCACHED_NOOP)
        package_conn_mark_ready(conn);
    else
        package_conn_fail(conn, -EPROTO, "the server does not support the meta protocol (Memcached 1.6)");
}

static void on_command_reply(struct package_conn *conn, const struct memcached_reply *reply)
{
    if (reply->word >= MEMCACHED_CLIENT_ERROR)
        package_conn_set_error(conn, reply->value);
    if (package_conn_is_in_state(conn, PACKAGE_CONN_HANDSHAKE))
        on_probe_reply(conn, reply);
    else if (conn->sent.first)
        complete_call((struct memcached_call *)package_request_queue_pop(&conn->sent), reply, 0);
    else
        package_conn_fail(conn, -EPROTO, "the server sent a reply to no command");
}

/* Processes the complete replies in these bytes, and returns their length. */
static size_t parse_replies(struct memcached_conn *s, mk_str bytes)
{
    struct memcached_reply reply;
    size_t done = 0;
    while (s->stream.upstream_conn) {
        ssize_t n = memcached_reply_parse(mk_str_skip(bytes, done), (size_t)s->settings->value_max, &reply);
        if (n == 0)
            break;
        if (n < 0) {
            package_conn_fail(&s->stream.base, (int)n,
                              n == -EMSGSIZE ? "the value exceeds MaxValueSize"
                                             : "the server sent an unexpected reply");
            break;
        }
        on_command_reply(&s->stream.base, &reply);
        done += (size_t)n;
    }
    return done;
}

/* Buffers only an incomplete reply, so an idle connection has no buffer. */
static void on_bytes(struct package_stream *stream, mk_str bytes)
{
    struct memcached_conn *s = (struct memcached_conn *)stream;
    bool is_rest = s->in.len;
    if (is_rest)
        mk_buf_add(&s->in, bytes);
    size_t done = s->in.failed ? 0 : parse_replies(s, is_rest ? mk_buf_str(&s->in) : bytes);
    if (!stream->upstream_conn)
        return;
    if (is_rest)
        mk_buf_consume(&s->in, done);
    else
        mk_buf_add(&s->in, mk_str_skip(bytes, done));
    if (s->in.failed)
        package_conn_fail(&stream->base, -ENOMEM, "out of memory for a reply");
    else if (!s->in.len)
        mk_buf_free(&s->in);
}

/* ---- Lifetime ---- */

int memcached_conn_send(struct memcached_conn *s, struct memcached_call *call)
{
    struct package_conn *conn = &s->stream.base;
    int e = package_conn_check_capacity(conn, s->settings->waiting_max);
    if (e)
        return e;
    call->request.due_ms = mk_worker_now_ms(conn->worker) + conn->timeout_ms;
    package_conn_enqueue(conn, &call->request);
    return 0;
}

static const struct package_stream_ops stream_ops = {.on_connected = on_connected, .on_bytes = on_bytes};

static const struct package_conn_ops package_ops = {.section = "MEMCACHED",
                                                    .connect = package_stream_connect,
                                                    .close = close_stream,
                                                    .send = send_waiting_commands,
                                                    .finish = finish_call};

int memcached_conn_open(struct memcached_conn *s, struct mk_worker *w,
                        const struct memcached_settings *settings, struct mk_upstream *upstream)
{
    struct package_conn *conn = &s->stream.base;
    s->settings = settings;
    s->in = mk_buf_growing((size_t)settings->value_max + 2 * PIECE_MAX + LINES_MAX);
    package_stream_init(&s->stream, &stream_ops, upstream);
    conn->server = mk_upstream_name(upstream);
    return package_conn_init(conn, w, &package_ops, settings->name, settings->timeout_ms);
}

void memcached_conn_close(struct memcached_conn *s)
{
    package_conn_fini(&s->stream.base);
}
