/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_session_stream.h"

#include <errno.h>

#include "http2client/h2_session_write.h"

enum {
    TABLE_SIZE_0 = 0x20, /* HPACK: the table size is 0 */
    QUEUE_STEP = 4096,
};

static struct mk_h2_session_stream *stream_of(struct mk_stream *st)
{
    return MK_CONTAINER(st, struct mk_upstream_conn, stream)->h2;
}

/* ---- The table of open streams ---- */

static struct mk_h2_session_stream **bucket_of(struct mk_h2_session *ss, uint32_t id)
{
    return &ss->buckets[id / 2 % MK_H2_SESSION_BUCKETS];
}

struct mk_h2_session_stream *mk_h2_session_stream_find(const struct mk_h2_session *ss, uint32_t id)
{
    struct mk_h2_session_stream *s = ss->buckets[id / 2 % MK_H2_SESSION_BUCKETS];
    while (s && s->id != id)
        s = s->next;
    return s;
}

static void remove_from_bucket(struct mk_h2_session_stream *s)
{
    struct mk_h2_session_stream **at = bucket_of(s->session, s->id);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

/* Assigns the identifier: streams must be opened in the order of their identifiers. */
static void open_stream(struct mk_h2_session_stream *s)
{
    struct mk_h2_session *ss = s->session;
    struct mk_h2_session_stream **bucket = bucket_of(ss, ss->next_id);
    s->id = ss->next_id;
    s->send_window = ss->stream_window;
    s->next = *bucket;
    *bucket = s;
    ss->next_id += 2;
    ss->n_requests++;
    if (ss->next_id >= MK_H2_STREAM_MAX && ss->state.current == MK_H2_SESSION_OPEN)
        mk_h2_session_write_move(ss, MK_H2_SESSION_DRAINING);
}

/* ---- Notifications ---- */

void mk_h2_session_stream_notify(struct mk_h2_session_stream *s, unsigned events)
{
    s->events |= events;
    if (events & MK_READABLE)
        s->conn->stream.dry = false;
    if (mk_list_empty(&s->ready))
        mk_list_add_last(&s->session->ready, &s->ready);
}

static void block_stream(struct mk_h2_session_stream *s)
{
    if (mk_list_empty(&s->blocked))
        mk_list_add_last(&s->session->blocked, &s->blocked);
}

void mk_h2_session_stream_wake_blocked(struct mk_h2_session *ss)
{
    MK_LIST_EACH_SAFE (at, &ss->blocked) {
        struct mk_h2_session_stream *s = MK_LIST_ENTRY(at, struct mk_h2_session_stream, blocked);
        if (s->id && s->send_window <= 0)
            continue;
        mk_list_remove(at);
        mk_h2_session_stream_notify(s, MK_WRITABLE);
    }
}

void mk_h2_session_stream_fail(struct mk_h2_session_stream *s, int error, const char *problem)
{
    struct mk_upstream_conn *c = s->conn;
    mk_list_remove(&s->blocked);
    if (s->error)
        return;
    s->error = error;
    c->read_error_text = s->problem = problem;
    s->is_remote_closed = true;
    if (c->state.current == MK_UPSTREAM_CONN_CONNECTING)
        mk_upstream_conn_fail(c, error);
    mk_h2_session_stream_notify(s, MK_READABLE | MK_HUNG_UP);
}

void mk_h2_session_stream_reset(struct mk_h2_session_stream *s, enum mk_h2_error code, int error,
                                const char *problem)
{
    s->is_reset = true;
    mk_h2_session_write_rst_stream(s->session, s->id, code);
    mk_h2_session_stream_fail(s, error, problem);
}

void mk_h2_session_stream_check_tunnel(struct mk_h2_session_stream *s)
{
    if (!s->conn->options.http2_tunnel || s->session->has_connect_protocol)
        return;
    mk_h2_session_stream_fail(s, -EPROTONOSUPPORT, "the server does not support tunnels over HTTP/2");
    mk_h2_session_write_schedule(s->session);
}

/* ---- The queue of received data ---- */

/* Lets the queue grow by a quarter at least, not by its double: thousands of queues may be full at once. */
static size_t queue_size(size_t needed)
{
    return (needed + needed / 4 + QUEUE_STEP - 1) / QUEUE_STEP * QUEUE_STEP;
}

static void free_heap_queue(struct mk_h2_session_stream *s)
{
    if (s->queue == s->inline_queue)
        return;
    mk_mem_free(s->queue);
    s->queue = s->inline_queue;
    s->cap = s->session->backend->pool->blocks.size - sizeof *s;
}

static bool reserve_queue(struct mk_h2_session_stream *s, size_t n)
{
    size_t len = s->to - s->from;
    if (s->cap - s->to >= n)
        return true;
    if (s->from && s->cap - len >= n) {
        memmove(s->queue, s->queue + s->from, len);
        s->from = 0;
        s->to = len;
        return true;
    }
    size_t cap = queue_size(len + n);
    char *p = mk_mem_alloc(cap);
    if (!p)
        return false;
    memcpy(p, s->queue + s->from, len);
    free_heap_queue(s);
    s->queue = p;
    s->cap = cap;
    s->from = 0;
    s->to = len;
    return true;
}

void mk_h2_session_stream_receive(struct mk_h2_session_stream *s, enum mk_h2_type type, unsigned flags,
                                  mk_str payload)
{
    if (flags & MK_H2_END_STREAM)
        s->is_remote_closed = true;
    size_t head = s->is_tunnel && type == MK_H2_DATA ? 0 : MK_H2_FRAME_HEAD;
    if (!reserve_queue(s, head + payload.len)) {
        mk_h2_session_stream_reset(s, MK_H2_INTERNAL_ERROR, -ENOMEM, "no memory for the response");
        return;
    }
    if (head)
        mk_h2_frame_write_head(s->queue + s->to, (uint32_t)payload.len, type, flags, 0);
    if (payload.len)
        memcpy(s->queue + s->to + head, payload.p, payload.len);
    s->to += head + payload.len;
    mk_h2_session_stream_notify(s, MK_READABLE);
}

static bool acquire_wide_window(struct mk_h2_session_stream *s)
{
    unsigned *n = &s->session->backend->pool->n_http2_wide;
    if (s->is_wide || *n >= MK_H2_SESSION_WIDE_STREAMS_MAX)
        return s->is_wide;
    (*n)++;
    s->is_wide = true;
    return true;
}

static void release_wide_window(struct mk_h2_session_stream *s)
{
    if (s->is_wide)
        s->session->backend->pool->n_http2_wide--;
    s->is_wide = false;
}

/* Returns the window that a stream with `left` queued bytes may have. Only a reader that has emptied the queue gets a
 * wide window, and keeps it while it reads as fast as the server sends. */
static int64_t target_window(struct mk_h2_session_stream *s, int64_t left)
{
    if (!left && s->has_head && acquire_wide_window(s))
        return MK_H2_SESSION_WIDE_WINDOW;
    if (s->receive_window + left <= MK_H2_SESSION_STREAM_WINDOW)
        release_wide_window(s);
    return MK_H2_SESSION_STREAM_WINDOW;
}

/* Gives back the window for data that was read. The rest of the queue counts in full, although part of it is
 * no body data. */
static void return_window(struct mk_h2_session_stream *s)
{
    struct mk_h2_session *ss = s->session;
    int64_t left = (int64_t)(s->to - s->from);
    if (s->is_remote_closed || s->error || !s->id)
        return;
    int64_t window = target_window(s, left), by = window - s->receive_window - left;
    if (by < window / 2 || ss->state.current == MK_H2_SESSION_FAILED)
        return;
    s->receive_window += by;
    mk_h2_session_write_window_update(ss, s->id, (uint32_t)by);
}

/* Nothing is queued. A tunnel ends with the stream, or with the session if the server has closed its socket; a
 * response ends with a record instead. */
static ssize_t read_end(const struct mk_h2_session_stream *s)
{
    if (s->error)
        return s->is_tunnel && s->error == -ECONNRESET ? 0 : s->error;
    return s->is_tunnel && s->is_remote_closed ? 0 : -EAGAIN;
}

static ssize_t stream_read(struct mk_stream *st, char *buf, size_t cap)
{
    struct mk_h2_session_stream *s = stream_of(st);
    size_t n = mk_min(cap, s->to - s->from);
    if (!n)
        return read_end(s);
    memcpy(buf, s->queue + s->from, n);
    s->from += n;
    if (s->from == s->to) {
        s->from = s->to = 0;
        free_heap_queue(s);
        st->holds = s->error || (s->is_tunnel && s->is_remote_closed); /* the end is still to be read */
    }
    return_window(s);
    return (ssize_t)n;
}

/* ---- Sending ---- */

static size_t output_space(const struct mk_h2_session *ss)
{
    size_t unsent = mk_h2_session_write_unsent(ss);
    return unsent < MK_H2_SESSION_OUT_MAX ? MK_H2_SESSION_OUT_MAX - unsent : 0;
}

/* Length of the header block at the beginning of `rest`, with all its frames. 0: incomplete. */
static size_t header_block_len(mk_str rest)
{
    size_t at = 0;
    while (rest.len - at >= MK_H2_FRAME_HEAD) {
        struct mk_h2_frame f = mk_h2_frame_parse(mk_str_skip(rest, at));
        at += MK_H2_FRAME_HEAD + f.length;
        if (at > rest.len)
            return 0;
        if (f.flags & MK_H2_END_HEADERS)
            return at;
    }
    return 0;
}

/* Writes HEADERS. The table of the server stays empty, which the block confirms if the server asks for it. */
static void write_headers_frame(struct mk_h2_session_stream *s, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_h2_session *ss = s->session;
    struct mk_buf *out = mk_h2_session_write_buffer(ss);
    bool confirms = ss->owes_table_size && f->type == MK_H2_HEADERS && f->length < MK_H2_FRAME_MAX;
    unsigned flags = f->flags & ~(unsigned)MK_H2_SESSION_STREAM_CONNECT;
    mk_h2_frame_emit_head(out, f->length + confirms, (enum mk_h2_type)f->type, flags, s->id);
    if (confirms) {
        mk_buf_add_char(out, TABLE_SIZE_0);
        ss->owes_table_size = false;
    }
    mk_buf_add(out, payload);
}

/* Writes a header block without interruption, as RFC 9113, section 4.3 requires. */
static ssize_t write_header_block(struct mk_h2_session_stream *s, mk_str rest)
{
    size_t len = header_block_len(rest);
    if (!len)
        return -EPROTO;
    if (!s->id && s->session->next_id >= MK_H2_STREAM_MAX) {
        s->conn->is_unprocessed = true;
        mk_h2_session_stream_fail(s, -ESTALE, "the session has no stream identifier left");
        return -EPIPE;
    }
    if (!s->id)
        open_stream(s);
    for (size_t at = 0; at < len;) {
        struct mk_h2_frame f = mk_h2_frame_parse(mk_str_skip(rest, at));
        write_headers_frame(s, &f, mk_str_first(mk_str_skip(rest, at + MK_H2_FRAME_HEAD), f.length));
        s->is_local_closed |= f.type == MK_H2_HEADERS && f.flags & MK_H2_END_STREAM;
        s->is_connect |= f.type == MK_H2_HEADERS && f.flags & MK_H2_SESSION_STREAM_CONNECT;
        at += MK_H2_FRAME_HEAD + f.length;
    }
    return (ssize_t)len;
}

/* Is this the empty DATA frame that ends the request? */
static bool is_end_frame(mk_str rest)
{
    if (rest.len < MK_H2_FRAME_HEAD)
        return false;
    struct mk_h2_frame f = mk_h2_frame_parse(rest);
    return f.type == MK_H2_DATA && !f.length && f.flags & MK_H2_END_STREAM;
}

static void write_end(struct mk_h2_session_stream *s)
{
    mk_h2_frame_emit_head(mk_h2_session_write_buffer(s->session), 0, MK_H2_DATA, MK_H2_END_STREAM, s->id);
    s->is_local_closed = true;
}

/* Writes a piece of `left` bytes of body data, as much as the windows allow. */
static ssize_t write_data(struct mk_h2_session_stream *s, mk_str rest, size_t left)
{
    struct mk_h2_session *ss = s->session;
    int64_t window = s->send_window < ss->send_window ? s->send_window : ss->send_window;
    size_t n = mk_min(mk_min(rest.len, left), mk_min((size_t)ss->frame_max, output_space(ss)));
    if (window <= 0 || !n) {
        block_stream(s);
        return 0;
    }
    n = mk_min(n, (size_t)window);
    bool ends = n == left && !s->is_tunnel && is_end_frame(mk_str_skip(rest, n));
    struct mk_buf *out = mk_h2_session_write_buffer(ss);
    mk_h2_frame_emit_head(out, (uint32_t)n, MK_H2_DATA, ends ? MK_H2_END_STREAM : 0, s->id);
    mk_buf_add(out, mk_str_first(rest, n));
    s->send_window -= (int64_t)n;
    ss->send_window -= (int64_t)n;
    s->is_local_closed |= ends;
    return (ssize_t)n + (ends ? MK_H2_FRAME_HEAD : 0);
}

static ssize_t write_frame(struct mk_h2_session_stream *s, mk_str rest)
{
    struct mk_h2_frame f = mk_h2_frame_parse(rest);
    if (!output_space(s->session)) {
        block_stream(s);
        return 0;
    }
    if (f.type == MK_H2_HEADERS)
        return write_header_block(s, rest);
    if (f.length)
        s->data_left = f.length;
    else if (f.flags & MK_H2_END_STREAM)
        write_end(s);
    return MK_H2_FRAME_HEAD;
}

static ssize_t write_step(struct mk_h2_session_stream *s, mk_str rest)
{
    if (s->is_tunnel)
        return write_data(s, rest, rest.len);
    if (!s->data_left)
        return rest.len < MK_H2_FRAME_HEAD ? -EPROTO : write_frame(s, rest);
    ssize_t n = write_data(s, rest, s->data_left);
    if (n > 0)
        s->data_left -= (uint32_t)mk_min((size_t)n, (size_t)s->data_left);
    return n;
}

static ssize_t stream_write(struct mk_stream *st, mk_str bytes, bool more)
{
    struct mk_h2_session_stream *s = stream_of(st);
    size_t done = 0;
    (void)more;
    if (s->error || s->is_reset)
        return s->error ? s->error : -EPIPE;
    while (done < bytes.len) {
        ssize_t n = write_step(s, mk_str_skip(bytes, done));
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return done ? (ssize_t)done : -EAGAIN;
}

/* Ends our direction of a tunnel. */
static void stream_shutdown(struct mk_stream *st)
{
    struct mk_h2_session_stream *s = stream_of(st);
    if (s->id && !s->is_local_closed && !s->is_reset && !s->error)
        write_end(s);
}

/* ---- Beginning and end ---- */

/* Tells the server that the response is not wanted, or that the rest of the request will not come. */
static void cancel_stream(struct mk_h2_session_stream *s)
{
    bool is_complete = s->is_local_closed && s->is_remote_closed;
    if (s->id && !is_complete && !s->is_reset && !s->error &&
        s->session->state.current != MK_H2_SESSION_FAILED)
        mk_h2_session_write_rst_stream(s->session, s->id, MK_H2_CANCEL);
}

/* Sends a PING after a request has timed out, to find out whether the server is alive. */
static void suspect_session(struct mk_h2_session *ss)
{
    bool is_open = ss->state.current == MK_H2_SESSION_OPEN || ss->state.current == MK_H2_SESSION_DRAINING;
    if (!is_open || ss->is_suspect)
        return;
    ss->is_suspect = true;
    mk_h2_session_write_ping(ss);
    mk_timer_set(&ss->timer, ss->backend->pool->worker, ss->backend->server->upstream->settings->connect_ms);
}

static void stream_close(struct mk_stream *st)
{
    struct mk_upstream_conn *c = MK_CONTAINER(st, struct mk_upstream_conn, stream);
    struct mk_h2_session_stream *s = c->h2;
    struct mk_h2_session *ss = s->session;
    cancel_stream(s);
    if (c->fault == -ETIMEDOUT)
        suspect_session(ss);
    if (s->id)
        remove_from_bucket(s);
    mk_list_remove(&s->link);
    mk_list_remove(&s->ready);
    mk_list_remove(&s->blocked);
    free_heap_queue(s);
    release_wide_window(s);
    c->h2 = NULL;
    mk_freelist_push(&ss->backend->pool->blocks, s);
    if (--ss->n_streams)
        return;
    ss->idle_since_ms = mk_worker_now_ms(ss->backend->pool->worker);
    mk_pool_schedule_sweep(ss->backend->pool);
    if (ss->state.current != MK_H2_SESSION_OPEN || !ss->backend->server->upstream->keep)
        mk_h2_session_write_schedule(ss); /* the session may be over */
}

static const struct mk_stream_ops ops = {
    .read = stream_read, .write = stream_write, .shutdown = stream_shutdown, .close = stream_close};

/* The connection counts as reused if the server may have closed the session already. */
bool mk_h2_session_stream_attach(struct mk_h2_session *ss, struct mk_upstream_conn *c)
{
    struct mk_freelist *blocks = &ss->backend->pool->blocks;
    struct mk_h2_session_stream *s = mk_freelist_pop(blocks);
    if (!s)
        return false;
    memset(s, 0, sizeof *s);
    s->conn = c;
    s->session = ss;
    s->receive_window = MK_H2_SESSION_STREAM_WINDOW;
    s->queue = s->inline_queue;
    s->cap = blocks->size - sizeof *s;
    mk_list_init(&s->ready);
    mk_list_init(&s->blocked);
    mk_list_add_last(&ss->streams, &s->link);
    ss->n_streams++;
    c->h2 = s;
    c->stream = (struct mk_stream){.ops = &ops, .fd = -1, .dry = true};
    c->server = ss->backend->server;
    c->worker = ss->backend->pool->worker;
    c->nodelay = MK_UPSTREAM_CONN_NODELAY; /* of the session's socket */
    c->is_unprocessed = false;
    c->reset_code = 0;
    c->read_error_text = NULL;
    c->to = ss->conn.to;
    c->names_version = ss->conn.names_version;
    mk_timer_init(&c->timer, NULL);
    bool is_open = ss->state.current == MK_H2_SESSION_OPEN;
    c->was_used = is_open && ss->n_requests && !c->options.fresh;
    mk_upstream_conn_move(c, is_open ? MK_UPSTREAM_CONN_OPEN : MK_UPSTREAM_CONN_CONNECTING);
    if (is_open)
        mk_h2_session_stream_check_tunnel(s);
    return true;
}
