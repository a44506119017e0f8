/* SPDX-License-Identifier: Apache-2.0 */
/* A request body that a handler sends in pieces. The exchange reads from the handler: a writing handler
 * provides a piece, and waits until the exchange has consumed all of it. */
#include <duda/request.h>
#include <errno.h>
#include <monkey/sized.h>

#include "common/package.h"
#include "request.h"

static ssize_t read_request_body(void *ctx, char *buf, size_t cap)
{
    struct duda_http_stream *stream = ctx;
    struct http_request_body *o = &stream->output;
    mk_str part = mk_str_first(o->piece, cap);
    if (!part.len)
        return o->is_open ? -EAGAIN : 0;
    memcpy(buf, part.p, part.len);
    o->piece = mk_str_skip(o->piece, part.len);
    if (!o->piece.len)
        duda_wait_wake(&stream->wait);
    return (ssize_t)part.len;
}

static void on_write_timeout(struct mk_timer *t)
{
    struct duda_http_stream *stream = MK_CONTAINER(t, struct duda_http_stream, output.timer);
    stream->output.has_timed_out = true;
    duda_wait_wake(&stream->wait);
}

static int fail_stream(struct duda_http_stream *stream, int e, const char *message)
{
    if (message)
        stream->error_text = message;
    http_stream_set_error(stream, stream->d, stream->http, stream->response, e);
    stream->error = e;
    stream->output.piece = MK_STR_NULL;
    duda_http_close(stream);
    return e;
}

/* Records the metrics of a streamed request: the measured time ends when the response begins. */
static int record_request_metrics(struct duda_http_stream *stream, int e)
{
    package_meter_end(package_meter(duda_worker(stream->d), stream->http), stream->output.began_us, e);
    stream->output.began_us = 0;
    return e;
}

/* Returns 0 if the headers have arrived, -EAGAIN if they have not, or an error that ended the stream. */
static int poll_headers(struct duda_http_stream *stream)
{
    int e = stream->has_head ? 0 : http_stream_poll_headers(stream, stream->response);
    if (!e && stream->output.began_us)
        return record_request_metrics(stream, 0);
    return e && e != -EAGAIN ? fail_stream(stream, e, NULL) : e;
}

static int check_stream_is_open(const struct duda_http_stream *stream)
{
    return stream->error ? stream->error : stream->client && stream->response ? 0 : -EINVAL;
}

/* ---- Start ---- */

static int begin_request(struct duda_http_stream *stream, const struct duda_http_request *request,
                         int64_t length)
{
    static const struct mk_upstream_request_body source = {.source = {.read = read_request_body}};
    struct http_request_body *o = &stream->output;
    if (request->body.p || request->json.kind != DUDA_VALUE_NULL || length < MK_LENGTH_UNKNOWN ||
        request->max_redirects)
        return -EINVAL;
    o->is_open = true;
    o->is_full_duplex = request->full_duplex;
    o->left = length == MK_LENGTH_UNKNOWN ? UINT64_MAX : (uint64_t)length;
    mk_timer_init(&o->timer, on_write_timeout);
    int e = http_stream_start(stream, request, &source, length, stream->response);
    if (e)
        return e;
    e = http_stream_poll_headers(stream, stream->response); /* reports an invalid request at once */
    return e == -EAGAIN ? 0 : e;
}

static int open_exchange(struct duda_ctx *d, struct duda_http_client *http,
                         const struct duda_http_request *request, int64_t length,
                         struct duda_http_response *response, struct duda_http_stream **out)
{
    struct duda_http_stream *stream = http_stream_new(d, http, request->timeout_ms);
    if (!stream)
        return http_stream_set_error(NULL, d, http, response, -ENOMEM);
    stream->response = response;
    stream->output.began_us = package_meter_begin(package_meter(duda_worker(d), http));
    int e = begin_request(stream, request, length);
    if (e)
        return fail_stream(stream, e, NULL);
    *out = stream;
    return 0;
}

