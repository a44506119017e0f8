/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_output.h"

#include "http/emit.h"
#include "http/status.h"
#include "proto/h1_trailers.h"

enum {
    CHUNK_HEAD = 6,  /* "ffff\r\n", with leading zeros: its room is kept before the data is known */
    ROOM_MIN = 4096, /* a source is not asked for less */
    TURN_MAX = 8 * 1024 * 1024, /* bytes for one connection before the others have their turn */
    COPY_MAX = 16 * 1024, /* of a file: up to here reading it behind the head costs less than sendfile does */
};

/* An empty tail of the scratch that a chunk with its framing fits into. */
static size_t chunk_room(const struct mk_buf *out)
{
    return out->cap - out->len - CHUNK_HEAD - 2;
}

/* What is spoken from here on, or, of a handshake for another version, what could have been. */
static bool names_upgrade(const struct mk_response *r)
{
    return r->status == 101 || (r->status == 426 && mk_response_field(r, MK_STR("Sec-WebSocket-Version")).p);
}

/* Connection, and what it names. */
MK_COLD static void write_upgrade(struct mk_h1 *h, struct mk_buf *out)
{
    bool closes = h->x->response.status != 101 && !h->keep;
    mk_buf_add(out, closes ? MK_STR("Connection: upgrade, close\r\n") : MK_STR("Connection: upgrade\r\n"));
    mk_emit_field(out, MK_STR("Upgrade"), h->x->request.tunnel);
}

static void write_framing(struct mk_h1 *h, struct mk_buf *out)
{
    const struct mk_response *r = &h->x->response;
    bool has_content = mk_status_has_content(r->status);
    if (has_content && r->content.length != MK_CONTENT_UNKNOWN)
        mk_emit_field_num(out, MK_STR("Content-Length"), r->content.length);
    else if (has_content && h->x->request.version > 10)
        h->in_chunks = true;
    else if (has_content)
        h->keep = false; /* the end of the connection is the end of the content */
    if (h->in_chunks)
        mk_buf_add(out, MK_STR("Transfer-Encoding: chunked\r\n"));
    if (h->in_chunks && r->trailers)
        mk_h1_trailers_announce(h, out);
    if (MK_UNLIKELY(h->x->request.tunnel.p) && names_upgrade(r))
        write_upgrade(h, out);
    else if (!h->keep)
        mk_buf_add(out, MK_STR("Connection: close\r\n"));
    else if (h->x->request.version == 10)
        mk_buf_add(out, MK_STR("Connection: keep-alive\r\n"));
}

/* A plain answer out of the file cache, to a client that has nothing special about it. */
static bool is_ready(const struct mk_h1 *h, const struct mk_response *r)
{
    return r->status == 200 && r->n_blocks == 1 && r->blocks[0]->ready.p && h->keep &&
           h->x->request.version == 11;
}

static bool write_head(struct mk_h1 *h, struct mk_buf *out)
{
    struct mk_service *s = h->conn->service;
    const struct mk_response *r = &h->x->response;
    mk_str stamp = mk_stamp_at(&s->stamp, s->loop->now_unix);
    if (MK_LIKELY(is_ready(h, r))) {
        mk_buf_add(out, r->blocks[0]->ready);
        for (unsigned i = 0; i < r->n_fields; i++) /* what plugins added */
            mk_emit_field(out, r->fields[i].name, r->fields[i].value);
        mk_buf_add(out, mk_str_of(stamp.p, stamp.len + 2));
        return !out->failed;
    }
    if (mk_content_is_raw(&r->content)) {
        h->keep = false; /* what it says of the connection is its own business: we do as we must */
        return true;
    }
    mk_emit_status(out, r->status);
    mk_buf_add(out, stamp);
    for (unsigned i = 0; i < r->n_blocks; i++)
        mk_buf_add(out, r->blocks[i]->text);
    for (unsigned i = 0; i < r->n_fields; i++)
        mk_emit_field(out, r->fields[i].name, r->fields[i].value);
    write_framing(h, out);
    mk_emit_end(out);
    return !out->failed;
}

