/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_stream.h"

#include "base/mem.h"
#include "http2/h2_abuse.h"
#include "http2/h2_write.h"

enum {
    PIECE_MIN = 1024,         /* minimum buffer size for body data: several small frames share a buffer */
    WIDE_WINDOW = 256 * 1024, /* window of a stream whose handler reads, if h2->spare is large enough */
    UPDATE_MIN = 16 * 1024,   /* minimum increment of the connection's window, unless the window is nearly
                                 closed */
};

struct mk_h2_body_chunk {
    struct mk_h2_body_chunk *next;
    uint32_t from, to, cap;
    char bytes[];
};

enum { FRAME_ROOM = 64, FIELD_ROOM = 16 }; /* maximum overhead of a header block, and of each header */

static struct mk_conn_manager *manager_of(const struct mk_h2_stream *s)
{
    return s->h2->conn->manager;
}

/* ---- Finding ---- */

static struct mk_h2_stream **bucket_of(struct mk_h2 *h2, uint32_t id)
{
    return &h2->buckets[id / 2 % MK_H2_BUCKETS];
}

struct mk_h2_stream *mk_h2_stream_find(const struct mk_h2 *h2, uint32_t id)
{
    struct mk_h2_stream *s = h2->buckets[id / 2 % MK_H2_BUCKETS];
    while (s && s->id != id)
        s = s->next;
    return s;
}

bool mk_h2_stream_was_reset(const struct mk_h2 *h2, uint32_t id)
{
    for (unsigned i = 0; i < MK_H2_RESETS_KEPT; i++)
        if (h2->resets[i] == id)
            return true;
    return false;
}

void mk_h2_stream_forget_reset(struct mk_h2 *h2, uint32_t id)
{
    for (unsigned i = 0; i < MK_H2_RESETS_KEPT; i++)
        if (h2->resets[i] == id)
            h2->resets[i] = 0;
}

/* ---- Receive windows ---- */

/* Until a client has seen our SETTINGS, it may use the initial windows of RFC 9113: space for them is set
 * aside. Half of the rest is divided among all streams that may be open. */
void mk_h2_stream_init_windows(struct mk_h2 *h2)
{
    const struct mk_h2_limits *l = &h2->conn->manager->limits->h2;
    uint32_t usable = l->unread_max > MK_H2_WINDOW ? l->unread_max - MK_H2_WINDOW : 0;
    uint32_t share = usable / 2 / l->streams_max;
    h2->share = share < MK_H2_WINDOW ? share : MK_H2_WINDOW;
    h2->spare = usable - h2->share * l->streams_max;
    h2->early = MK_H2_WINDOW - h2->share;
    h2->receive_window = l->unread_max;
    mk_list_init(&h2->touched);
}

static void init_stream_window(struct mk_h2_stream *s)
{
    s->receive_window = s->window_size = s->h2->share;
    mk_list_init(&s->touched);
}

/* Call it when body data has arrived or was read, or when the body has ended. */
static void mark_recv_window_changed(struct mk_h2_stream *s)
{
    if (mk_list_empty(&s->touched))
        mk_list_add_last(&s->h2->touched, &s->touched);
}

/* Gives the part of the window beyond the stream's share back to the connection. */
static void shrink_window(struct mk_h2_stream *s)
{
    s->h2->spare += s->window_size - s->h2->share;
    s->window_size = s->h2->share;
}

/* ---- Unread body ---- */

static void count_unread_bytes(struct mk_h2_stream *s, int64_t by)
{
    s->held += by;
    s->h2->held += by;
}

static struct mk_h2_body_chunk *append_chunk(struct mk_h2_stream *s, size_t len)
{
    size_t cap = len > PIECE_MIN ? len : PIECE_MIN;
    struct mk_h2_body_chunk *p = mk_mem_alloc(sizeof *p + cap);
    if (!p)
        return NULL;
    *p = (struct mk_h2_body_chunk){.cap = (uint32_t)cap};
    if (s->last)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return p;
}

static mk_str fill_chunk(struct mk_h2_stream *s, struct mk_h2_body_chunk *p, mk_str data)
{
    size_t n = mk_min(p->cap - p->to, data.len);
    memcpy(p->bytes + p->to, data.p, n);
    p->to += (uint32_t)n;
    count_unread_bytes(s, (int64_t)n);
    return mk_str_skip(data, n);
}

