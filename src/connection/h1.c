/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1.h"

#include "connection/conn_manager.h"
#include "connection/h1_input.h"
#include "connection/h1_output.h"
#include "connection/h1_request.h"
#include "connection/h1_state.h"
#include "connection/h1_tunnel.h"
#include "connection/http2.h"
#include "web/filter.h"

enum {
    DRAIN_MAX = 64 * 1024,                /* maximum unread body bytes that are read to keep the connection
                                             alive */
    DRAIN_CHUNKS_MAX = 1024 * 1024,       /* the same limit for chunked bodies */
    BATCH_MAX = MK_SEND_QUEUE_BUFFER / 2, /* maximum bytes of a batch of pipelined responses */
    AT_ONCE = 4096,                       /* a response body up to this size is sent without waiting for
                                           * acknowledgments */
};

/* ---- Waiting for a request ---- */

static bool wait_for_request_head(struct mk_conn *c)
{
    bool begun = mk_conn_input(c).len > 0;
    if (begun && c->state.current == MK_CONN_IDLE)
        mk_conn_set_state(c, MK_CONN_HEAD);
    /* A new connection must send its first request within the head timeout; between later requests, the idle
     * timeout applies. */
    mk_conn_set_timeout(c, begun || c->n_requests == 0 ? MK_TIMEOUT_HEAD : MK_TIMEOUT_IDLE);
    return false;
}

MK_COLD static bool on_client_eof(struct mk_conn *c)
{
    struct mk_conn_manager *s = c->manager;
    /* The batched responses must be sent first. */
    if (s->out.len &&
        mk_send_queue_write(&c->out, &c->stream, &s->out, false, &s->counters->sent) == -EAGAIN) {
        mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
        return false; /* EOF is reported again after these responses are sent */
    }
    if (mk_conn_input(c).len > 0 && mk_h1_request_new(c))
        c->h1->d.outcome = MK_OUTCOME_CLIENT_ABORTED; /* the access-log entry of the incomplete request shows
                                                       * this outcome */
    mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    return false;
}

/* Does the input start with the HTTP/2 preface of a client with prior knowledge (RFC 9113, section 3.3)? */
MK_COLD static bool is_h2_preface(const struct mk_conn *c, mk_str in)
{
    return c->manager->limits->h2.on && c->n_requests == 0 && !c->stream.tls &&
           mk_str_starts(MK_H2_PREFACE, mk_str_first(in, MK_H2_PREFACE.len)) && c->manager->http2;
}

enum head {
    HEAD_BEGUN,      /* a request has begun, possibly an invalid one */
    HEAD_INCOMPLETE, /* more input needed */
    HEAD_OVER,       /* the connection is closed, or has changed its protocol */
};

/* Parses a request head from the input. */
static enum head parse_request_head(struct mk_conn *c, mk_str in)
{
    struct mk_conn_manager *s = c->manager;
    struct mk_request_head head;
    head.fields.at = s->fields;
    int n = mk_request_head_parse(&head, in, c->seen, &s->limits->head);
    if (n > 0)
        return mk_h1_request_start(c, &head) ? HEAD_BEGUN : HEAD_OVER;
    if (n < 0 && is_h2_preface(c, in)) {
        c->ops = c->manager->http2->ops;
        return HEAD_OVER;
    }
    if (n < 0)
        return mk_h1_request_reject(c, (unsigned)-n) ? HEAD_BEGUN : HEAD_OVER;
    c->seen = (uint32_t)in.len;
    return HEAD_INCOMPLETE;
}

/* Reads a request head. True: a request has begun. */
static bool read_request_head(struct mk_conn *c)
{
    for (;;) {
        mk_str in = mk_conn_input(c);
        enum head head = in.len > c->seen ? parse_request_head(c, in) : HEAD_INCOMPLETE;
        if (head != HEAD_INCOMPLETE)
            return head == HEAD_BEGUN;
        ssize_t n = mk_stream_is_readable(&c->stream) ? mk_conn_fill_input(c) : -EAGAIN;
        if (n <= 0)
            return n == -EAGAIN ? wait_for_request_head(c) : on_client_eof(c);
    }
}

/* ---- Dispatch ---- */

/* An unread body must be read before the next request. If it is large or may never arrive, or the worker is
 * shutting down, the connection is closed instead, and the response says so. Chunked bodies are drained:
 * closing would discard a pipelined request. A body source may still read the body. */
