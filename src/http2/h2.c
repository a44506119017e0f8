/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2.h"

#include "base/mem.h"
#include "http/date.h"
#include "http2/h2_abuse.h"
#include "http2/h2_input.h"
#include "http2/h2_output.h"
#include "http2/h2_request.h"
#include "http2/h2_stream.h"
#include "http2/h2_write.h"
#include "http2frame/hpack.h"
#include "web/response.h"

enum { TABLE_MAX = 4096 /* default size of a client's HPACK table */ };

/* ---- Opening and closing ---- */

static void send_settings(struct mk_h2 *h2)
{
    const struct mk_conn_manager_limits *l = h2->conn->manager->limits;
    struct mk_buf *out = mk_h2_write_reserve(h2, 52);
    mk_h2_frame_emit_head(out, 5 * 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(out, MK_H2_MAX_CONCURRENT_STREAMS, l->h2.streams_max);
    mk_h2_frame_emit_setting(out, MK_H2_MAX_HEADER_LIST_SIZE, (uint32_t)l->head.head_max);
    mk_h2_frame_emit_setting(out, MK_H2_ENABLE_CONNECT_PROTOCOL, 1);
    mk_h2_frame_emit_setting(out, MK_H2_NO_RFC7540_PRIORITIES, 1);
    mk_h2_frame_emit_setting(out, MK_H2_INITIAL_WINDOW_SIZE, h2->share);
    mk_h2_write_window_update(h2, 0, l->h2.unread_max - MK_H2_WINDOW);
}

static struct mk_h2 *new_h2_connection(struct mk_conn *c)
{
    struct mk_h2 *h2 = mk_mem_alloc(sizeof *h2);
    if (!h2)
        return NULL;
    *h2 = (struct mk_h2){.conn = c,
                         .table_max = TABLE_MAX,
                         .final_stream = MK_H2_STREAM_MAX,
                         .decoder = mk_hpack_decoder_new(),
                         .send_window = MK_H2_WINDOW,
                         .stream_window = MK_H2_WINDOW};
    if (!h2->decoder) {
        mk_mem_free(h2);
        return NULL;
    }
    mk_list_init(&h2->closed);
    mk_list_init(&h2->woken);
    for (unsigned u = 0; u < MK_URGENCIES; u++)
        mk_list_init(&h2->ready[u]);
    mk_h2_abuse_init(h2);
    mk_h2_stream_init_windows(h2);
    return h2;
}

/* Closes all streams, and frees the HTTP/2 state of the connection. */
static void free_h2_connection(struct mk_conn *c, enum mk_outcome outcome)
{
    struct mk_h2 *h2 = c->h2;
    mk_h2_stream_close_all(h2, outcome);
    mk_h2_stream_free_closed(h2);
    c->h2 = NULL;
    mk_buf_free(&h2->block);
    mk_hpack_decoder_free(h2->decoder);
    mk_mem_free(h2);
}

/* ---- Ending ---- */

/* Called when all output has been sent. */
static void linger_connection(struct mk_conn *c)
{
    free_h2_connection(c, MK_OUTCOME_OK);
    mk_conn_linger(c, false);
    while (mk_conn_discard_input(c))
        ;
}

/* ---- Scheduling ---- */

static void run_woken_streams(struct mk_h2 *h2)
{
    struct mk_list now;
    if (mk_list_empty(&h2->woken))
        return;
    /* Streams woken in the meantime run when the connection is resumed. */
    now = h2->woken;
    now.next->prev = now.prev->next = &now;
    mk_list_init(&h2->woken);
    while (!mk_list_empty(&now)) {
        struct mk_h2_stream *s = MK_LIST_ENTRY(now.next, struct mk_h2_stream, queue_link);
        mk_list_remove(&s->queue_link);
        mk_h2_request_run(s);
        mk_h2_stream_free_closed(h2);
    }
    if (!mk_list_empty(&h2->woken))
        mk_conn_resume(h2->conn);
}

/* Returns the timeout for the whole connection; streams have their own timeouts. */
static enum mk_conn_timeout connection_timeout(const struct mk_h2 *h2)
{
    struct mk_conn *c = h2->conn;
    mk_str in = mk_conn_input(c);
    bool preface = h2->remote.current == MK_H2_REMOTE_PREFACE;
    if (mk_h2_output_is_blocked(h2))
        return MK_TIMEOUT_RATE;
    if (in.len > 3 && !preface && in.p[3] == MK_H2_DATA)
        return MK_TIMEOUT_RATE;
    if (in.len || h2->block_stream || preface || h2->remote.current == MK_H2_REMOTE_SETTINGS)
        return MK_TIMEOUT_HEAD;
    if (h2->n_streams)
        return MK_TIMEOUT_NONE;
    return c->n_requests ? MK_TIMEOUT_IDLE : MK_TIMEOUT_HEAD;
}

static bool is_connection_over(const struct mk_h2 *h2)
{
    if (!mk_send_queue_is_empty(&h2->conn->out))
        return false;
    bool closes = h2->local.current == MK_H2_LOCAL_GOAWAY || h2->remote.current == MK_H2_REMOTE_GOAWAY ||
                  h2->remote.current == MK_H2_REMOTE_CLOSED;
    return h2->local.current == MK_H2_LOCAL_FAILED || (closes && !h2->n_streams);
}

static void set_connection_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    bool was_busy = c->h2->idle_at != c->n_requests; /* requests have arrived since it was last idle */
    if (timeout == MK_TIMEOUT_NONE)
        mk_conn_stop_timeout(c);
    else if (timeout != c->timeout || (timeout == MK_TIMEOUT_IDLE && was_busy))
        mk_conn_set_timeout(c, timeout);
    if (timeout == MK_TIMEOUT_IDLE)
        c->h2->idle_at = c->n_requests;
    if (timeout != MK_TIMEOUT_RATE)
        c->h2->pending_limits = NULL;
}