/* Queues body data that has arrived. False: out of memory. */
static bool enqueue_body(struct mk_h2_stream *s, mk_str data)
{
    if (s->last && data.len)
        data = fill_chunk(s, s->last, data);
    if (!data.len)
        return true;
    struct mk_h2_body_chunk *p = append_chunk(s, data.len);
    if (!p)
        return false;
    (void)fill_chunk(s, p, data);
    return true;
}

static void free_first_chunk(struct mk_h2_stream *s)
{
    struct mk_h2_body_chunk *p = s->first;
    s->first = p->next;
    if (!s->first)
        s->last = NULL;
    count_unread_bytes(s, -(int64_t)p->to);
    mk_mem_free(p);
}

static void discard_body(struct mk_h2_stream *s)
{
    while (s->first)
        free_first_chunk(s);
}

/* Reads held data. Returns 0 if no data is held. Bytes that were read count as held until their chunk is
 * freed. */
static size_t read_body(struct mk_h2_stream *s, char *buf, size_t cap)
{
    struct mk_h2_body_chunk *p = s->first;
    if (!p)
        return 0;
    size_t n = mk_min(cap, p->to - p->from);
    memcpy(buf, p->bytes + p->from, n);
    p->from += (uint32_t)n;
    if (p->from == p->to) {
        free_first_chunk(s);
        mark_recv_window_changed(s);
    }
    return n;
}

/* Returns the window that the stream could use. A tunnel may be open for hours with little traffic, so its
 * window grows only after it was used up. */
static uint64_t wanted_window(const struct mk_h2_stream *s)
{
    if (!s->d.x->request.tunnel.p)
        return s->announced;
    return s->d.received < s->window_size ? s->window_size : 2 * (uint64_t)s->window_size;
}

/* Widens the stream's receive window. Call it when the handler has read everything that has arrived. Takes at
 * most half of `h2->spare`, and leaves the rest for other streams. */
static void grow_recv_window(struct mk_h2_stream *s)
{
    uint64_t to = wanted_window(s);
    if (to > WIDE_WINDOW)
        to = WIDE_WINDOW;
    if (to <= s->window_size)
        return;
    uint32_t by = (uint32_t)mk_min(to - s->window_size, s->h2->spare / 2);
    s->h2->spare -= by;
    s->window_size += by;
    mark_recv_window_changed(s);
}

static void update_stream_window(struct mk_h2_stream *s)
{
    int64_t by = s->window_size - s->receive_window - s->held;
    mk_list_remove(&s->touched);
    if (mk_http_stream_request_received(&s->d)) {
        if (!s->held)
            shrink_window(s);
        return;
    }
    if (by <= 0 || by < s->window_size / 4)
        return; /* the increment is too small for a frame of its own */
    s->receive_window += by;
    mk_h2_write_window_update(s->h2, s->id, (uint32_t)by);
}

/* Gives window credit back to the client for all bytes that have arrived and are no longer held: body data
 * that was read or discarded, padding, and data of closed streams. */
static void update_connection_window(struct mk_h2 *h2)
{
    int64_t by = (int64_t)h2->conn->manager->limits->h2.unread_max - h2->receive_window - h2->held;
    if (by <= 0 || (by < UPDATE_MIN && by < h2->receive_window))
        return;
    h2->receive_window += by;
    mk_h2_write_window_update(h2, 0, (uint32_t)by);
}

void mk_h2_stream_send_window_updates(struct mk_h2 *h2)
{
    MK_LIST_EACH_SAFE (at, &h2->touched)
        update_stream_window(MK_LIST_ENTRY(at, struct mk_h2_stream, touched));
    update_connection_window(h2);
}

/* Frees the stream's data, and returns its part of the window. */
static void close_recv_window(struct mk_h2_stream *s)
{
    discard_body(s);
    shrink_window(s);
    mk_list_remove(&s->touched);
}

/* ---- Timeouts ---- */

static void on_stream_timer(struct mk_timer *t)
{
    struct mk_h2_stream *s = MK_CONTAINER(t, struct mk_h2_stream, timer);
    struct mk_conn *c = s->h2->conn;
    enum mk_conn_timeout timeout = s->timeout;
    s->timeout = MK_TIMEOUT_NONE;
    if (timeout == MK_TIMEOUT_NONE)
        return;
    /* A stream in a list waits for other streams or for the whole connection, not for its client. */
    bool queued = !mk_list_empty(&s->queue_link);
    if (timeout == MK_TIMEOUT_RATE &&
        (queued || !mk_conn_rate_is_below_min(&s->rate, s->progress, mk_http_stream_limits(&s->d)))) {
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_RATE);
        return;
    }
    s->due = (uint8_t)timeout;
    mk_h2_stream_wake(s);
    mk_conn_resume(c);
}