int duda_http_begin_sized(struct duda_ctx *d, struct duda_http_client *http,
                          const struct duda_http_request *request, size_t request_size, int64_t length,
                          struct duda_http_response *response, struct duda_http_stream **out)
{
    struct duda_http_request full;
    request = mk_sized_in(&full, sizeof full, request, request_size);
    if (!http) {
        *response = (struct duda_http_response){.error = MK_STR("there is no such section [HTTP_CLIENT]")};
        *out = NULL;
        return -ENODEV;
    }
    struct package_call call;
    *response = (struct duda_http_response){.server = http->name};
    *out = NULL;
    int e = package_call_begin(&call, d, NULL); /* record_request_metrics() counts the exchange */
    return package_call_end(&call, e ? e : open_exchange(d, http, request, length, response, out));
}

/* ---- Pieces ---- */

/* Waits for progress of the exchange. The exchange itself limits the time until the response begins; after
 * that, the timer limits each wait. */
static int wait_writable(struct duda_http_stream *stream)
{
    struct http_request_body *o = &stream->output;
    if (!stream->has_head)
        return http_stream_suspend(stream);
    o->has_timed_out = false;
    mk_timer_set(&o->timer, duda_worker(stream->d), stream->timeout_ms);
    int e = http_stream_suspend(stream);
    mk_timer_stop(&o->timer);
    return e ? e : o->has_timed_out && o->piece.len ? -ETIMEDOUT : 0;
}

/* Returns 0 if the server has consumed the whole piece, 1 if it accepts no more, or an error. */
static int send_piece(struct duda_http_stream *stream)
{
    struct http_request_body *o = &stream->output;
    mk_upstream_request_resume(stream->client);
    for (;;) {
        int e = poll_headers(stream);
        if (e == 0 && (!o->is_full_duplex || !mk_upstream_request_is_sending(stream->client)))
            return 1;
        if (e && e != -EAGAIN)
            return e;
        if (!o->piece.len)
            return 0;
        e = wait_writable(stream);
        if (e)
            return fail_stream(stream, e, o->has_timed_out ? "the server does not read the request" : NULL);
    }
}

static int write_piece(struct duda_http_stream *stream, mk_str piece)
{
    struct http_request_body *o = &stream->output;
    int e = check_stream_is_open(stream);
    if (e)
        return e;
    if (!o->is_open)
        return stream->has_head && !o->is_full_duplex ? 1 : -EINVAL;
    if (piece.len > o->left)
        return fail_stream(stream, -EINVAL, "the content is longer than its announced length");
    if (o->left != UINT64_MAX)
        o->left -= piece.len;
    o->piece = piece;
    e = send_piece(stream);
    o->piece = MK_STR_NULL;
    return e;
}

int duda_http_write(struct duda_ctx *d, struct duda_http_stream *stream, mk_str piece)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : write_piece(stream, piece);
    duda_wait_end(&stream->wait);
    return e;
}

static int wait_for_headers(struct duda_http_stream *stream)
{
    int e = check_stream_is_open(stream);
    while (!e && (e = poll_headers(stream)) == -EAGAIN) {
        e = http_stream_suspend(stream);
        if (e)
            return fail_stream(stream, e, NULL);
    }
    return e;
}

int duda_http_head(struct duda_ctx *d, struct duda_http_stream *stream)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : wait_for_headers(stream);
    duda_wait_end(&stream->wait);
    return e;
}

int duda_http_end(struct duda_ctx *d, struct duda_http_stream *stream)
{
    struct http_request_body *o = &stream->output;
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : check_stream_is_open(stream);
    if (!e && (!stream->has_head || o->is_full_duplex)) {
        o->is_open = false;
        mk_upstream_request_resume(stream->client);
    }
    e = e ? e : wait_for_headers(stream);
    duda_wait_end(&stream->wait);
    return e;
}
