/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_input.h"

#include "proto/h1_trailers.h"

mk_err mk_h1_input_continue(struct mk_h1 *h)
{
    struct mk_conn *c = h->conn;
    h->expects_continue = false;
    if (h->received || mk_conn_input(c).len || h->x->response.sealed)
        return 0; /* the client did not wait for it, or has its answer */
    mk_buf_add(&c->service->out, MK_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    mk_err e = mk_outq_flush(&c->out, &c->stream, &c->service->out, false, &c->service->counters->sent);
    return e == -EAGAIN ? 0 : e;
}

/* More bytes in the window: how many, or what mk_request_read is to answer. */
static ssize_t fill(struct mk_conn *c)
{
    ssize_t n = mk_conn_fill(c);
    return n == 0 ? -ECONNRESET : n;
}

static ssize_t read_directly(struct mk_conn *c, char *room, size_t cap)
{
    ssize_t n = mk_conn_read(c, room, cap);
    return n == 0 ? -ECONNRESET : n;
}

/* All that comes is the tunnel's, and its end is a proper one. */
static ssize_t read_tunnel(struct mk_h1 *h, char *room, size_t cap)
{
    mk_str in = mk_str_take(mk_conn_input(h->conn), cap);
    if (in.len) {
        memcpy(room, in.p, in.len);
        mk_conn_use_input(h->conn, in.len);
        return (ssize_t)in.len;
    }
    ssize_t n = mk_conn_read(h->conn, room, cap);
    if (n == 0)
        h->body = MK_BODY_NONE;
    return n;
}

static ssize_t read_length(struct mk_h1 *h, char *room, size_t cap)
{
    mk_str in = mk_conn_input(h->conn);
    cap = h->left < cap ? (size_t)h->left : cap;
    ssize_t n = (ssize_t)mk_min(in.len, cap);
    if (n > 0) {
        memcpy(room, in.p, (size_t)n);
        mk_conn_use_input(h->conn, (size_t)n);
    } else {
        n = read_directly(h->conn, room, cap);
    }
    if (n > 0 && (h->left -= (uint64_t)n) == 0)
        h->body = MK_BODY_NONE;
    return n;
}

/* One piece of chunked content that is no longer than the room: the decoder is shown just so much of the
 * input. */
static ssize_t decode(struct mk_h1 *h, char *room, size_t cap)
{
    mk_str in = mk_str_take(mk_conn_input(h->conn), cap), rest = in, data;
    int r = mk_chunked_next(h->chunked, &rest, &data);
    mk_conn_use_input(h->conn, in.len - rest.len);
    if (h->chunked->total > h->content_max)
        return -EMSGSIZE; /* known as soon as the size of the chunk is */
    if (r == MK_CHUNKED_DATA) {
        memcpy(room, data.p, data.len);
        return (ssize_t)data.len;
    }
    if (r == MK_CHUNKED_END) {
        mk_err e = mk_h1_trailers_end(h);
        if (!e)
            h->body = MK_BODY_NONE;
        return e;
    }
    if (r == MK_CHUNKED_TRAILERS) {
        mk_err e = mk_h1_trailers_gather(h, data);
        return e ? e : -EAGAIN;
    }
    return r == MK_CHUNKED_MORE ? -EAGAIN : r == -413 ? -EMSGSIZE : -EBADMSG;
}

static ssize_t read_chunked(struct mk_h1 *h, char *room, size_t cap)
{
    for (;;) {
        ssize_t n = mk_conn_input(h->conn).len ? decode(h, room, cap) : -EAGAIN;
        if (n != -EAGAIN)
            return n;
        if (mk_conn_input(h->conn).len)
            continue;
        n = fill(h->conn);
        if (n < 0)
            return n;
    }
}

static ssize_t read_body(struct mk_h1 *h, char *room, size_t cap)
{
    switch (h->body) {
    case MK_BODY_LENGTH:
        return read_length(h, room, cap);
    case MK_BODY_CHUNKED:
        return read_chunked(h, room, cap);
    case MK_BODY_TUNNEL:
        return read_tunnel(h, room, cap);
    case MK_BODY_NONE:
        break;
    }
    return 0;
}

/* Content has ended; a tunnel that was accepted has not begun. */
static ssize_t read_nothing(const struct mk_h1 *h)
{
    const struct mk_response *r = &h->x->response;
    return mk_content_is_tunnel(&r->content) && !r->sealed ? -EAGAIN : 0;
}

ssize_t mk_h1_input_read(struct mk_h1 *h, char *room, size_t cap)
{
    if (h->conn->service->serving != h->conn)
        return -EAGAIN; /* called from outside of a handler or source: resume first */
    if (h->broken)
        return h->broken;
    if (h->body == MK_BODY_NONE)
        return read_nothing(h);
    mk_err e = h->expects_continue ? mk_h1_input_continue(h) : 0;
    ssize_t n = e ? e : read_body(h, room, cap);
    if (n > 0 && (h->received += (uint64_t)n) > h->content_max)
        n = -EMSGSIZE;
    if (n == -EAGAIN)
        h->wants_input = true;
    else if (n < 0)
        h->broken = (mk_err)n;
    return n;
}