void mk_h2_stream_set_timeout(struct mk_h2_stream *s, enum mk_conn_timeout timeout)
{
    struct mk_conn_manager *manager = manager_of(s);
    if ((s->timeout == timeout && timeout != MK_TIMEOUT_TUNNEL) || mk_h2_stream_is_closed(s))
        return;
    uint32_t span = mk_conn_request_timeout_ms(mk_http_stream_limits(&s->d), timeout);
    s->timeout = (uint8_t)timeout;
    if (timeout == MK_TIMEOUT_RATE)
        s->rate.progressed = s->progress;
    if (span)
        mk_loop_set_timer(manager->loop, &s->timer, span);
    else
        mk_timer_stop(&s->timer);
}

void mk_h2_stream_set_wait_timeout(struct mk_h2_stream *s)
{
    if (mk_http_stream_is_tunnel(&s->d))
        return; /* the timeout is already running */
    mk_h2_stream_set_timeout(s, mk_http_stream_timeout(&s->d));
    if (mk_http_stream_is_client_gone(&s->d))
        mk_h2_stream_close(s, MK_OUTCOME_CLIENT_ABORTED);
}

/* ---- Request operations ---- */

/* Returns the space that an interim response needs in the output buffer; with less, the buffer is flushed
 * first. */
static size_t interim_head_size_max(const struct mk_header *fields, size_t n)
{
    size_t space = FRAME_ROOM;
    for (size_t i = 0; i < n; i++)
        space += fields[i].name.len + fields[i].value.len + FIELD_ROOM;
    return space;
}

/* Sends an interim response. False: no space. */
static bool send_interim(struct mk_h2_stream *s, unsigned status, const struct mk_header *fields, size_t n)
{
    struct mk_buf *out = mk_h2_write_reserve(s->h2, interim_head_size_max(fields, n));
    size_t from = out->len;
    mk_h2_write_begin_block(s->h2);
    mk_hpack_encode_status(out, status);
    for (size_t i = 0; i < n; i++)
        mk_h2_write_header(out, fields[i].name, fields[i].value);
    return mk_h2_write_end_block(s->h2, from, s->id, 0);
}

void mk_h2_stream_send_continue(struct mk_h2_stream *s)
{
    mk_http_stream_set_input_state(&s->d, MK_INPUT_WANTED);
    if (!s->d.received && !s->d.x->response.sealed) /* otherwise the client no longer waits for 100
                                                       Continue */
        (void)send_interim(s, 100, NULL, 0);
}

static mk_err on_interim(void *ctx, unsigned status, const struct mk_header *fields, size_t n)
{
    struct mk_h2_stream *s = ctx;
    const struct mk_conn *c = s->h2->conn;
    bool may = manager_of(s)->serving == c && mk_send_queue_is_empty(&c->out);
    return may && send_interim(s, status, fields, n) ? 0 : -EAGAIN;
}

static ssize_t on_body_read(void *ctx, char *buf, size_t cap)
{
    struct mk_h2_stream *s = ctx;
    if (manager_of(s)->serving != s->h2->conn)
        return -EAGAIN; /* outside of handlers and body sources, the caller must resume the request first */
    if (s->d.x->request.tunnel.p && !mk_http_stream_is_tunnel(&s->d))
        return 0; /* later input belongs to the tunnel, if a handler opens it */
    if (s->first)
        return (ssize_t)read_body(s, buf, cap);
    if (s->d.x->read_error || mk_http_stream_request_received(&s->d))
        return s->d.x->read_error;
    if (s->d.input.current == MK_INPUT_AWAITS_CONTINUE)
        mk_h2_stream_send_continue(s);
    grow_recv_window(s);
    mk_http_stream_await_body(&s->d);
    return -EAGAIN;
}