/* All streams share the socket: the client is too slow only if it violates the most lenient limit of its
 * streams. */
static const struct mk_request_limits *most_lenient_limits(const struct mk_conn *c)
{
    const struct mk_h2 *h2 = c->state.current == MK_CONN_HTTP2 ? c->h2 : NULL;
    const struct mk_request_limits *easiest = h2 ? h2->pending_limits : NULL;
    if (h2 && !h2->n_streams)
        return easiest ? mk_conn_rate_more_lenient(easiest, &c->manager->limits->request) : NULL;
    for (unsigned i = 0; h2 && i < MK_H2_BUCKETS; i++)
        for (const struct mk_h2_stream *s = h2->buckets[i]; s; s = s->next) {
            const struct mk_request_limits *own = mk_http_stream_limits(&s->d);
            easiest = easiest ? mk_conn_rate_more_lenient(easiest, own) : own;
        }
    return easiest;
}

/* Has the connection served its last request, or is the worker draining? */
static bool must_shut_down(const struct mk_h2 *h2)
{
    const struct mk_conn_manager *s = h2->conn->manager;
    return s->draining || !s->limits->keep_alive ||
           (s->limits->requests_max && h2->conn->n_requests >= s->limits->requests_max);
}

static void send_goaway_if_due(struct mk_h2 *h2)
{
    if (!must_shut_down(h2))
        return;
    mk_h2_write_goaway_warning(h2);
    /* A client that keeps sending requests after the first GOAWAY receives the final GOAWAY even if it has
     * not acknowledged the PING. */
    if (h2->local.current == MK_H2_LOCAL_WARNED &&
        h2->conn->n_requests - h2->warned_at >= h2->conn->manager->limits->h2.streams_max)
        mk_h2_write_goaway(h2);
}

static void finish_iteration(struct mk_conn *c)
{
    struct mk_h2 *h2 = c->h2;
    if (h2->local.current != MK_H2_LOCAL_FAILED) {
        mk_h2_stream_send_window_updates(h2);
        send_goaway_if_due(h2);
    }
    if (c->manager->out.len)
        (void)mk_h2_write_flush(h2);
    if (h2->local.current == MK_H2_LOCAL_FAILED)
        mk_h2_stream_close_all(h2, MK_OUTCOME_REJECTED);
    mk_h2_stream_free_closed(h2);
    if (h2->local.current == MK_H2_LOCAL_LOST)
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    else if (is_connection_over(h2))
        linger_connection(c);
    else
        set_connection_timeout(c, connection_timeout(h2));
}

static void end_serving_connection(struct mk_conn *c)
{
    if (c->state.current == MK_CONN_HTTP2)
        finish_iteration(c);
    mk_buf_clear(&c->manager->out);
    mk_conn_end_serving(c);
}

static void serve_connection(struct mk_conn *c)
{
    struct mk_h2 *h2 = c->h2;
    uint64_t *sent = &c->manager->counters->sent, before = *sent;
    mk_err e = mk_send_queue_flush(&c->out, &c->stream, sent);
    c->progress += *sent - before;
    if (e && e != -EAGAIN)
        mk_h2_state_move_local(h2, MK_H2_LOCAL_LOST);
    mk_h2_input_read(h2);
    if (mk_h2_state_is_alive(h2)) {
        run_woken_streams(h2);
        mk_h2_output_send(h2);
    }
    end_serving_connection(c);
}