/* Is there anything to send behind the head? */
static bool wants_content(const struct mk_h1 *h)
{
    const struct mk_response *r = &h->x->response;
    return (h->x->request.method != MK_METHOD_HEAD && mk_status_has_content(r->status)) ||
           mk_content_is_raw(&r->content) || mk_content_is_tunnel(&r->content);
}

static bool begin_head(struct mk_h1 *h, struct mk_buf *out)
{
    h->from = out->len;
    h->unsent = true;
    if (MK_LIKELY(write_head(h, out)))
        return true;
    out->len = h->from;
    out->failed = false;
    return false;
}

/* A head larger than the scratch, or content that failed before any of it was sent. The peer gets an honest
 * answer. */
MK_COLD static void write_honest_head(struct mk_h1 *h, struct mk_buf *out)
{
    struct mk_service *s = h->conn->service;
    h->keep = h->in_chunks = false;
    h->complete = true;
    h->x->response.status = 500;
    mk_emit_status(out, 500);
    mk_buf_add(out, mk_stamp_at(&s->stamp, s->loop->now_unix));
    mk_buf_add(out, MK_STR("Content-Length: 0\r\nConnection: close\r\n\r\n"));
}

/* Earlier answers that must not be lost with this one, or are in its way. */
static bool flush_earlier(struct mk_h1 *h)
{
    return mk_h1_output_flush(h) != MK_H1_BROKEN;
}

bool mk_h1_output_head(struct mk_h1 *h)
{
    struct mk_buf *out = &h->conn->service->out;
    h->x->response.sealed = true;
    if (out->len && h->x->response.content.source && !flush_earlier(h))
        return false;
    bool ok = begin_head(h, out);
    if (!ok && out->len) {
        if (!flush_earlier(h))
            return false;
        ok = begin_head(h, out);
    }
    if (!ok) {
        write_honest_head(h, out);
        return true;
    }
    h->to_send = h->x->response.content.length;
    h->complete = !wants_content(h) || h->to_send == 0;
    return true;
}

static enum mk_h1_progress broken(struct mk_h1 *h, enum mk_ending ending)
{
    h->ending = ending;
    return MK_H1_BROKEN;
}

static enum mk_h1_progress progress_of(struct mk_h1 *h, mk_err e)
{
    if (!e)
        return MK_H1_COMPLETE;
    if (e == -EAGAIN)
        return MK_H1_WAITS_ROOM;
    return broken(h, e == -ENOMEM ? MK_ENDING_ABORTED : MK_ENDING_GONE);
}

static enum mk_h1_progress flush(struct mk_h1 *h, bool more)
{
    struct mk_conn *c = h->conn;
    uint64_t *sent = &c->service->counters->sent, before = *sent;
    mk_err e = mk_outq_flush(&c->out, &c->stream, &c->service->out, more, sent);
    h->unsent = false;
    c->progress += *sent - before;
    return progress_of(h, e);
}

enum mk_h1_progress mk_h1_output_flush(struct mk_h1 *h)
{
    return flush(h, !h->keep && h->complete); /* the end of the connection follows at once */
}

static void produced(struct mk_h1 *h, uint64_t n)
{
    h->sent += n;
    if (h->to_send != MK_CONTENT_UNKNOWN)
        h->to_send -= n;
}

static enum mk_h1_progress copy_text(struct mk_h1 *h, struct mk_content *content, const struct mk_part *part)
{
    struct mk_buf *out = &h->conn->service->out;
    size_t n = mk_min(part->bytes.len, out->cap - out->len);
    if (n == 0)
        return flush(h, true);
    mk_buf_add(out, mk_str_take(part->bytes, n));
    mk_content_advance(content, n);
    produced(h, n);
    return MK_H1_COMPLETE;
}

static void on_warm(void *data)
{
    struct mk_h1 *h = data;
    h->coldread = NULL;
    h->go = true;
    mk_conn_resume(h->conn);
}