/* Continues with dispatch or, if the response is ready, with sending. */
static void resume_stream(struct mk_h2_stream *s)
{
    mk_http_stream_allow_call(&s->d);
    if (s->d.x->step != MK_DISPATCH_READY || mk_http_stream_is_tunnel(&s->d)) {
        mk_h2_stream_wake(s);
        return;
    }
    if (s->timeout == MK_TIMEOUT_HANDLER) /* from now on, the stream waits for its turn, and for the client */
        mk_h2_stream_stop_timeout(s);
    mk_h2_stream_queue_output(s);
}

static void on_resume(void *ctx)
{
    struct mk_h2_stream *s = ctx;
    resume_stream(s);
    mk_conn_resume(s->h2->conn);
}

static const struct mk_request_ops request_ops = {.read = on_body_read,
                                                  .resume = on_resume,
                                                  .local = mk_http_stream_local_addr,
                                                  .interim = on_interim,
                                                  .tls = mk_http_stream_tls_info,
                                                  .limit_body = mk_http_stream_set_body_max};

/* ---- Lifetime ---- */

struct mk_h2_stream *mk_h2_stream_new(struct mk_h2 *h2, uint32_t id)
{
    struct mk_h2_stream *s = mk_http_stream_new(h2->conn, sizeof *s, 20, &request_ops, 0);
    if (!s)
        return NULL;
    *s = (struct mk_h2_stream){.d = s->d,
                               .h2 = h2,
                               .id = id,
                               .next = *bucket_of(h2, id),
                               .send_window = h2->stream_window,
                               .priority = {.urgency = MK_URGENCY_USUAL}};
    mk_list_init(&s->queue_link);
    init_stream_window(s);
    mk_timer_init(&s->timer, on_stream_timer);
    s->d.x->response.no_raw = true;
    *bucket_of(h2, id) = s;
    h2->n_streams++;
    return s;
}

static void unlink_stream(struct mk_h2_stream *s)
{
    struct mk_h2_stream **at = bucket_of(s->h2, s->id);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->h2->n_streams--;
    mk_list_remove(&s->queue_link);
    mk_timer_stop(&s->timer);
}

/* Keeps the rate limits of a closed stream: its response may still be pending in the output of the
 * connection. */
static void keep_rate_limits(const struct mk_h2_stream *s)
{
    const struct mk_vhost *site = s->d.x->request.site;
    struct mk_h2 *h2 = s->h2;
    if (MK_LIKELY(!s->d.x->limits && (!site || (!site->limits && !site->n_locations))))
        return;
    const struct mk_request_limits *own = mk_http_stream_limits(&s->d);
    h2->left = *(h2->pending_limits ? mk_conn_rate_more_lenient(h2->pending_limits, own) : own);
    h2->pending_limits = &h2->left;
}

void mk_h2_stream_close(struct mk_h2_stream *s, enum mk_outcome outcome)
{
    if (mk_h2_stream_is_closed(s))
        return;
    keep_rate_limits(s);
    mk_http_stream_record_request(&s->d, outcome);
    mk_http_stream_close_remote(&s->d);
    mk_http_stream_close_local(&s->d);
    s->d.x->request.ops = NULL; /* makes resume and read safe: cleanups of handlers may still call them */
    unlink_stream(s);
    close_recv_window(s);
    mk_list_add_last(&s->h2->closed, &s->queue_link);
}

void mk_h2_stream_reset(struct mk_h2_stream *s, enum mk_h2_error error, enum mk_outcome outcome)
{
    if (mk_h2_stream_is_closed(s))
        return;
    mk_h2_write_rst_stream(s->h2, s->id, error);
    mk_h2_stream_close(s, outcome);
}

void mk_h2_stream_close_all(struct mk_h2 *h2, enum mk_outcome outcome)
{
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        while (h2->buckets[i])
            mk_h2_stream_close(h2->buckets[i], outcome);
}

void mk_h2_stream_free_closed(struct mk_h2 *h2)
{
    while (!mk_list_empty(&h2->closed)) {
        struct mk_h2_stream *s = MK_LIST_ENTRY(h2->closed.next, struct mk_h2_stream, queue_link);
        mk_list_remove(&s->queue_link);
        mk_http_stream_free(&s->d);
    }
}

void mk_h2_stream_drain(struct mk_h2_stream *s)
{
    mk_http_stream_record_request(&s->d, MK_OUTCOME_OK);
    mk_list_remove(&s->queue_link);
    mk_h2_stream_discard_input(s);
    s->d.content_max = s->d.received + MK_H2_DRAIN_MAX;
    mk_h2_stream_set_timeout(s, MK_TIMEOUT_RATE);
}

