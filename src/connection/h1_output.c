/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1_output.h"

#include "connection/h1_state.h"
#include "connection/h1_trailers.h"
#include "http/serialize.h"
#include "http/status.h"
#include "web/trailers.h"

enum {
    CHUNK_HEAD = 6,  /* "ffff\r\n", with leading zeros: reserved before the length is known */
    ROOM_MIN = 4096, /* minimum buffer space for reading from a body source */
    BYTES_PER_ITERATION = 8 * 1024 * 1024, /* maximum bytes sent on a connection before others are served */
    COPY_MAX = 16 * 1024, /* up to this many bytes of a file, copying is cheaper than sendfile() */
};

static struct mk_buf *output_buffer(const struct mk_h1 *h)
{
    return &h->d.conn->manager->out;
}

/* ---- The head ---- */

/* Does the response need an Upgrade header? It names the new protocol or, after a rejected handshake, the
 * acceptable protocol. */
static bool needs_upgrade_header(const struct mk_response *r)
{
    return r->status == 101 || (r->status == 426 && mk_response_header(r, MK_STR("Sec-WebSocket-Version")).p);
}

/* Adds the headers Connection and Upgrade. */
MK_COLD static void write_upgrade_headers(struct mk_h1 *h, struct mk_buf *out)
{
    bool closes = h->d.x->response.status != 101 && h->persistence != MK_H1_PERSISTENT;
    mk_buf_add(out, closes ? MK_STR("Connection: upgrade, close\r\n") : MK_STR("Connection: upgrade\r\n"));
    mk_serialize_header(out, MK_STR("Upgrade"), h->d.x->request.tunnel);
}

static void write_body_delimiter(struct mk_h1 *h, struct mk_buf *out)
{
    const struct mk_response *r = &h->d.x->response;
    bool chunked = h->d.x->request.version > 10;
    if (!mk_status_has_content(r->status))
        return;
    if (r->content.length != MK_RESPONSE_BODY_UNKNOWN) {
        mk_serialize_header_num(out, MK_STR("Content-Length"), r->content.length);
        return;
    }
    h->delimiter = chunked ? MK_H1_BY_CHUNKS : MK_H1_BY_CLOSE;
    if (!chunked) {
        mk_h1_state_close_after_response(h);
        return;
    }
    mk_buf_add(out, MK_STR("Transfer-Encoding: chunked\r\n"));
}

static void write_framing_headers(struct mk_h1 *h, struct mk_buf *out)
{
    const struct mk_request *request = &h->d.x->request;
    write_body_delimiter(h, out);
    if (MK_UNLIKELY(request->tunnel.p) && needs_upgrade_header(&h->d.x->response))
        write_upgrade_headers(h, out);
    else if (h->persistence != MK_H1_PERSISTENT)
        mk_buf_add(out, MK_STR("Connection: close\r\n"));
    else if (request->version == 10)
        mk_buf_add(out, MK_STR("Connection: keep-alive\r\n"));
}

/* Can the response begin with the complete head that its header block caches (`ready`), because it needs no
 * other framing headers? */
static bool has_cached_head(const struct mk_h1 *h, const struct mk_response *r)
{
    return r->status == 200 && r->n_blocks == 1 && r->blocks[0]->ready.p &&
           h->persistence == MK_H1_PERSISTENT && h->d.x->request.version == 11 && !r->own;
}

static bool write_response_head(struct mk_h1 *h, struct mk_buf *out)
{
    struct mk_conn_manager *s = h->d.conn->manager;
    const struct mk_response *r = &h->d.x->response;
    mk_str stamp = mk_common_headers_at(&s->stamp, s->loop->now_unix);
    if (MK_LIKELY(has_cached_head(h, r))) {
        mk_buf_put(out, r->blocks[0]->ready);
        for (unsigned i = 0; i < r->n_fields; i++) /* added by plugins */
            mk_serialize_header(out, r->fields[i].name, r->fields[i].value);
        mk_buf_put(out, mk_str_of(stamp.p, stamp.len + 2));
        return !out->failed;
    }
    if (mk_response_body_is_raw(&r->content)) { /* the connection closes, whatever a Connection header in the
                                                 * raw head says */
        mk_h1_state_close_after_response(h);
        h->delimiter = MK_H1_BY_CLOSE;
        return true;
    }
    mk_serialize_status_line(out, r->status);
    mk_buf_put(out, mk_common_headers_without_own(stamp, s->stamp.server_len, r->own));
    for (unsigned i = 0; i < r->n_blocks; i++)
        mk_buf_add(out, r->blocks[i]->text);
    for (unsigned i = 0; i < r->n_fields; i++)
        mk_serialize_header(out, r->fields[i].name, r->fields[i].value);
    write_framing_headers(h, out);
    mk_serialize_head_end(out);
    return !out->failed;
}

