/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/sse_stream.h"

#include <errno.h>
#include <monkey/sized.h>

#include "websocket/ws_queue.h"

enum { QUEUE_MAX = 64 << 10, KEEPALIVE_MS = 15 * 1000, EVENT_MAX = 16 << 20 };

struct mk_sse_stream {
    struct mk_timer timer;
    struct mk_list open; /* open streams, which the worker closes when it drains */
    struct mk_sse_stream_worker *worker;
    struct mk_request *request;
    const struct mk_sse_stream_options *options;
    void *ctx;
    struct mk_ws_queue queue;
    bool is_open;     /* the owner still uses the stream */
    bool is_ending;   /* closing: nothing more is queued */
    bool is_refusing; /* an event was rejected: on_writable() is due */
    bool has_sent;    /* data was queued since the timer was set */
};

/* ---- Body source ---- */

static size_t max_queued_bytes(const struct mk_sse_stream *s)
{
    return s->options->queue_max ? s->options->queue_max : QUEUE_MAX;
}

static void set_keepalive_timer(struct mk_sse_stream *s)
{
    uint32_t ms = s->options->keepalive_ms ? s->options->keepalive_ms : KEEPALIVE_MS;
    s->has_sent = false;
    if (ms != UINT32_MAX)
        mk_timer_set(&s->timer, s->worker->worker, ms);
}

static ssize_t read_events(void *ctx, char *buf, size_t cap)
{
    struct mk_sse_stream *s = ctx;
    size_t n = mk_ws_queue_read(&s->queue, buf, cap);
    if (s->is_refusing && !s->is_ending && s->queue.weight < max_queued_bytes(s) / 2) {
        s->is_refusing = false;
        if (s->options->ops->on_writable)
            s->options->ops->on_writable(s->ctx, s);
    }
    if (n)
        return (ssize_t)n;
    n = mk_ws_queue_read(&s->queue, buf, cap); /* data that on_writable() sent */
    return n ? (ssize_t)n : s->is_ending ? 0 : -EAGAIN;
}

static void on_request_end(void *ctx)
{
    struct mk_sse_stream *s = ctx;
    mk_timer_stop(&s->timer);
    mk_list_remove(&s->open);
    s->is_ending = true;
    if (s->is_open)
        s->options->ops->on_close(s->ctx, s);
    mk_ws_queue_clear(&s->queue);
}

static const struct mk_body_source_ops event_source = {.read = read_events, .close = on_request_end};

static int enqueue_text(struct mk_sse_stream *s, mk_str text)
{
    if (!mk_ws_queue_push(&s->queue, text, MK_STR("")))
        return -ENOMEM;
    s->has_sent = true;
    mk_request_resume(s->request);
    return 0;
}

/* Sends a comment to keep the connection alive, unless data is queued: if the client reads nothing, comments
 * would only pile up. */
static void on_keepalive_timer(struct mk_timer *t)
{
    struct mk_sse_stream *s = MK_CONTAINER(t, struct mk_sse_stream, timer);
    if (!s->has_sent && !s->is_ending && mk_ws_queue_is_empty(&s->queue))
        (void)enqueue_text(s, MK_STR(":\n\n"));
    set_keepalive_timer(s);
}

void mk_sse_stream_worker_init(struct mk_sse_stream_worker *w, struct mk_worker *worker)
{
    mk_list_init(&w->open);
    w->worker = worker;
}

void mk_sse_stream_worker_drain(struct mk_sse_stream_worker *w)
{
    MK_LIST_EACH_SAFE (at, &w->open) {
        mk_list_remove(at);
        mk_sse_stream_end(MK_LIST_ENTRY(at, struct mk_sse_stream, open));
    }
}

/* ---- Opening ---- */

static int reject_stream(struct mk_response *r, unsigned status, int e)
{
    mk_response_set_status(r, status);
    return e;
}

int mk_sse_stream_worker_open(struct mk_sse_stream_worker *w, struct mk_request *request,
                              struct mk_response *r, const struct mk_sse_stream_options *options, void *ctx,
                              struct mk_sse_stream **out)
{
    if (!options || !options->ops || !options->ops->on_close)
        return reject_stream(r, 500, -EINVAL);
    struct mk_sse_stream *s = mk_request_alloc(request, sizeof *s);
    if (!s)
        return reject_stream(r, 503, -ENOMEM);
    *s = (struct mk_sse_stream){.worker = w, .request = request, .options = options, .ctx = ctx};
    mk_timer_init(&s->timer, on_keepalive_timer);
    mk_list_init(&s->open);
    int e = mk_response_set_body_source(r, &event_source, s, MK_LENGTH_UNKNOWN);
    if (e)
        return reject_stream(r, 503, e);
    if (mk_request_set_handler_timeout(request, MK_FOREVER) || mk_response_begin_sse(r))
        return reject_stream(r, 503, -ENOMEM); /* on_request_end() follows when the handler rejects the
                                                * request */
    s->is_open = true;
    mk_list_add_last(&w->open, &s->open);
    set_keepalive_timer(s);
    *out = s;
    return 0;
}

/* ---- Owner API ---- */

struct mk_request *mk_sse_stream_request(const struct mk_sse_stream *s)
{
    return s->request;
}

mk_str mk_sse_stream_last_id(const struct mk_sse_stream *s)
{
    return mk_request_header(s->request, MK_STR("Last-Event-ID"));
}

size_t mk_sse_stream_queued(const struct mk_sse_stream *s)
{
    return s->queue.weight;
}

int mk_sse_stream_send_text(struct mk_sse_stream *s, mk_str text)
{
    if (s->is_ending)
        return -ESHUTDOWN;
    if (s->queue.weight < max_queued_bytes(s))
        return text.len ? enqueue_text(s, text) : 0;
    s->is_refusing = true;
    return -EAGAIN;
}

int mk_sse_stream_send_sized(struct mk_sse_stream *s, const struct mk_sse_event *e, size_t e_size)
{
    struct mk_sse_event full;
    e = mk_sized_in(&full, sizeof full, e, e_size);
    struct mk_buf text = mk_buf_growing(EVENT_MAX);
    int failed = mk_sse_write(&text, e);
    if (!failed)
        failed = mk_sse_stream_send_text(s, mk_buf_str(&text));
    mk_buf_free(&text);
    return failed;
}

void mk_sse_stream_end(struct mk_sse_stream *s)
{
    s->is_ending = true;
    mk_request_resume(s->request);
}