static void decide_unread_body(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    bool by_source = mk_filter_unfiltered_body(&d->x->response.content)->source != NULL;
    if (mk_http_stream_needs_100_continue(d))
        (void)!mk_h1_input_send_100_continue(h);
    bool too_much = !by_source && h->left > DRAIN_MAX;
    if (d->input.current == MK_INPUT_AWAITS_CONTINUE || too_much || d->conn->manager->draining)
        mk_h1_state_close_after_response(h);
}

/* The head is sent first: the tunnel begins when the connection is resumed. */
MK_COLD static bool begin_tunnel(struct mk_conn *c)
{
    mk_h1_tunnel_start(c->h1);
    mk_conn_set_state(c, MK_CONN_TUNNEL);
    mk_conn_resume(c);
    return false;
}

static bool begin_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (!mk_http_stream_request_received(&h->d))
        decide_unread_body(h);
    mk_http_stream_allow_call(&h->d);
    mk_conn_set_state(c, MK_CONN_SEND);
    if (!mk_h1_output_head(h)) {
        mk_conn_close(c, h->d.outcome);
        return false;
    }
    if (MK_UNLIKELY(mk_http_stream_is_tunnel(&h->d)) && !mk_http_stream_response_written(&h->d))
        return begin_tunnel(c);
    return true;
}

MK_COLD static bool wait_for_handler(struct mk_conn *c)
{
    const struct mk_http_stream *d = &c->h1->d;
    if (d->awaits != MK_AWAITS_BODY)
        (void)mk_stream_check_end(&c->stream);
    if (mk_http_stream_is_client_gone(d))
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    else if (d->awaits != MK_AWAITS_NOTHING)
        mk_conn_set_timeout(c, mk_http_stream_timeout(d));
    return false;
}

static bool run_handlers(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    if (h->d.x->step == MK_DISPATCH_READY)
        return begin_response(c);
    if (!mk_h1_state_may_call_handler(h))
        return wait_for_handler(c);
    mk_http_stream_begin_call(&h->d);
    return mk_dispatch_run(h->d.x) ? begin_response(c) : wait_for_handler(c);
}

/* ---- The response ---- */

static void free_request(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    c->h1 = NULL;
    mk_conn_stop_timeout(c);
    c->rate.credit = 0;
    mk_http_stream_free(&h->d);
}

/* Shuts down the write side. The last bytes were held back to be sent along with the FIN; a plain close would
 * discard them if the client has sent more data. A TLS stream also sends close_notify, and may have to wait
 * until it is writable. False: it has to wait. */
static bool shutdown_write(struct mk_conn *c)
{
    c->stream.ops->shutdown(&c->stream);
    return !c->stream.shutdown_pending;
}

/* Can the client still be sending, or not have read all of our data? Closing now would send a reset, which
 * may destroy that data. */
static bool must_linger(const struct mk_conn *c)
{
    const struct mk_h1 *h = c->h1;
    bool may_follow = h->persistence != MK_H1_CLOSED_BY_CLIENT;
    return mk_conn_input(c).len > 0 || mk_stream_is_readable(&c->stream) ||
           !mk_http_stream_request_received(&h->d) || h->d.outcome ||
           ((may_follow || h->d.sent > AT_ONCE) && !mk_conn_is_half_closed(c));
}

static bool close_or_linger(struct mk_conn *c)
{
    bool lingers = must_linger(c), shut = c->h1->persistence == MK_H1_WRITE_SHUTDOWN;
    free_request(c);
    if (lingers) {
        mk_conn_linger(c, shut);
        return true;
    }
    if (!shut && !shutdown_write(c)) {
        mk_conn_linger(c, true);
        return true;
    }
    mk_conn_close(c, MK_OUTCOME_OK);
    return false;
}

static bool finish_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    mk_http_stream_record_request(&h->d, MK_OUTCOME_OK);
    if (h->persistence != MK_H1_PERSISTENT || h->left > DRAIN_MAX)
        return close_or_linger(c);
    if (!mk_http_stream_request_received(&h->d)) {
        h->d.content_max = h->d.received + (h->body == MK_BODY_CHUNKED ? DRAIN_CHUNKS_MAX : DRAIN_MAX);
        mk_conn_set_state(c, MK_CONN_DRAIN);
        return true;
    }
    free_request(c);
    mk_conn_set_state(c, MK_CONN_IDLE);
    return mk_conn_input(c).len > 0 || mk_stream_is_readable(&c->stream) || wait_for_request_head(c);
}

