/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1_input.h"

#include "connection/h1_state.h"
#include "connection/h1_trailers.h"

mk_err mk_h1_input_send_100_continue(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    struct mk_conn *c = d->conn;
    mk_http_stream_set_input_state(d, MK_INPUT_WANTED);
    if (d->received || mk_conn_input(c).len || d->x->response.sealed)
        return 0; /* the client no longer waits for it, or the response has begun */
    mk_buf_add(&c->manager->out, MK_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    mk_err e = mk_send_queue_write(&c->out, &c->stream, &c->manager->out, false, &c->manager->counters->sent);
    return e == -EAGAIN ? 0 : e;
}

/* Converts the result of a read to the result of mk_request_read(): EOF within the body means that the client
 * aborted the request. */
static ssize_t check_body_eof(struct mk_h1 *h, ssize_t n)
{
    if (n > 0 || n == -EAGAIN)
        return n;
    mk_http_stream_abort_body(&h->d);
    return -ECONNRESET;
}

/* Reads for a tunnel: all input belongs to it, and EOF is not an error. */
static ssize_t read_tunnel_input(struct mk_h1 *h, char *buf, size_t cap)
{
    struct mk_conn *c = h->d.conn;
    mk_str in = mk_str_first(mk_conn_input(c), cap);
    if (in.len) {
        memcpy(buf, in.p, in.len);
        mk_conn_consume_input(c, in.len);
        return (ssize_t)in.len;
    }
    ssize_t n = mk_conn_read(c, buf, cap);
    if (n == 0)
        mk_http_stream_close_remote(&h->d);
    return n;
}

static ssize_t read_sized_body(struct mk_h1 *h, char *buf, size_t cap)
{
    struct mk_conn *c = h->d.conn;
    mk_str in = mk_conn_input(c);
    cap = h->left < cap ? (size_t)h->left : cap;
    ssize_t n = (ssize_t)mk_min(in.len, cap);
    if (n > 0) {
        memcpy(buf, in.p, (size_t)n);
        mk_conn_consume_input(c, (size_t)n);
    } else {
        n = check_body_eof(h, mk_conn_read(c, buf, cap));
    }
    if (n > 0 && (h->left -= (uint64_t)n) == 0)
        mk_http_stream_close_remote(&h->d);
    return n;
}

/* Reads at most `cap` bytes of a chunked body: the decoder gets no more input than that. */
static ssize_t decode_chunk(struct mk_h1 *h, char *buf, size_t cap)
{
    mk_str in = mk_str_first(mk_conn_input(h->d.conn), cap), rest = in, data;
    int r = mk_chunked_decode(h->chunked, &rest, &data);
    mk_conn_consume_input(h->d.conn, in.len - rest.len);
    if (h->chunked->total > h->d.content_max)
        return -EMSGSIZE; /* the chunk size alone may exceed the limit */
    if (r == MK_CHUNKED_DATA) {
        memcpy(buf, data.p, data.len);
        return (ssize_t)data.len;
    }
    if (r == MK_CHUNKED_END) {
        mk_err e = mk_h1_trailers_parse(h);
        if (!e)
            mk_http_stream_close_remote(&h->d);
        return e;
    }
    if (r == MK_CHUNKED_TRAILERS) {
        mk_err e = mk_h1_trailers_append(h, data);
        return e ? e : -EAGAIN;
    }
    return r == MK_CHUNKED_MORE ? -EAGAIN : r == -413 ? -EMSGSIZE : -EBADMSG;
}

static ssize_t read_chunked_body(struct mk_h1 *h, char *buf, size_t cap)
{
    struct mk_conn *c = h->d.conn;
    for (;;) {
        ssize_t n = mk_conn_input(c).len ? decode_chunk(h, buf, cap) : -EAGAIN;
        if (n != -EAGAIN)
            return n;
        if (mk_conn_input(c).len)
            continue;
        n = check_body_eof(h, mk_conn_fill_input(c));
        if (n < 0)
            return n;
    }
}

static ssize_t read_body(struct mk_h1 *h, char *buf, size_t cap)
{
    switch (h->body) {
    case MK_BODY_LENGTH:
        return read_sized_body(h, buf, cap);
    case MK_BODY_CHUNKED:
        return read_chunked_body(h, buf, cap);
    case MK_BODY_TUNNEL:
        return read_tunnel_input(h, buf, cap);
    case MK_BODY_NONE:
        break;
    }
    return 0;
}

/* Returns the result of a read after the end of the body: 0 (EOF), or -EAGAIN before an accepted tunnel,
 * which begins only after the response head. */
static ssize_t read_after_body_end(const struct mk_h1 *h)
{
    const struct mk_response *r = &h->d.x->response;
    return mk_response_body_is_tunnel(&r->content) && !r->sealed ? -EAGAIN : 0;
}

/* Closes the connection after the response, because the start of the next request is unknown. */
MK_COLD static void fail_body_read(struct mk_h1 *h, mk_err e)
{
    h->d.x->read_error = e;
    mk_h1_state_close_after_response(h);
}

ssize_t mk_h1_input_read_body(struct mk_h1 *h, char *buf, size_t cap)
{
    struct mk_http_stream *d = &h->d;
    if (d->conn->manager->serving != d->conn)
        return -EAGAIN; /* outside of handlers and body sources, the caller must resume the request first */
    if (d->x->read_error)
        return d->x->read_error;
    if (mk_http_stream_request_received(d))
        return read_after_body_end(h);
    mk_err e = d->input.current == MK_INPUT_AWAITS_CONTINUE ? mk_h1_input_send_100_continue(h) : 0;
    ssize_t n = e ? e : read_body(h, buf, cap);
    if (n > 0 && (d->received += (uint64_t)n) > d->content_max)
        n = -EMSGSIZE;
    if (n == -EAGAIN)
        mk_http_stream_await_body(d);
    else if (n < 0)
        fail_body_read(h, (mk_err)n);
    return n;
}
