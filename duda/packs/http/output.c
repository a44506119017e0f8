/* SPDX-License-Identifier: Apache-2.0 */
/* Content that a handler sends piece by piece. The exchange pulls it: a handler that writes lays a piece
 * ready, and waits until all of it was taken. */
#include <duda/asked.h>
#include <errno.h>

#include "sections.h"
#include "stream.h"

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct duda_http_stream *stream = ctx;
    struct http_output *o = &stream->output;
    mk_str part = mk_str_first(o->piece, cap);
    if (!part.len)
        return o->is_open ? -EAGAIN : 0;
    memcpy(room, part.p, part.len);
    o->piece = mk_str_skip(o->piece, part.len);
    if (!o->piece.len)
        duda_wait_wake(&stream->wait);
    return (ssize_t)part.len;
}

static void on_late(struct mk_timer *t)
{
    struct duda_http_stream *stream = MK_CONTAINER(t, struct duda_http_stream, output.timer);
    stream->output.is_late = true;
    duda_wait_wake(&stream->wait);
}

static int fail(struct duda_http_stream *stream, int e, const char *why)
{
    stream->why = why;
    http_stream_explain(stream, stream->d, stream->http, stream->response, e);
    stream->error = e;
    stream->output.piece = MK_ABSENT;
    duda_http_close(stream);
    return e;
}

/* It is counted until the response begins. */
static int count(struct duda_http_stream *stream, int e)
{
    pack_meter_end(pack_meter(duda_worker(stream->d), stream->http), stream->output.begun, e);
    stream->output.begun = 0;
    return e;
}

/* 0: the head is there; -EAGAIN, or an error, by which the stream has ended. */
static int look(struct duda_http_stream *stream)
{
    int e = stream->has_head ? 0 : http_stream_look(stream, stream->response);
    if (!e && stream->output.begun)
        return count(stream, 0);
    return e && e != -EAGAIN ? fail(stream, e, NULL) : e;
}

static int check(const struct duda_http_stream *stream)
{
    return stream->error ? stream->error : stream->client && stream->response ? 0 : -EINVAL;
}

/* ---- Its beginning ---- */

static int begin(struct duda_http_stream *stream, const struct duda_http_request *request, int64_t length)
{
    static const struct mk_upstream_request_body source = {.source = {.pull = pull}};
    struct http_output *o = &stream->output;
    if (request->content.p || length < MK_LENGTH_UNKNOWN)
        return -EINVAL;
    o->is_open = true;
    o->goes_on = request->both_ways;
    o->left = length == MK_LENGTH_UNKNOWN ? UINT64_MAX : (uint64_t)length;
    mk_timer_init(&o->timer, on_late);
    int e = http_stream_start(stream, request, &source, length);
    if (e)
        return e;
    e = http_stream_look(stream, stream->response); /* a request that is none fails at once */
    return e == -EAGAIN ? 0 : e;
}

static int begin_exchange(struct duda *d, struct duda_http *http, const struct duda_http_request *request,
                          int64_t length, struct duda_http_response *response, struct duda_http_stream **out)
{
    struct duda_http_stream *stream = http_stream_new(d, http);
    if (!stream)
        return http_stream_explain(NULL, d, http, response, -ENOMEM);
    stream->response = response;
    stream->output.begun = pack_meter_begin(pack_meter(duda_worker(d), http));
    int e = begin(stream, request, length);
    if (e)
        return fail(stream, e, NULL);
    *out = stream;
    return 0;
}

int duda_http_begin(struct duda *d, struct duda_http *http, const struct duda_http_request *request,
                    int64_t length, struct duda_http_response *response, struct duda_http_stream **out)
{
    if (!http) {
        *response = (struct duda_http_response){.problem = MK_STR("there is no such [HTTP_CLIENT]")};
        *out = NULL;
        return -ENODEV;
    }
    struct pack_call call;
    *response = (struct duda_http_response){.from = http->name};
    *out = NULL;
    int e = pack_call_begin(&call, d, NULL); /* the exchange is counted, until its response begins */
    return pack_call_end(&call, e ? e : begin_exchange(d, http, request, length, response, out));
}

/* ---- Pieces ---- */

/* Once the response has begun, the clock of the exchange runs for that. */
static int wait_for_room(struct duda_http_stream *stream)
{
    struct http_output *o = &stream->output;
    if (!stream->has_head)
        return duda_wait_suspend(&stream->wait);
    o->is_late = false;
    mk_timer_set(&o->timer, duda_worker(stream->d), stream->http->timeout_ms);
    int e = duda_wait_suspend(&stream->wait);
    mk_timer_stop(&o->timer);
    return e ? e : o->is_late && o->piece.len ? -ETIMEDOUT : 0;
}

/* 0: all of it was taken; 1: the server wants no more. */
static int send_piece(struct duda_http_stream *stream)
{
    struct http_output *o = &stream->output;
    mk_upstream_request_resume(stream->client);
    for (;;) {
        int e = look(stream);
        if (e == 0 && (!o->goes_on || !mk_upstream_request_is_sending(stream->client)))
            return 1;
        if (e && e != -EAGAIN)
            return e;
        if (!o->piece.len)
            return 0;
        e = wait_for_room(stream);
        if (e)
            return fail(stream, e, o->is_late ? "the server does not read the request" : NULL);
    }
}

static int write_piece(struct duda_http_stream *stream, mk_str piece)
{
    struct http_output *o = &stream->output;
    int e = check(stream);
    if (e)
        return e;
    if (!o->is_open)
        return stream->has_head && !o->goes_on ? 1 : -EINVAL;
    if (piece.len > o->left)
        return fail(stream, -EINVAL, "the content is longer than its length");
    if (o->left != UINT64_MAX)
        o->left -= piece.len;
    o->piece = piece;
    e = send_piece(stream);
    o->piece = MK_ABSENT;
    return e;
}

int duda_http_write(struct duda *d, struct duda_http_stream *stream, mk_str piece)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : write_piece(stream, piece);
    duda_wait_end(&stream->wait);
    return e;
}

static int wait_for_head(struct duda_http_stream *stream)
{
    int e = check(stream);
    while (!e && (e = look(stream)) == -EAGAIN) {
        e = duda_wait_suspend(&stream->wait);
        if (e)
            return fail(stream, e, NULL);
    }
    return e;
}

int duda_http_head(struct duda *d, struct duda_http_stream *stream)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : wait_for_head(stream);
    duda_wait_end(&stream->wait);
    return e;
}

int duda_http_end(struct duda *d, struct duda_http_stream *stream)
{
    struct http_output *o = &stream->output;
    int e = duda_wait_begin(d, &stream->wait, NULL);
    e = e ? e : check(stream);
    if (!e && (!stream->has_head || o->goes_on)) {
        o->is_open = false;
        mk_upstream_request_resume(stream->client);
    }
    e = e ? e : wait_for_head(stream);
    duda_wait_end(&stream->wait);
    return e;
}