/* The next window of a part is looked after: if it is not warm already, somebody else waits for the disk
 * (h->coldread), or, where nobody can, we will. */
static void see_to_window(struct mk_h1 *h, struct mk_part *part, bool warm)
{
    uint64_t offset = part->offset, len = part->len;
    part->warm_to = offset + (len < MK_COLDREAD_WINDOW ? len : MK_COLDREAD_WINDOW);
    if (!warm)
        h->coldread = mk_coldread_start(h->conn->service, part->file, offset, len, on_warm, h);
}

/* Can the part be sent without waiting for a disk? */
static bool is_warm(struct mk_h1 *h, struct mk_part *part)
{
    if (!h->coldread && part->offset >= part->warm_to)
        see_to_window(h, part, mk_coldread_is_warm(h->conn->service, part->file, part->offset, part->len));
    return !h->coldread;
}

static enum mk_h1_progress send_file(struct mk_h1 *h, struct mk_content *content, struct mk_part *part)
{
    struct mk_conn *c = h->conn;
    enum mk_h1_progress p = flush(h, true);
    if (p != MK_H1_COMPLETE)
        return p;
    if (!is_warm(h, part))
        return MK_H1_WAITS_INPUT;
    ssize_t n = c->stream.ops->send_file(&c->stream, part->file->fd, part->offset,
                                         (size_t)(part->warm_to - part->offset));
    if (n == -EINTR)
        return MK_H1_COMPLETE;
    if (n == -EAGAIN)
        return MK_H1_WAITS_ROOM;
    if (n == 0) /* the file has become shorter than we promised */
        mk_open_file_forget(part->file);
    if (n <= 0)
        return broken(h, n == 0 || n == -EIO ? MK_ENDING_ABORTED : MK_ENDING_GONE);
    mk_content_advance(content, (uint64_t)n);
    produced(h, (uint64_t)n);
    c->progress += (uint64_t)n;
    c->service->counters->sent += (uint64_t)n;
    return MK_H1_COMPLETE;
}

/* The content cannot be completed. */
MK_COLD static enum mk_h1_progress fail(struct mk_h1 *h)
{
    struct mk_buf *out = &h->conn->service->out;
    if (!h->unsent)
        return broken(h, MK_ENDING_ABORTED);
    h->ending = MK_ENDING_ABORTED;
    h->sent = 0;
    out->len = h->from;
    write_honest_head(h, out);
    return MK_H1_COMPLETE;
}

/* Whatever the socket takes, the scratch is empty then. */
MK_COLD static enum mk_h1_progress end_with_trailers(struct mk_h1 *h)
{
    if (flush(h, true) == MK_H1_BROKEN)
        return MK_H1_BROKEN;
    mk_h1_trailers_write(h, &h->conn->service->out);
    return MK_H1_COMPLETE;
}

/* The source said that this is the end. Does it agree with what the head said? */
static enum mk_h1_progress end_of_source(struct mk_h1 *h)
{
    if (h->to_send != MK_CONTENT_UNKNOWN && h->to_send > 0)
        return fail(h);
    h->complete = true;
    if (h->in_chunks && h->x->response.trailers)
        return end_with_trailers(h);
    if (h->in_chunks)
        mk_emit_last_chunk(&h->conn->service->out);
    return MK_H1_COMPLETE;
}

static void add_chunk(struct mk_buf *out, size_t n)
{
    char head[CHUNK_HEAD];
    for (int i = 0; i < 4; i++)
        head[i] = "0123456789abcdef"[n >> (12 - 4 * i) & 15];
    memcpy(head + 4, "\r\n", 2);
    memcpy(out->p + out->len, head, sizeof head);
    out->len += CHUNK_HEAD + n;
    mk_buf_add(out, MK_STR("\r\n"));
}