/* Can more responses be sent in the same write, because the client has pipelined its requests? */
static bool can_batch_responses(const struct mk_conn *c)
{
    return c->h1->persistence == MK_H1_PERSISTENT && mk_send_queue_is_empty(&c->out) &&
           mk_conn_input(c).len > 0 && c->manager->out.len < BATCH_MAX &&
           mk_http_stream_request_received(&c->h1->d);
}

static enum mk_h1_progress continue_sending(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    enum mk_h1_progress p = mk_send_queue_is_empty(&c->out) ? MK_H1_COMPLETE : mk_h1_output_flush(h);
    if (p != MK_H1_COMPLETE)
        return p;
    if (h->d.x->response.content.source && !mk_http_stream_response_written(&h->d) &&
        !mk_h1_state_may_call_handler(h))
        return MK_H1_BODY_NOT_READY;
    p = mk_h1_output_body(h);
    return p == MK_H1_COMPLETE && !can_batch_responses(c) ? mk_h1_output_flush(h) : p;
}

static bool send_response(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    switch (continue_sending(c)) {
    case MK_H1_COMPLETE:
        return finish_response(c);
    case MK_H1_SOCKET_FULL:
        mk_http_stream_allow_call(&h->d);
        mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
        return false;
    case MK_H1_BODY_NOT_READY:
        return wait_for_handler(c);
    case MK_H1_BROKEN:
        break;
    }
    bool incomplete = h->d.outcome == MK_OUTCOME_FAILED || mk_exchange_client_disconnected(h->d.x);
    if (incomplete && h->delimiter == MK_H1_BY_CLOSE)
        mk_conn_reset(c, h->d.outcome); /* a clean close would make the response look complete */
    else
        mk_conn_close(c, h->d.outcome);
    return false;
}

MK_COLD static bool run_tunnel(struct mk_conn *c)
{
    struct mk_h1 *h = c->h1;
    switch (mk_h1_tunnel_run(h)) {
    case MK_H1_TUNNEL_OPEN:
        break;
    case MK_H1_TUNNEL_OVER:
        mk_http_stream_record_request(&h->d, MK_OUTCOME_OK);
        return close_or_linger(c);
    case MK_H1_TUNNEL_BROKEN:
        mk_conn_reset(c, h->d.outcome); /* a clean close would look like the regular end of the tunnel */
        break;
    }
    return false;
}

/* ---- After the response ---- */

MK_COLD static bool drain_request_body(struct mk_conn *c)
{
    char waste[4096];
    ssize_t n = mk_h1_input_read_body(c->h1, waste, sizeof waste);
    if (n > 0)
        return true;
    if (n == -EAGAIN) {
        mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
        return false;
    }
    if (n < 0)
        return close_or_linger(c);
    free_request(c);
    mk_conn_set_state(c, MK_CONN_IDLE);
    return true;
}

/* A request passes through all states in one call if nothing blocks. True: call again. */
static bool run_conn_state(struct mk_conn *c)
{
    switch ((enum mk_conn_state)c->state.current) {
    case MK_CONN_IDLE:
    case MK_CONN_HEAD:
        if (!read_request_head(c))
            return false;
        /* fallthrough */
    case MK_CONN_DISPATCH:
        if (!run_handlers(c))
            return false;
        /* fallthrough */
    case MK_CONN_SEND:
        return send_response(c);
    case MK_CONN_DRAIN:
        return drain_request_body(c);
    case MK_CONN_LINGER:
        return mk_conn_discard_input(c);
    case MK_CONN_TUNNEL:
        return run_tunnel(c);
    case MK_CONN_TLS:
    case MK_CONN_HTTP2:
    case MK_CONN_DEAD:
    case MK_CONN_STATES:
        break;
    }
    return false;
}

/* Is the connection between requests? */
static bool is_between_requests(const struct mk_conn *c)
{
    return c->state.current == MK_CONN_IDLE || c->state.current == MK_CONN_HEAD;
}

/* Sends the batched responses before another connection is served. */
static void flush_batched_responses(struct mk_conn *c)
{
    struct mk_conn_manager *s = c->manager;
    if (s->out.len == 0)
        return;
    mk_err e = mk_send_queue_write(&c->out, &c->stream, &s->out, false, &s->counters->sent);
    if (e && e != -EAGAIN)
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    else if (e && is_between_requests(c))
        mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
}

/* Ends serving the connection. Shared buffers must not keep any of its data. */
static void finish_serving(struct mk_conn *c)
{
    if (c->state.current != MK_CONN_DEAD)
        flush_batched_responses(c);
    if (c->state.current == MK_CONN_DEAD)
        mk_buf_clear(&c->manager->out);
    c->manager->out.cap = MK_SEND_QUEUE_BUFFER;
    mk_conn_end_serving(c);
}