/* Does a body follow the head? */
static bool response_has_body(const struct mk_h1 *h)
{
    const struct mk_response_body *content = &h->d.x->response.content;
    return mk_http_stream_response_has_body(&h->d) || mk_response_body_is_raw(content) ||
           mk_response_body_is_tunnel(content);
}

static void remove_head(const struct mk_h1 *h, struct mk_buf *out)
{
    out->len = h->from;
    out->failed = false;
}

static bool try_write_head(struct mk_h1 *h, struct mk_buf *out)
{
    h->from = out->len;
    if (MK_UNLIKELY(!write_response_head(h, out))) {
        remove_head(h, out);
        return false;
    }
    mk_http_stream_set_response_state(&h->d, MK_RESPONSE_BUFFERED);
    return true;
}

mk_err mk_h1_output_1xx(struct mk_h1 *h, unsigned status, const struct mk_header *fields, size_t n)
{
    const struct mk_conn *c = h->d.conn;
    struct mk_buf *out = output_buffer(h);
    size_t from = out->len;
    if (c->manager->serving != c || !mk_send_queue_is_empty(&c->out))
        return -EAGAIN;
    mk_serialize_status_line(out, status);
    for (size_t i = 0; i < n; i++)
        mk_serialize_header(out, fields[i].name, fields[i].value);
    mk_serialize_head_end(out);
    if (!out->failed)
        return 0;
    out->len = from;
    out->failed = false;
    return -EAGAIN;
}

/* Replaces a response whose head does not fit into the output buffer, or whose body failed before anything
 * was sent. */
MK_COLD static bool replace_with_error(struct mk_h1 *h)
{
    if (!h->d.x->response.failure_status || !mk_http_stream_request_received(&h->d))
        mk_h1_state_close_after_response(h);
    h->delimiter = MK_H1_BY_LENGTH;
    mk_http_stream_replace_with_error(&h->d);
    return mk_h1_output_head(h);
}

/* Sends the earlier responses in the buffer: they would be lost if this response failed, and would take up
 * the space that it needs. */
static bool flush_earlier_responses(struct mk_h1 *h)
{
    return mk_h1_output_flush(h) != MK_H1_BROKEN;
}

bool mk_h1_output_head(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    struct mk_buf *out = output_buffer(h);
    if (MK_UNLIKELY(d->x->response.own & MK_RESPONSE_OWN_TRAILER))
        mk_trailers_announce(&d->x->request, &d->x->response);
    d->x->response.sealed = true;
    if (out->len && d->x->response.content.source && !flush_earlier_responses(h))
        return false;
    bool ok = try_write_head(h, out);
    if (!ok && out->len) {
        if (!flush_earlier_responses(h))
            return false;
        ok = try_write_head(h, out);
    }
    if (!ok)
        return replace_with_error(h);
    d->to_send = d->x->response.content.length;
    if (!response_has_body(h) || d->to_send == 0)
        mk_http_stream_close_local(d);
    return true;
}

/* ---- Body ---- */

static enum mk_h1_progress set_broken(struct mk_h1 *h, enum mk_outcome outcome)
{
    h->d.outcome = outcome;
    return MK_H1_BROKEN;
}

static enum mk_h1_progress flush_output(struct mk_h1 *h, bool more)
{
    struct mk_conn *c = h->d.conn;
    uint64_t *sent = &c->manager->counters->sent, before = *sent;
    mk_err e = mk_send_queue_write(&c->out, &c->stream, &c->manager->out, more, sent);
    if (h->d.reply.current == MK_RESPONSE_BUFFERED)
        mk_http_stream_set_response_state(&h->d, MK_RESPONSE_HEAD_SENT);
    c->progress += *sent - before;
    if (!e)
        return MK_H1_COMPLETE;
    if (e == -EAGAIN)
        return MK_H1_SOCKET_FULL;
    return set_broken(h, e == -ENOMEM ? MK_OUTCOME_FAILED : MK_OUTCOME_CLIENT_ABORTED);
}

enum mk_h1_progress mk_h1_output_flush(struct mk_h1 *h)
{
    bool closes_next = h->persistence != MK_H1_PERSISTENT && mk_http_stream_response_written(&h->d);
    return flush_output(h, closes_next); /* holds the last bytes back, so that the FIN is sent with them */
}