/* ---- Incoming body ---- */

/* Wakes a handler or source that waits for body data: either data has arrived, or none will. */
static void wake_reader(struct mk_h2_stream *s)
{
    if (s->d.awaits == MK_AWAITS_BODY || mk_http_stream_is_tunnel(&s->d))
        resume_stream(s);
}

void mk_h2_stream_discard_input(struct mk_h2_stream *s)
{
    if (s->d.input.current != MK_INPUT_UNWANTED)
        mk_http_stream_set_input_state(&s->d, MK_INPUT_UNWANTED);
    discard_body(s);
    mark_recv_window_changed(s);
}

static void fail_input(struct mk_h2_stream *s, mk_err e)
{
    if (!s->d.x->read_error)
        s->d.x->read_error = e;
    mk_h2_stream_discard_input(s);
    wake_reader(s);
}

/* Does the received body match Content-Length so far? */
static bool fits_content_length(const struct mk_h2_stream *s, bool ends)
{
    return s->announced == MK_REQUEST_LENGTH_UNKNOWN ||
           (ends ? s->d.received == s->announced : s->d.received <= s->announced);
}

static void reset_length_mismatch(struct mk_h2_stream *s)
{
    /* Clients could provoke resets to get around the limit on concurrent requests (CVE-2025-8671). */
    if (mk_h2_abuse_charge(s->h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
        mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_OUTCOME_REJECTED);
}

/* Receives data for a stream that only waits for the end of an unwanted body. */
static void receive_while_draining(struct mk_h2_stream *s, bool ends)
{
    if (ends)
        mk_h2_stream_close(s, MK_OUTCOME_OK);
    else if (s->d.received > s->d.content_max)
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
}

void mk_h2_stream_receive(struct mk_h2_stream *s, mk_str data, bool ends)
{
    s->d.received += data.len;
    s->progress += data.len;
    mark_recv_window_changed(s);
    if (!fits_content_length(s, ends)) {
        reset_length_mismatch(s);
        return;
    }
    if (mk_h2_stream_is_draining(s)) {
        receive_while_draining(s, ends);
        return;
    }
    if (ends)
        mk_http_stream_close_remote(&s->d);
    if (s->d.input.current == MK_INPUT_UNWANTED)
        return;
    mk_err e = s->d.received > s->d.content_max ? -EMSGSIZE : enqueue_body(s, data) ? 0 : -ENOMEM;
    if (e)
        fail_input(s, e);
    wake_reader(s);
}

static void end_stream_input(struct mk_h2_stream *s)
{
    if (mk_h2_stream_is_draining(s)) {
        mk_h2_stream_close(s, MK_OUTCOME_OK);
        return;
    }
    if (!mk_http_stream_request_received(&s->d) && mk_http_stream_is_tunnel(&s->d)) {
        s->d.outcome = s->d.outcome ? s->d.outcome : MK_OUTCOME_CLIENT_ABORTED;
        fail_input(s, -ECONNRESET);
    } else if (!mk_http_stream_request_received(&s->d)) {
        mk_http_stream_abort_body(&s->d);
        fail_input(s, -ECONNRESET);
    }
    if (s->timeout == MK_TIMEOUT_HANDLER)
        mk_h2_stream_set_wait_timeout(s);
    if (!mk_h2_stream_is_closed(s) && s->d.reply.current != MK_RESPONSE_PENDING && s->send_window <= 0)
        mk_h2_stream_queue_output(s); /* aborts the stream if it waits for that window */
}

void mk_h2_stream_end_input(struct mk_h2 *h2)
{
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        for (struct mk_h2_stream *s = h2->buckets[i], *next; s; s = next) {
            next = s->next;
            end_stream_input(s);
        }
}

/* ---- Scheduling ---- */

void mk_h2_stream_wake(struct mk_h2_stream *s)
{
    if (mk_h2_stream_is_closed(s))
        return;
    mk_list_remove(&s->queue_link);
    mk_list_add_last(&s->h2->woken, &s->queue_link);
}

void mk_h2_stream_queue_output(struct mk_h2_stream *s)
{
    struct mk_h2 *h2 = s->h2;
    if (!mk_list_empty(&s->queue_link))
        return;
    mk_list_add_last(&h2->ready[s->priority.urgency], &s->queue_link);
    h2->ready_mask |= 1u << s->priority.urgency;
}