/* The socket did not accept the whole last batch: sends the rest before the next request. */
MK_COLD static void flush_queued_responses(struct mk_conn *c)
{
    uint64_t *sent = &c->manager->counters->sent, before = *sent;
    mk_err e = mk_send_queue_flush(&c->out, &c->stream, sent);
    c->progress += *sent - before;
    if (e && e != -EAGAIN)
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    else if (!e && is_between_requests(c))
        mk_conn_stop_timeout(c);
}

void mk_h1_serve(struct mk_conn *c)
{
    if (!mk_send_queue_is_empty(&c->out) && (is_between_requests(c) || c->state.current == MK_CONN_DISPATCH))
        flush_queued_responses(c);
    while (mk_send_queue_is_empty(&c->out) || !is_between_requests(c))
        if (!run_conn_state(c))
            break;
    if (MK_LIKELY(c->ops == &mk_h1_ops))
        finish_serving(c);
    else
        c->manager->http2->serve(c);
}

static void on_h1_conn_event(struct mk_conn *c)
{
    mk_conn_begin_serving(c);
    mk_h1_serve(c);
}

/* ---- Timeouts and closing ---- */

static void on_head_timeout(struct mk_conn *c)
{
    bool begun = c->state.current == MK_CONN_HEAD;
    if (!begun) {
        /* Browsers open connections in advance: a 408 sent now would be read as the response to their next
         * request. */
        mk_conn_close(c, MK_OUTCOME_TIMEOUT);
        return;
    }
    mk_conn_begin_serving(c);
    if (mk_h1_request_reject(c, 408))
        while (run_conn_state(c))
            ;
    finish_serving(c);
}

/* Handles a client (408) or a handler (504) that is too slow. */
static void on_body_or_handler_timeout(struct mk_conn *c, unsigned status)
{
    if (c->state.current != MK_CONN_DISPATCH) {
        mk_conn_reset(c, MK_OUTCOME_TIMEOUT);
        return;
    }
    mk_conn_begin_serving(c);
    c->h1->d.outcome = MK_OUTCOME_TIMEOUT;
    if (mk_h1_request_reject(c, status))
        while (run_conn_state(c))
            ;
    finish_serving(c);
}

static void on_h1_conn_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    switch (timeout) {
    case MK_TIMEOUT_HEAD:
        on_head_timeout(c);
        break;
    case MK_TIMEOUT_RATE:
        on_body_or_handler_timeout(c, 408);
        break;
    case MK_TIMEOUT_HANDLER:
        on_body_or_handler_timeout(c, 504);
        break;
    case MK_TIMEOUT_TUNNEL:
        if (mk_send_queue_is_empty(&c->out))
            mk_conn_close(c, MK_OUTCOME_TIMEOUT);
        else
            mk_conn_reset(c, MK_OUTCOME_TIMEOUT);
        break;
    case MK_TIMEOUT_IDLE:
    case MK_TIMEOUT_LINGER:
    case MK_TIMEOUT_ACCEPT_HOOK:
    case MK_TIMEOUT_NONE:
        mk_conn_close(c, MK_OUTCOME_OK);
        break;
    }
}

static void on_h1_conn_close(struct mk_conn *c, enum mk_outcome outcome)
{
    if (!c->h1)
        return;
    mk_http_stream_record_request(&c->h1->d, outcome);
    free_request(c);
}

static const struct mk_request_limits *h1_request_limits(const struct mk_conn *c)
{
    return c->h1 ? mk_http_stream_limits(&c->h1->d) : NULL;
}

static bool may_close_without_reset(const struct mk_conn *c)
{
    return c->h1 && c->h1->body == MK_BODY_TUNNEL;
}

/* Calls HTTP/1 directly, unless the protocol has changed since mk_conn_resume(). */
static void run_resumed_conn(struct mk_loop_task *t)
{
    struct mk_conn *c = mk_conn_begin_resumed(t);
    if (MK_LIKELY(c->ops == &mk_h1_ops))
        on_h1_conn_event(c);
    else
        c->ops->advance(c);
}

const struct mk_conn_ops mk_h1_ops = {.advance = on_h1_conn_event,
                                      .run_resumed = run_resumed_conn,
                                      .on_timeout = on_h1_conn_timeout,
                                      .on_close = on_h1_conn_close,
                                      .limits = h1_request_limits,
                                      .may_close_without_reset = may_close_without_reset};
