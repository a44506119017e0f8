/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/mem.h>

enum { READ_SIZE = 4096, REPLY_MAX = SMTP_LINE_MAX * SMTP_LINES_MAX, TEXT_MAX = 1000, HEAD_MAX = 64 * 1024 };

/* ---- Connection events ---- */

static void on_ready(struct package_stream *stream)
{
    duda_wait_wake(&((struct smtp_session *)stream)->wait);
}

static void record_server_for_errors(struct package_stream *stream)
{
    mk_str name = stream->upstream_conn ? mk_upstream_conn_server_name(stream->upstream_conn) : MK_STR_NULL;
    if (name.p)
        stream->base.server = name;
}

/* An outage affects the server, not only this connection: another connection may have logged it already. */
static void on_connected(struct package_stream *stream)
{
    struct smtp_session *session = (struct smtp_session *)stream;
    record_server_for_errors(stream);
    stream->base.failing_ms = session->smtp->failing_ms;
    session->smtp->failing_ms = 0;
    package_conn_mark_ready(&stream->base);
}

static void close_session(struct package_conn *conn)
{
    struct smtp_session *session = (struct smtp_session *)conn;
    record_server_for_errors(&session->stream);
    conn->failing_ms = session->smtp->failing_ms;
    package_stream_close(conn);
}

static void on_down(struct package_conn *conn, int error)
{
    struct smtp_session *session = (struct smtp_session *)conn;
    session->smtp->failing_ms = conn->failing_ms;
    session->error = error;
    duda_wait_wake(&session->wait);
}

/* Does nothing, because on_down() wakes the handler. */
static void on_step_finished(struct package_conn *conn, struct package_request *r, int error, bool is_sent)
{
    (void)conn, (void)r, (void)error, (void)is_sent;
}

static const struct package_stream_ops stream_ops = {.on_connected = on_connected, .on_ready = on_ready};

static const struct package_conn_ops package_ops = {.section = "SMTP",
                                                    .connect = package_stream_connect,
                                                    .close = close_session,
                                                    .on_down = on_down,
                                                    .finish = on_step_finished};

/* ---- Lifetime ---- */

void smtp_session_close(struct smtp_session *session)
{
    package_conn_fini(&session->stream.base);
    mk_buf_free(&session->in);
    mk_buf_free(&session->out);
    mk_buf_free(&session->message);
}

static void free_session(void *ctx)
{
    smtp_session_close(ctx);
    mk_mem_free(ctx);
}

struct smtp_session *smtp_session_new(struct duda_ctx *d, struct duda_smtp *smtp)
{
    struct smtp_session *session = mk_mem_zalloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->d = d;
    session->smtp = smtp;
    session->message = mk_buf_growing((size_t)smtp->message_max + HEAD_MAX);
    session->in = mk_buf_growing(REPLY_MAX + READ_SIZE);
    session->out =
        mk_buf_growing(2 * ((size_t)smtp->message_max + HEAD_MAX)); /* every line may begin with a dot */
    package_stream_init(&session->stream, &stream_ops, smtp->upstream);
    session->stream.base.server = smtp->server;
    int e =
        package_conn_init(&session->stream.base, duda_worker(d), &package_ops, smtp->name, smtp->timeout_ms);
    return duda_defer(d, free_session, session) || e ? NULL : session;
}

/* ---- Steps ---- */

/* Waits for an event of the connection, or for the timeout of the step. */
static int wait_for_event(struct smtp_session *session)
{
    int e = duda_wait_suspend(&session->wait);
    return e ? e : session->error;
}

static void start_step_timeout(struct smtp_session *session)
{
    struct package_conn *conn = &session->stream.base;
    session->step.due_ms = mk_worker_now_ms(conn->worker) + conn->timeout_ms;
    if (!conn->sent.first)
        package_conn_add_sent(conn, &session->step);
}

static int stop_step_timeout(struct smtp_session *session, int e)
{
    (void)package_request_queue_pop(&session->stream.base.sent);
    return e;
}

int smtp_session_connect(struct smtp_session *session)
{
    int e = 0;
    package_conn_open(&session->stream.base);
    while (package_conn_is_opening(&session->stream.base) && !e)
        e = duda_wait_suspend(&session->wait);
    return e ? e : session->error;
}

int smtp_session_write(struct smtp_session *session, mk_str bytes)
{
    int e = 0;
    start_step_timeout(session);
    while (bytes.len && !e) {
        ssize_t n = package_stream_write(&session->stream, bytes);
        if (n == -EAGAIN)
            e = wait_for_event(session);
        else if (n < 0)
            e = (int)n;
        else {
            bytes = mk_str_skip(bytes, (size_t)n);
            start_step_timeout(session);
        }
    }
    return stop_step_timeout(session, e);
}

static int keep_reply_text(struct smtp_session *session, const struct smtp_reply *reply)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX * 4 + 8);
    struct smtp_reply shown = *reply;
    shown.lines = mk_str_first(reply->lines, reply->lines.len < TEXT_MAX ? reply->lines.len : TEXT_MAX);
    smtp_reply_format_printable(&text, &shown);
    session->code = reply->code;
    session->text = text.failed ? MK_STR_NULL : duda_strdup(session->d, mk_buf_str(&text));
    mk_buf_free(&text);
    return session->text.p ? 0 : -ENOMEM;
}

/* Returns 0 when it has received more data. */
static int read_reply_bytes(struct smtp_session *session)
{
    if (!mk_buf_reserve(&session->in, READ_SIZE))
        return -ENOMEM;
    ssize_t n = package_stream_read(&session->stream, session->in.p + session->in.len, READ_SIZE);
    session->in.len += n > 0 ? (size_t)n : 0;
    return n == -EAGAIN ? wait_for_event(session) : n < 0 ? (int)n : 0;
}

int smtp_session_read(struct smtp_session *session)
{
    struct smtp_reply reply;
    ssize_t n;
    int e = 0;
    start_step_timeout(session);
    while (!e && (n = smtp_reply_parse(mk_buf_str(&session->in), &reply)) == 0)
        e = read_reply_bytes(session);
    stop_step_timeout(session, 0);
    if (e || n < 0)
        return e ? e : (int)n;
    session->extensions_in_reply = smtp_extensions_parse(&reply);
    e = keep_reply_text(session, &reply);
    mk_buf_consume(&session->in, (size_t)n);
    return e;
}
