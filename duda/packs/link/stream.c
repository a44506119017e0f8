/* SPDX-License-Identifier: Apache-2.0 */
#include "link/stream.h"

#include <errno.h>

enum { READ_ROOM = 16 * 1024, OUT_MAX = 256 << 20, OUT_KEPT = 256 << 10 };

void pack_stream_init(struct pack_stream *s, const struct pack_stream_ops *ops, struct mk_upstream *upstream)
{
    s->ops = ops;
    s->upstream = upstream;
    s->out = mk_buf_growing(OUT_MAX);
}

void pack_stream_close(struct pack_link *l)
{
    struct pack_stream *s = (struct pack_stream *)l;
    mk_upstream_conn_release(s->conn, MK_UPSTREAM_CONN_CLOSE);
    s->conn = NULL;
    mk_buf_free(&s->out);
}

ssize_t pack_stream_write(struct pack_stream *s, mk_str bytes)
{
    ssize_t n = mk_upstream_conn_write(s->conn, bytes, false);
    if (n >= 0 || n == -EAGAIN)
        return n;
    pack_link_fail_errno(&s->link, (int)n);
    return pack_link_error((int)n);
}

ssize_t pack_stream_read(struct pack_stream *s, char *room, size_t cap)
{
    ssize_t n = mk_upstream_conn_read(s->conn, room, cap);
    if (n > 0 || n == -EAGAIN)
        return n;
    if (n == 0) {
        pack_link_fail(&s->link, -ECONNRESET, "the server has closed the connection");
        return -ECONNRESET;
    }
    pack_link_fail_errno(&s->link, (int)n);
    return pack_link_error((int)n);
}

void pack_stream_flush(struct pack_stream *s)
{
    if (s->out.failed) {
        pack_link_fail(&s->link, -ENOMEM, "out of memory for commands");
        return;
    }
    while (s->conn && s->out.len) {
        ssize_t n = pack_stream_write(s, mk_buf_str(&s->out));
        if (n < 0)
            return;
        mk_buf_drop(&s->out, (size_t)n);
    }
    if (s->out.cap > OUT_KEPT)
        mk_buf_free(&s->out);
}

/* A piece that does not fill the room was all there is, but for TLS, which hands out its records one by one,
 * and at the end, of which no further event tells. */
static bool may_be_more(const struct pack_stream *s, unsigned which, size_t n)
{
    return n == READ_ROOM || which & (MK_ENDED | MK_HUNG_UP) || mk_upstream_is_tls(s->upstream);
}

/* What it reads may close the connection, or open another one. */
static void read_all(struct pack_stream *s, unsigned which)
{
    const struct mk_upstream_conn *conn = s->conn;
    char room[READ_ROOM];
    for (bool more = true;
         more && conn && s->conn == conn && !pack_link_is(&s->link, PACK_LINK_CONNECTING);) {
        ssize_t n = pack_stream_read(s, room, sizeof room);
        if (n < 0)
            return;
        more = may_be_more(s, which, (size_t)n);
        s->ops->on_bytes(s, mk_str_of(room, (size_t)n));
    }
}

static void advance(struct pack_stream *s, unsigned which)
{
    if (pack_link_is(&s->link, PACK_LINK_CONNECTING)) {
        int e = mk_upstream_conn_state(s->conn);
        if (e == -EAGAIN)
            return;
        if (e) {
            pack_link_fail_errno(&s->link, e);
            return;
        }
        s->ops->on_connected(s);
    }
    if (!s->ops->on_bytes) {
        s->ops->on_ready(s);
        return;
    }
    pack_stream_flush(s);
    read_all(s, which);
}

static void on_ready(void *ctx, unsigned which)
{
    advance(ctx, which);
}

void pack_stream_connect(struct pack_link *l)
{
    struct pack_stream *s = (struct pack_stream *)l;
    const struct mk_upstream_conn_options options = {.server = -1, .fresh = true, .to = s->to};
    pack_link_move(l, PACK_LINK_CONNECTING);
    s->conn = mk_upstream_conn_acquire(l->worker, s->upstream, &options, on_ready, s);
    if (s->conn)
        advance(s, MK_ENDED);
    else
        pack_link_fail_errno(l, -ENOMEM);
}