/* Whoever makes the content has nothing yet: is it a disk that is in the way? */
static enum mk_h1_progress wait_for_content(struct mk_h1 *h, struct mk_content *content)
{
    bool in_the_way;
    if (h->go && content->source) /* a filter that gives others their turn, and has itself resumed */
        return MK_H1_WAITS_INPUT;
    h->coldread = mk_coldread_missed(h->conn->service, content, &in_the_way, on_warm, h);
    return in_the_way && !h->coldread ? MK_H1_COMPLETE : MK_H1_WAITS_INPUT;
}

static enum mk_h1_progress pull(struct mk_h1 *h, struct mk_content *content)
{
    struct mk_buf *out = &h->conn->service->out;
    if (h->coldread)
        return MK_H1_WAITS_INPUT;
    if (out->cap - out->len < ROOM_MIN) {
        enum mk_h1_progress p = flush(h, !content->source); /* when a source has more, nobody knows */
        if (p != MK_H1_COMPLETE)
            return p;
    }
    size_t room = mk_min(chunk_room(out), h->in_chunks ? 0xffff : SIZE_MAX);
    if (h->to_send != MK_CONTENT_UNKNOWN && h->to_send < room)
        room = (size_t)h->to_send;
    size_t skip = h->in_chunks ? CHUNK_HEAD : 0;
    ssize_t n = room ? mk_content_pull(content, out->p + out->len + skip, room) : 0;
    if (n == 0)
        return end_of_source(h);
    if (n == -EAGAIN) {
        enum mk_h1_progress p = flush(h, false);
        return p == MK_H1_COMPLETE ? wait_for_content(h, content) : p;
    }
    if (n < 0 || (size_t)n > room)
        return fail(h);
    if (h->in_chunks)
        add_chunk(out, (size_t)n);
    else
        out->len += (size_t)n;
    produced(h, (uint64_t)n);
    return MK_H1_COMPLETE;
}

/* A small one of which nobody has looked yet what is in memory: sendfile goes on with one that was waited
 * for. */
static bool is_copied(const struct mk_part *part)
{
    return part->len <= COPY_MAX && part->warm_to == 0;
}

static enum mk_h1_progress step(struct mk_h1 *h)
{
    struct mk_content *content = &h->x->response.content;
    struct mk_part *part = content->source ? NULL : mk_content_part(content);
    if (!part && !content->source) {
        h->complete = true;
        return MK_H1_COMPLETE;
    }
    if (part && !part->file)
        return copy_text(h, content, part);
    if (part && h->conn->stream.ops->send_file && !is_copied(part))
        return send_file(h, content, part);
    return pull(h, content);
}

/* It goes on when the others have had their turn. */
MK_COLD static enum mk_h1_progress pause_turn(struct mk_h1 *h)
{
    h->go = true;
    mk_conn_resume(h->conn);
    return flush(h, false) == MK_H1_BROKEN ? MK_H1_BROKEN : MK_H1_WAITS_ROOM;
}

enum mk_h1_progress mk_h1_output_content(struct mk_h1 *h)
{
    uint64_t from = h->sent;
    while (!h->complete) {
        enum mk_h1_progress p = step(h);
        if (p != MK_H1_COMPLETE)
            return p;
        if (h->sent - from >= TURN_MAX && !h->complete)
            return pause_turn(h);
    }
    return MK_H1_COMPLETE;
}

/* A function of its own, so that the one above, which every answer goes through, has one caller alone. */
enum mk_h1_progress mk_h1_output_tunnel(struct mk_h1 *h)
{
    uint64_t from = h->sent;
    while (!h->complete && h->sent - from < TURN_MAX) {
        enum mk_h1_progress p = pull(h, &h->x->response.content);
        if (p != MK_H1_COMPLETE)
            return p;
    }
    return h->complete ? MK_H1_COMPLETE : pause_turn(h);
}

#define BUSY(status_line)                                                                                    \
    "HTTP/1.1 " status_line "\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

void mk_h1_output_busy(struct mk_conn *c, unsigned status)
{
    mk_str text =
        status == 429 ? MK_STR(BUSY("429 Too Many Requests")) : MK_STR(BUSY("503 Service Unavailable"));
    (void)c->stream.ops->write(&c->stream, text, false);
}
