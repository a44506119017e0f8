/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP exchanges over monkey/upstream.h: calls of handlers, which wait. */
#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/http.h>
#include <monkey/mem.h>
#include <stdio.h>

#include "common/package.h"
#include "common/package_conn.h"
#include "decode.h"
#include "stream.h"

enum { READ_SIZE = 16 * 1024 };

void duda_http_close(struct duda_http_stream *stream)
{
    struct http_request_body *o = &stream->output;
    http_stream_end_span(stream, stream->error);
    mk_upstream_request_free(stream->client);
    stream->client = NULL;
    http_decoder_free(stream->decoder);
    stream->decoder = NULL;
    mk_timer_stop(&o->timer);
    mk_timer_stop(&stream->deadline);
    if (o->began_us)
        package_meter_end(package_meter(duda_worker(stream->d), stream->http), o->began_us,
                          stream->error ? stream->error : -ECANCELED);
    o->began_us = 0;
}

static void free_stream(void *ctx)
{
    struct duda_http_stream *stream = ctx;
    duda_http_close(stream);
    mk_mem_free(stream->host);
    mk_mem_free(stream);
}

/* ---- The deadline ---- */

enum { ALREADY_EXPIRED = 1 };

static void on_deadline(struct mk_timer *t)
{
    struct duda_http_stream *stream = MK_CONTAINER(t, struct duda_http_stream, deadline);
    stream->deadline_ms = ALREADY_EXPIRED;
    duda_wait_wake(&stream->wait);
}

static void start_deadline(struct duda_http_stream *stream, uint32_t timeout_ms)
{
    stream->timeout_ms = timeout_ms ? timeout_ms : stream->http->timeout_ms;
    if (!timeout_ms)
        return;
    stream->deadline_ms = mk_clock_ms() + timeout_ms;
    mk_timer_set(&stream->deadline, duda_worker(stream->d), timeout_ms);
}

/* Returns 0, or -ETIMEDOUT if the request's timeout_ms has passed. Reads the clock, because a server that
 * sends without a pause keeps the timer from firing. */
static int check_deadline(struct duda_http_stream *stream)
{
    if (!stream->deadline_ms || mk_clock_ms() < stream->deadline_ms)
        return 0;
    stream->error_text = "the exchange was not complete within timeout_ms";
    return -ETIMEDOUT;
}

int http_stream_suspend(struct duda_http_stream *stream)
{
    int e = check_deadline(stream);
    return e ? e : duda_wait_suspend(&stream->wait);
}

struct duda_http_stream *http_stream_new(struct duda_ctx *d, struct duda_http_client *http,
                                         uint32_t timeout_ms)
{
    struct duda_http_stream *stream = mk_mem_zalloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->d = d;
    stream->http = http;
    mk_timer_init(&stream->deadline, on_deadline);
    if (duda_defer(d, free_stream, stream))
        return NULL;
    start_deadline(stream, timeout_ms);
    return stream;
}

/* ---- The request ---- */

/* ---- The response ---- */

static const char *stream_error_reason(const struct duda_http_stream *stream, int e)
{
    const char *problem = stream && stream->client ? mk_upstream_request_error_text(stream->client) : "";
    if (stream && stream->error_text)
        return stream->error_text;
    if (e == -EMSGSIZE)
        return "the content is longer than MaxBodySize";
    if (e == -EHOSTUNREACH && stream && stream->host)
        return "the name of the host does not resolve";
    if (e == -EPERM && stream && stream->host)
        return "its address is private or reserved, and not in AllowPrivate";
    return *problem && e != -ENOMEM ? problem : strerror(-e);
}

static void fail_span(const struct duda_http_stream *stream, int error, unsigned status)
{
    char type[16];
    snprintf(type, sizeof type, "%u", status);
    duda_span_add_text(stream->d, stream->span, "error.type",
                       !error                ? mk_str_from_c(type)
                       : error == -ETIMEDOUT ? MK_STR("timeout")
                       : error == -ECANCELED ? MK_STR("cancelled")
                                             : MK_STR("_OTHER"));
    duda_span_fail(stream->d, stream->span,
                   error ? mk_str_from_c(stream_error_reason(stream, error)) : MK_STR_NULL);
}

void http_stream_end_span(struct duda_http_stream *stream, int error)
{
    struct mk_span *span = stream->span;
    if (!span)
        return;
    unsigned status = stream->client && stream->has_head ? mk_upstream_request_status(stream->client) : 0;
    if (status)
        duda_span_add_int(stream->d, span, "http.response.status_code", status);
    if (error || status >= 400)
        fail_span(stream, error, status);
    span->ended_us = mk_clock_us();
    stream->span = NULL;
}

int http_stream_set_error(const struct duda_http_stream *stream, struct duda_ctx *d,
                          const struct duda_http_client *http, struct duda_http_response *response, int e)
{
    bool is_theirs = stream && stream->client && e != -EMSGSIZE;
    mk_str server = is_theirs ? mk_upstream_request_server_name(stream->client) : MK_STR_NULL;
    if (e == -ECANCELED)
        return e;
    response->error =
        duda_sprintf(d, server.p ? "[HTTP_CLIENT] %.*s, %.*s: %s" : "[HTTP_CLIENT] %.*s%.*s: %s",
                     MK_STR_ARG(http->name), MK_STR_ARG(server), stream_error_reason(stream, e));
    return duda_reason(d, e, "%.*s", MK_STR_ARG(response->error));
}