static enum mk_h1_progress copy_body_text(struct mk_h1 *h, struct mk_response_body *content,
                                          const struct mk_response_body_part *part)
{
    struct mk_buf *out = output_buffer(h);
    size_t n = mk_min(part->bytes.len, out->cap - out->len);
    if (n == 0)
        return flush_output(h, true);
    mk_buf_put(out, mk_str_first(part->bytes, n));
    mk_response_body_advance(content, n);
    mk_http_stream_count_body_sent(&h->d, n);
    return MK_H1_COMPLETE;
}

static enum mk_h1_progress send_file(struct mk_h1 *h, struct mk_response_body *content,
                                     struct mk_response_body_part *part)
{
    struct mk_conn *c = h->d.conn;
    enum mk_h1_progress p = flush_output(h, true);
    if (p != MK_H1_COMPLETE)
        return p;
    if (!mk_http_stream_is_file_cached(&h->d, part))
        return MK_H1_BODY_NOT_READY;
    ssize_t n = c->stream.ops->send_file(&c->stream, part->file->fd, part->offset,
                                         (size_t)(part->cached_up_to - part->offset));
    if (n == -EINTR)
        return MK_H1_COMPLETE;
    if (n == -EAGAIN)
        return MK_H1_SOCKET_FULL;
    if (n == 0) /* the file is shorter now than Content-Length */
        mk_file_cache_invalidate(part->file);
    if (n <= 0)
        return set_broken(h, n == 0 || n == -EIO ? MK_OUTCOME_FAILED : MK_OUTCOME_CLIENT_ABORTED);
    mk_response_body_advance(content, (uint64_t)n);
    mk_http_stream_count_body_sent(&h->d, (uint64_t)n);
    c->progress += (uint64_t)n;
    mk_counter_add(&c->manager->counters->sent, (uint64_t)n);
    return MK_H1_COMPLETE;
}

/* Ends a response whose body cannot be completed. */
MK_COLD static enum mk_h1_progress fail_response(struct mk_h1 *h)
{
    if (h->d.reply.current != MK_RESPONSE_BUFFERED) {
        mk_http_stream_fail_response(&h->d);
        return MK_H1_BROKEN;
    }
    remove_head(h, output_buffer(h));
    return replace_with_error(h) ? MK_H1_COMPLETE : MK_H1_BROKEN;
}

/* Empties the output buffer first, so that the trailers fit: data that the socket does not accept is
 * queued. */
MK_COLD static enum mk_h1_progress end_body_with_trailers(struct mk_h1 *h)
{
    if (flush_output(h, true) == MK_H1_BROKEN)
        return MK_H1_BROKEN;
    mk_h1_trailers_write(h, output_buffer(h));
    return MK_H1_COMPLETE;
}

static enum mk_h1_progress end_body(struct mk_h1 *h)
{
    mk_http_stream_close_local(&h->d);
    if (h->delimiter != MK_H1_BY_CHUNKS)
        return MK_H1_COMPLETE;
    if (h->d.x->response.trailers)
        return end_body_with_trailers(h);
    mk_serialize_last_chunk(output_buffer(h));
    return MK_H1_COMPLETE;
}

/* Frames the n body bytes after the reserved chunk head as a chunk. */
static void append_chunk(struct mk_buf *out, size_t n)
{
    char head[CHUNK_HEAD];
    for (int i = 0; i < 4; i++)
        head[i] = "0123456789abcdef"[n >> (12 - 4 * i) & 15];
    memcpy(head + 4, "\r\n", 2);
    memcpy(out->p + out->len, head, sizeof head);
    out->len += CHUNK_HEAD + n;
    mk_buf_add(out, MK_STR("\r\n"));
}

static void append_body(struct mk_h1 *h, struct mk_buf *out, size_t n)
{
    if (h->delimiter == MK_H1_BY_CHUNKS)
        append_chunk(out, n);
    else
        out->len += n;
    mk_http_stream_count_body_sent(&h->d, n);
}

/* Sends the output buffer, because the body source has no data now. */
static enum mk_h1_progress flush_and_wait_body(struct mk_h1 *h)
{
    enum mk_h1_progress p = flush_output(h, false);
    return p == MK_H1_COMPLETE ? MK_H1_BODY_NOT_READY : p;
}

/* Uses a larger buffer for a large body if the socket can accept all of it: for a slow client, the rest of
 * the data would have to be buffered. */
