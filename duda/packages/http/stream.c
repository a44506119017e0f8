/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP exchanges over monkey/upstream.h: calls of handlers, which wait. */
#include <duda/memory.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/http.h>
#include <monkey/mem.h>
#include <monkey/sized.h>

#include "common/package.h"
#include "common/package_conn.h"
#include "stream.h"

enum { READ_SIZE = 16 * 1024 };

static void on_exchange_event(void *ctx)
{
    struct duda_http_stream *stream = ctx;
    duda_wait_wake(&stream->wait);
}

void duda_http_close(struct duda_http_stream *stream)
{
    struct http_request_body *o = &stream->output;
    mk_upstream_request_free(stream->client);
    stream->client = NULL;
    mk_timer_stop(&o->timer);
    if (o->began_us)
        package_meter_end(package_meter(duda_worker(stream->d), stream->http), o->began_us,
                          stream->error ? stream->error : -ECANCELED);
    o->began_us = 0;
}

static void free_stream(void *ctx)
{
    duda_http_close(ctx);
    mk_mem_free(ctx);
}

struct duda_http_stream *http_stream_new(struct duda_ctx *d, struct duda_http_client *http)
{
    struct duda_http_stream *stream = mk_mem_zalloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->d = d;
    stream->http = http;
    return duda_defer(d, free_stream, stream) ? NULL : stream;
}

/* ---- The request ---- */

_Static_assert(DUDA_HTTP_HEADERS_MAX == 64, "http_stream_start() names the limit in a message");

static mk_str request_method(const struct duda_http_request *request, bool has_content)
{
    return request->method.p ? request->method : has_content ? MK_STR("POST") : MK_STR("GET");
}

int http_stream_start(struct duda_http_stream *stream, const struct duda_http_request *request,
                      const struct mk_upstream_request_body *source, int64_t length)
{
    const struct duda_http_client *http = stream->http;
    size_t n = 0;
    mk_str method = request_method(request, request->body.p || source);
    if (request->n_headers > DUDA_HTTP_HEADERS_MAX) {
        stream->error_text = "the request has more than 64 headers";
        return -EMSGSIZE;
    }
    if (request->target.p && (!request->target.len || request->target.p[0] != '/'))
        return -EINVAL;
    struct mk_header *fields = duda_alloc(stream->d, (request->n_headers + 2) * sizeof *fields);
    if (!fields)
        return -ENOMEM;
    fields[n++] = (struct mk_header){.name = MK_STR("Host"), .value = http->host};
    if (request->content_type.p)
        fields[n++] = (struct mk_header){.name = MK_STR("Content-Type"), .value = request->content_type};
    for (size_t i = 0; i < request->n_headers; i++)
        fields[n++] = request->headers[i];
    const struct mk_upstream_request_options options = {
        .upstream = http->upstream,
        .protocol = MK_UPSTREAM_PROTOCOL_HTTP,
        .method = method,
        .target = request->target.p ? request->target : MK_STR("/"),
        .headers = fields,
        .n_headers = n,
        .body = request->body,
        .length = length,
        .body_source = source,
        .body_source_ctx = stream,
        .is_idempotent = mk_method_is_idempotent(mk_method_find(method)),
        .limits = {.max_tries = http->tries,
                   .response_timeout_ms = http->timeout_ms,
                   .read_timeout_ms = http->timeout_ms},
        .conn = {.server = -1},
    };
    stream->client = mk_upstream_request_start(duda_worker(stream->d), &options, on_exchange_event, stream);
    return stream->client ? 0 : -ENOMEM;
}

/* ---- The response ---- */

static const char *stream_error_reason(const struct duda_http_stream *stream, int e)
{
    const char *problem = stream && stream->client ? mk_upstream_request_error_text(stream->client) : "";
    if (stream && stream->error_text)
        return stream->error_text;
    if (e == -EMSGSIZE)
        return "the content is longer than MaxBodySize";
    return *problem && e != -ENOMEM ? problem : strerror(-e);
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

/* Skips interim responses (1xx). */
int http_stream_poll_headers(struct duda_http_stream *stream, struct duda_http_response *response)
{
    int e = 1;
    while (e > 0)
        e = mk_upstream_request_head(stream->client);
    if (e)
        return package_conn_map_errno(e);
    stream->has_head = true;
    return copy_response_headers(stream, response) ? 0 : -ENOMEM;
}

/* Waits for the response headers. */
static int wait_for_headers(struct duda_http_stream *stream, struct duda_http_response *response)
{
    int e = duda_wait_begin(stream->d, &stream->wait, NULL), head = 0;
    while (!e && (head = http_stream_poll_headers(stream, response)) == -EAGAIN)
        e = duda_wait_suspend(&stream->wait);
    duda_wait_end(&stream->wait);
    return e ? e : head;
}

static int open_stream(struct duda_ctx *d, struct duda_http_client *http,
                       const struct duda_http_request *request, struct duda_http_response *response,
                       struct duda_http_stream **out)
{
    struct duda_http_stream *stream = http_stream_new(d, http);
    int e = stream ? http_stream_start(stream, request, NULL, 0) : -ENOMEM;
    e = e ? e : wait_for_headers(stream, response);
    if (!e) {
        *out = stream;
        return 0;
    }
    http_stream_set_error(stream, d, http, response, e);
    if (stream)
        duda_http_close(stream);
    return e;
}

int duda_http_open_sized(struct duda_ctx *d, struct duda_http_client *http,
                         const struct duda_http_request *request, size_t request_size,
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
    int e = package_call_begin(&call, d, package_meter(duda_worker(d), http));
    return package_call_end(&call, e ? e : open_stream(d, http, request, response, out));
}

static ssize_t try_read_response(const struct duda_http_stream *stream, char *buf, size_t cap)
{
    if (!stream->client || !stream->has_head)
        return stream->error ? stream->error : -EINVAL;
    return mk_upstream_request_read(stream->client, buf, cap);
}

ssize_t duda_http_read(struct duda_ctx *d, struct duda_http_stream *stream, char *buf, size_t cap)
{
    int e = duda_wait_begin(d, &stream->wait, NULL);
    ssize_t n = 0;
    while (!e && (n = try_read_response(stream, buf, cap)) == -EAGAIN)
        e = duda_wait_suspend(&stream->wait);
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
    duda_http_close(stream);
    return e;
}

/* The metrics measure the complete response, including its body. */
int duda_http_fetch_sized(struct duda_ctx *d, struct duda_http_client *http,
                          const struct duda_http_request *request, size_t request_size,
                          struct duda_http_response *response)
{
    struct duda_http_request full;
    request = mk_sized_in(&full, sizeof full, request, request_size);
    if (!http) {
        *response = (struct duda_http_response){.error = MK_STR("there is no such section [HTTP_CLIENT]")};
        return -ENODEV;
    }
    struct duda_http_stream *stream = NULL;
    struct package_call call;
    *response = (struct duda_http_response){.server = http->name};
    int e = package_call_begin(&call, d, package_meter(duda_worker(d), http));
    e = e ? e : open_stream(d, http, request, response, &stream);
    return package_call_end(&call, e ? e : duda_http_read_all(d, stream, response));
}

mk_str duda_http_header(const struct duda_http_response *response, const char *name)
{
    for (size_t i = 0; i < response->n_headers; i++)
        if (mk_str_eq_nocase(response->headers[i].name, mk_str_from_c(name)))
            return response->headers[i].value;
    return MK_STR_NULL;
}