static bool copy_response_headers(struct duda_http_stream *stream, struct duda_http_response *response)
{
    mk_str name, value;
    size_t n = 0;
    while (mk_upstream_request_header_at(stream->client, n, &name, &value))
        n++;
    struct mk_header *fields = duda_alloc(stream->d, (n + 1) * sizeof *fields);
    if (!fields)
        return false;
    memset(fields, 0, (n + 1) * sizeof *fields);
    for (size_t i = 0; i < n && mk_upstream_request_header_at(stream->client, i, &name, &value); i++) {
        fields[i].name = duda_strdup(stream->d, name);
        fields[i].value = duda_strdup(stream->d, value);
        if (!fields[i].name.p || !fields[i].value.p)
            return false;
    }
    response->status = mk_upstream_request_status(stream->client);
    response->headers = fields;
    response->n_headers = n;
    return true;
}

/* Creates the decoder for a body with one known coding, and removes the header, which describes the encoded
 * body. Bodies with other codings remain encoded. */
static int start_decoder(struct duda_http_stream *stream, struct duda_http_response *response)
{
    const struct mk_header *headers = response->headers;
    mk_str coding = duda_http_header(response, "Content-Encoding");
    size_t n = 0;
    if (!stream->decompress || stream->is_head || !coding.p || !http_decoder_knows(coding))
        return 0;
    for (size_t i = 0; i < response->n_headers; i++) {
        bool is_coding = mk_str_eq_nocase(headers[i].name, MK_STR("Content-Encoding"));
        if (is_coding && headers[i].value.p != coding.p)
            return 0; /* several codings */
    }
    struct mk_header *kept = duda_alloc(stream->d, response->n_headers * sizeof *kept);
    stream->decoder = http_decoder_new(coding);
    if (!kept || !stream->decoder)
        return -ENOMEM;
    for (size_t i = 0; i < response->n_headers; i++)
        if (headers[i].value.p != coding.p)
            kept[n++] = headers[i];
    response->headers = kept;
    response->n_headers = n;
    return 0;
}

/* Skips interim responses (1xx). */
int http_stream_poll_headers(struct duda_http_stream *stream, struct duda_http_response *response)
{
    int e = check_deadline(stream);
    if (e)
        return e;
    e = 1;
    while (e > 0)
        e = mk_upstream_request_head(stream->client);
    if (e)
        return e == -EPERM && stream->host ? e : package_conn_map_errno(e);
    stream->has_head = true;
    return copy_response_headers(stream, response) ? start_decoder(stream, response) : -ENOMEM;
}

int http_stream_wait_headers(struct duda_http_stream *stream, struct duda_http_response *response)
{
    int e = duda_wait_begin(stream->d, &stream->wait, NULL), head = 0;
    while (!e && (head = http_stream_poll_headers(stream, response)) == -EAGAIN)
        e = http_stream_suspend(stream);
    duda_wait_end(&stream->wait);
    return e ? e : head;
}

static ssize_t read_encoded(void *ctx, char *buf, size_t cap)
{
    return mk_upstream_request_read(ctx, buf, cap);
}

static ssize_t try_read_response(struct duda_http_stream *stream, char *buf, size_t cap)
{
    if (!stream->client || !stream->has_head)
        return stream->error ? stream->error : -EINVAL;
    if (!stream->decoder)
        return mk_upstream_request_read(stream->client, buf, cap);
    ssize_t n = http_decoder_read(stream->decoder, read_encoded, stream->client, buf, cap);
    if (n != -EILSEQ)
        return n;
    stream->error_text = "the compressed body of the response is malformed";
    return -EPROTO;
}

ssize_t duda_http_read(struct duda_ctx *d, struct duda_http_stream *stream, char *buf, size_t cap)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    ssize_t n = 0;
    e = e ? e : check_deadline(stream);
    while (!e && (n = try_read_response(stream, buf, cap)) == -EAGAIN)
        e = http_stream_suspend(stream);
    duda_wait_end(&stream->wait);
    return e ? e : n;
}

/* Collects the whole body of a response. */
struct read_all_wait {
    struct duda_wait wait; /* must be first */
    struct mk_buf all;
};

static void free_collected_body(struct duda_wait *w)
{
    mk_buf_free(&((struct read_all_wait *)w)->all);
}

static int read_remaining_body(struct duda_ctx *d, struct duda_http_stream *stream, struct mk_buf *all)
{
    ssize_t n;
    do {
        if (!mk_buf_reserve(all, 1))
            return -EMSGSIZE;
        size_t space = all->cap - all->len;
        n = duda_http_read(d, stream, all->p + all->len, space < READ_SIZE ? space : READ_SIZE);
        all->len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    return (int)n;
}

int duda_http_read_all(struct duda_ctx *d, struct duda_http_stream *stream,
                       struct duda_http_response *response)
{
    size_t max = (size_t)stream->http->content_max;
    struct read_all_wait g = {.all = mk_buf_growing(max + 1)}; /* one extra byte detects an excess */
    int e = duda_wait_begin(d, &g.wait, free_collected_body);
    e = e ? e : read_remaining_body(d, stream, &g.all);
    if (!e && g.all.len > max)
        e = -EMSGSIZE;
    if (!e) {
        response->body = duda_strdup(d, mk_buf_str(&g.all));
        e = response->body.p ? 0 : -ENOMEM;
    }
    duda_wait_end(&g.wait);
    if (e)
        http_stream_set_error(stream, d, stream->http, response, e);
    http_stream_end_span(stream, e);
    duda_http_close(stream);
    return e;
}

mk_str duda_http_header(const struct duda_http_response *response, const char *name)
{
    for (size_t i = 0; i < response->n_headers; i++)
        if (mk_str_eq_nocase(response->headers[i].name, mk_str_from_c(name)))
            return response->headers[i].value;
    return MK_STR_NULL;
}
