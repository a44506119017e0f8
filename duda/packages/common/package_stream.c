/* SPDX-License-Identifier: Apache-2.0 */
#include "common/package_stream.h"

#include <errno.h>

enum { READ_SIZE = 16 * 1024, OUT_MAX = 256 << 20, OUT_KEPT = 256 << 10 };

void package_stream_init(struct package_stream *s, const struct package_stream_ops *ops,
                         struct mk_upstream *upstream)
{
    s->ops = ops;
    s->upstream = upstream;
    s->out = mk_buf_growing(OUT_MAX);
}

void package_stream_close(struct package_conn *conn)
{
    struct package_stream *s = (struct package_stream *)conn;
    mk_upstream_conn_release(s->upstream_conn, MK_UPSTREAM_CONN_CLOSE);
    s->upstream_conn = NULL;
    mk_buf_free(&s->out);
}

ssize_t package_stream_write(struct package_stream *s, mk_str bytes)
{
    ssize_t n = mk_upstream_conn_write(s->upstream_conn, bytes, false);
    if (n >= 0 || n == -EAGAIN)
        return n;
    package_conn_fail_errno(&s->base, (int)n);
    return package_conn_map_errno((int)n);
}

ssize_t package_stream_read(struct package_stream *s, char *buf, size_t cap)
{
    ssize_t n = mk_upstream_conn_read(s->upstream_conn, buf, cap);
    if (n > 0 || n == -EAGAIN)
        return n;
    if (n == 0) {
        package_conn_fail(&s->base, -ECONNRESET, "the server has closed the connection");
        return -ECONNRESET;
    }
    package_conn_fail_errno(&s->base, (int)n);
    return package_conn_map_errno((int)n);
}

void package_stream_flush(struct package_stream *s)
{
    if (s->out.failed) {
        package_conn_fail(&s->base, -ENOMEM, "out of memory for commands");
        return;
    }
    while (s->upstream_conn && s->out.len) {
        ssize_t n = package_stream_write(s, mk_buf_str(&s->out));
        if (n < 0)
            return;
        mk_buf_consume(&s->out, (size_t)n);
    }
    if (s->out.cap > OUT_KEPT)
        mk_buf_free(&s->out);
}

/* A read that did not fill the buffer has drained the socket. There are two exceptions: TLS returns one
 * record at a time, and the end of the stream triggers no further event. */
static bool may_be_more(const struct package_stream *s, unsigned events, size_t n)
{
    return n == READ_SIZE || events & (MK_ENDED | MK_HUNG_UP) || mk_upstream_is_tls(s->upstream);
}

/* Stops when on_bytes() has closed the connection or opened another one. */
static void read_available(struct package_stream *s, unsigned events)
{
    const struct mk_upstream_conn *conn = s->upstream_conn;
    char buf[READ_SIZE];
    for (bool more = true; more && conn && s->upstream_conn == conn &&
                           !package_conn_is_in_state(&s->base, PACKAGE_CONN_CONNECTING);) {
        ssize_t n = package_stream_read(s, buf, sizeof buf);
        if (n < 0)
            return;
        more = may_be_more(s, events, (size_t)n);
        s->ops->on_bytes(s, mk_str_of(buf, (size_t)n));
    }
}

static void handle_events(struct package_stream *s, unsigned events)
{
    if (package_conn_is_in_state(&s->base, PACKAGE_CONN_CONNECTING)) {
        int e = mk_upstream_conn_state(s->upstream_conn);
        if (e == -EAGAIN)
            return;
        if (e) {
            package_conn_fail_errno(&s->base, e);
            return;
        }
        s->ops->on_connected(s);
    }
    if (!s->ops->on_bytes) {
        s->ops->on_ready(s);
        return;
    }
    package_stream_flush(s);
    read_available(s, events);
}

static void on_ready(void *ctx, unsigned events)
{
    handle_events(ctx, events);
}

void package_stream_connect(struct package_conn *conn)
{
    struct package_stream *s = (struct package_stream *)conn;
    const struct mk_upstream_conn_options options = {.server = -1, .fresh = true, .address = s->to};
    package_conn_set_state(conn, PACKAGE_CONN_CONNECTING);
    s->upstream_conn = mk_upstream_conn_acquire(conn->worker, s->upstream, &options, on_ready, s);
    if (s->upstream_conn)
        handle_events(s, MK_ENDED);
    else
        package_conn_fail_errno(conn, -ENOMEM);
}