void mk_h2_serve(struct mk_conn *c)
{
    struct mk_h2 *h2 = new_h2_connection(c);
    c->ops = &mk_h2_ops;
    mk_conn_set_state(c, MK_CONN_HTTP2);
    c->h2 = h2;
    if (!h2) {
        mk_log_warn(c->manager->log, "a connection was closed: out of memory");
        mk_conn_close(c, MK_OUTCOME_FAILED);
        mk_conn_end_serving(c);
        return;
    }
    send_settings(h2);
    serve_connection(c);
}

static void on_h2_conn_event(struct mk_conn *c)
{
    mk_conn_begin_serving(c);
    if (c->state.current == MK_CONN_HTTP2) {
        serve_connection(c);
        return;
    }
    if (c->state.current == MK_CONN_IDLE) {
        mk_h2_serve(c);
        return;
    }
    while (mk_conn_discard_input(c))
        ;
    mk_conn_end_serving(c);
}

/* ---- Timeouts and closing ---- */

static void on_h2_conn_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    if (c->state.current == MK_CONN_LINGER) {
        mk_conn_close(c, MK_OUTCOME_OK);
        return;
    }
    if (timeout == MK_TIMEOUT_RATE) {
        mk_counter_add(&c->manager->counters->h2_ended[MK_H2_SLOW], 1);
        mk_conn_reset(c, MK_OUTCOME_TIMEOUT);
        return;
    }
    mk_conn_begin_serving(c);
    mk_h2_write_goaway(c->h2);
    mk_h2_stream_close_all(c->h2, MK_OUTCOME_TIMEOUT);
    end_serving_connection(c);
}

static void on_h2_conn_close(struct mk_conn *c, enum mk_outcome outcome)
{
    if (c->state.current != MK_CONN_HTTP2 || !c->h2)
        return;
    free_h2_connection(c, outcome);
}

static void on_h2_conn_drain(struct mk_conn *c)
{
    if (c->state.current != MK_CONN_HTTP2)
        return;
    mk_conn_begin_serving(c);
    mk_h2_write_goaway_warning(c->h2);
    end_serving_connection(c);
}

/* True for HTTP/2, where the END_STREAM flag marks the end of every response: the client detects an
 * incomplete one. */
static bool may_close_without_reset(const struct mk_conn *c)
{
    return c->state.current == MK_CONN_HTTP2;
}

/* Calls HTTP/2 directly, unless the protocol has changed since mk_conn_resume(). */
static void run_resumed_conn(struct mk_loop_task *t)
{
    struct mk_conn *c = mk_conn_begin_resumed(t);
    if (MK_LIKELY(c->ops == &mk_h2_ops))
        on_h2_conn_event(c);
    else
        c->ops->advance(c);
}

const struct mk_conn_ops mk_h2_ops = {.advance = on_h2_conn_event,
                                      .run_resumed = run_resumed_conn,
                                      .on_timeout = on_h2_conn_timeout,
                                      .on_close = on_h2_conn_close,
                                      .limits = most_lenient_limits,
                                      .on_drain = on_h2_conn_drain,
                                      .may_close_without_reset = may_close_without_reset};

/* ---- Interface for the lower layers ---- */

/* Header blocks that are kept HPACK-encoded are valid on every connection, because nothing is ever added to a
 * client's dynamic table. */
static void encode_cached_head(struct mk_buf *out, const struct mk_header_block *whole, uint64_t size)
{
    mk_hpack_encode_status(out, 200);
    for (unsigned i = 0; i < whole->n; i++)
        mk_hpack_encode(out, whole->fields[i].name, whole->fields[i].value);
    mk_hpack_encode_num(out, MK_STR("Content-Length"), size);
}

/* HPACK-encodes the common headers. The date comes last, where mk_common_headers_update_date() renews it. */
static void encode_common_headers(struct mk_common_headers *s)
{
    struct mk_buf packed = mk_buf_fixed(s->packed, sizeof s->packed);
    mk_hpack_encode(&packed, MK_STR("Server"), mk_common_headers_server_name(s));
    s->packed_server_len = packed.len;
    mk_hpack_encode(&packed, MK_STR("Date"), mk_str_of(s->text + s->date_at, MK_DATE_LEN));
    s->packed_len = packed.len;
}

const struct mk_http2_module mk_h2_module = {
    .vendor = mk_hpack_library,
    .ops = &mk_h2_ops,
    .serve = mk_h2_serve,
    .pack_head = encode_cached_head,
    .encode_common_headers = encode_common_headers,
};