static void choose_buffer_size(const struct mk_h1 *h, struct mk_buf *out)
{
    const struct mk_stream *s = &h->d.conn->stream;
    bool is_large = h->d.to_send != MK_RESPONSE_BODY_UNKNOWN && h->d.to_send > MK_SEND_QUEUE_BUFFER;
    if (out->len && out->cap == MK_SEND_QUEUE_WIDE_BUFFER)
        return;
    out->cap = is_large && s->ops->room && s->ops->room(s) >= MK_SEND_QUEUE_WIDE_BUFFER
                   ? MK_SEND_QUEUE_WIDE_BUFFER
                   : MK_SEND_QUEUE_BUFFER;
}

static enum mk_h1_progress pull_body(struct mk_h1 *h, const struct mk_response_body *content)
{
    struct mk_buf *out = output_buffer(h);
    bool chunked = h->delimiter == MK_H1_BY_CHUNKS;
    choose_buffer_size(h, out);
    if (out->cap - out->len < ROOM_MIN) {
        enum mk_h1_progress p =
            flush_output(h, !content->source); /* a source may take arbitrarily long to continue */
        if (p != MK_H1_COMPLETE)
            return p;
    }
    size_t space = out->cap - out->len - CHUNK_HEAD - 2, n = 0;
    char *at = out->p + out->len + (chunked ? CHUNK_HEAD : 0);
    switch (mk_http_stream_pull_body(&h->d, at, chunked ? mk_min(space, 0xffff) : space, &n)) {
    case MK_PULL_DATA:
        append_body(h, out, n);
        break;
    case MK_PULL_END:
        return end_body(h);
    case MK_PULL_WAITS:
        return flush_and_wait_body(h);
    case MK_PULL_FAILED:
        return fail_response(h);
    case MK_PULL_AGAIN:
        break;
    }
    return MK_H1_COMPLETE;
}

/* Is the part a small file that prefetch has not checked yet? Checked files are sent with sendfile(). */
static bool is_copied_to_buffer(const struct mk_response_body_part *part)
{
    return part->len <= COPY_MAX && part->cached_up_to == 0;
}

static enum mk_h1_progress send_body_part(struct mk_h1 *h)
{
    struct mk_response_body *content = &h->d.x->response.content;
    struct mk_response_body_part *part = content->source ? NULL : mk_response_body_current_part(content);
    if (!part && !content->source) {
        mk_http_stream_close_local(&h->d);
        return MK_H1_COMPLETE;
    }
    if (part && !part->file)
        return copy_body_text(h, content, part);
    if (part && h->d.conn->stream.ops->send_file && !is_copied_to_buffer(part))
        return send_file(h, content, part);
    return pull_body(h, content);
}

/* Continues after the worker has served other connections. */
MK_COLD static enum mk_h1_progress yield_to_other_conns(struct mk_h1 *h)
{
    mk_http_stream_allow_call(&h->d);
    mk_conn_resume(h->d.conn);
    return flush_output(h, false) == MK_H1_BROKEN ? MK_H1_BROKEN : MK_H1_SOCKET_FULL;
}

enum mk_h1_progress mk_h1_output_body(struct mk_h1 *h)
{
    uint64_t from = h->d.sent;
    while (!mk_http_stream_response_written(&h->d)) {
        enum mk_h1_progress p = send_body_part(h);
        if (p != MK_H1_COMPLETE)
            return p;
        if (h->d.sent - from >= BYTES_PER_ITERATION && !mk_http_stream_response_written(&h->d))
            return yield_to_other_conns(h);
    }
    return MK_H1_COMPLETE;
}

/* A separate function, so that mk_h1_output_body(), which serves every response, has a single caller and is
 * inlined. */
enum mk_h1_progress mk_h1_output_tunnel(struct mk_h1 *h)
{
    uint64_t from = h->d.sent;
    while (!mk_http_stream_response_written(&h->d) && h->d.sent - from < BYTES_PER_ITERATION) {
        enum mk_h1_progress p = pull_body(h, &h->d.x->response.content);
        if (p != MK_H1_COMPLETE)
            return p;
    }
    return mk_http_stream_response_written(&h->d) ? MK_H1_COMPLETE : yield_to_other_conns(h);
}

/* ---- Without a request ---- */

#define BUSY(status_line)                                                                                    \
    "HTTP/1.1 " status_line "\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

mk_str mk_h1_output_rejection(unsigned status)
{
    return status == 429 ? MK_STR(BUSY("429 Too Many Requests")) : MK_STR(BUSY("503 Service Unavailable"));
}
