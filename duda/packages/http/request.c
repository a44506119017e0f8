/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <duda/memory.h>
#include <duda/request.h>
#include <duda/span.h>
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/http.h>

#include "decode.h"
#include "target.h"

static void on_exchange_event(void *ctx)
{
    struct duda_http_stream *stream = ctx;
    duda_wait_wake(&stream->wait);
}

static bool has_header(const struct duda_http_request *request, mk_str name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (mk_str_eq_nocase(request->headers[i].name, name))
            return true;
    return false;
}

_Static_assert(DUDA_HTTP_HEADERS_MAX == 64, "http_stream_start() names the limit in a message");

mk_str http_stream_method(const struct duda_http_request *request, bool is_streamed)
{
    if (request->method.p)
        return request->method;
    return request->body.p || is_streamed ? MK_STR("POST") : MK_STR("GET");
}

int http_stream_write_json(struct duda_http_stream *stream, struct duda_http_request *request)
{
    if (request->json.kind == DUDA_VALUE_NULL)
        return 0;
    if (request->body.p) {
        stream->error_text = "the request has both body and json";
        return -EINVAL;
    }
    struct mk_buf text = mk_buf_growing(SIZE_MAX / 2); /* like `body`, without a limit */
    duda_json_write(&text, &request->json);
    request->body = text.failed ? MK_STR_NULL : duda_strdup(stream->d, mk_buf_str(&text));
    mk_buf_free(&text);
    if (!request->content_type.p && !has_header(request, MK_STR("Content-Type")))
        request->content_type = MK_STR("application/json");
    return request->body.p ? 0 : -ENOMEM;
}

/* `host` may end in a port. */
static void add_server(const struct duda_http_stream *stream, struct mk_span *span, mk_str host)
{
    uint64_t port;
    size_t colon = mk_str_find_last(host, ':');
    if (colon != MK_STR_NONE && mk_num_parse(mk_str_skip(host, colon + 1), &port)) {
        host = mk_str_first(host, colon);
        duda_span_add_int(stream->d, span, "server.port", (int64_t)port);
    }
    duda_span_add_text(stream->d, span, "server.address", host);
}

/* Begins the span of the exchange, if the spans of the handler's request are recorded. */
static void begin_span(struct duda_http_stream *stream, mk_str method, const struct http_target *target)
{
    struct mk_span *parent = duda_span_current(stream->d);
    if (!parent)
        return;
    struct mk_span *span = mk_request_add_span(duda_request(stream->d), MK_SPAN_CLIENT, parent);
    stream->span = span;
    if (!span)
        return;
    duda_span_add_text(stream->d, span, "http.request.method", method);
    if (span->attributes) /* has copied the text */
        span->name = span->attributes->text;
    add_server(stream, span, target->host);
    if (stream->n_redirects)
        duda_span_add_int(stream->d, span, "http.request.resend_count", stream->n_redirects);
}

/* Adds traceparent and tracestate, if the handler's request has a trace. Returns the number of headers. */
static size_t add_trace_headers(const struct duda_http_stream *stream, struct mk_header *fields)
{
    const struct mk_request *request = duda_request(stream->d);
    const struct mk_trace *trace = request ? mk_request_trace(request) : NULL;
    char *text = trace ? duda_alloc(stream->d, MK_TRACEPARENT_SIZE) : NULL;
    if (!text)
        return 0;
    (void)mk_request_format_traceparent(request, stream->span ? stream->span->span_id : NULL, text);
    fields[0] =
        (struct mk_header){.name = MK_STR("traceparent"), .value = mk_str_of(text, MK_TRACEPARENT_SIZE)};
    fields[1] = (struct mk_header){.name = MK_STR("tracestate"), .value = trace->state};
    return trace->state.len ? 2 : 1;
}

int http_stream_start(struct duda_http_stream *stream, const struct duda_http_request *request,
                      const struct mk_upstream_request_body *source, int64_t length,
                      struct duda_http_response *response)
{
    const struct duda_http_client *http = stream->http;
    struct http_target target;
    size_t n = 0;
    mk_str method = http_stream_method(request, source);
    if (request->n_headers > DUDA_HTTP_HEADERS_MAX) {
        stream->error_text = "the request has more than 64 headers";
        return -EMSGSIZE;
    }
    int e = http_target_find(stream, request, &target);
    if (e)
        return e;
    response->url = target.url;
    struct mk_header *fields = duda_alloc(stream->d, (request->n_headers + 6) * sizeof *fields);
    if (!fields)
        return -ENOMEM;
    fields[n++] = (struct mk_header){.name = MK_STR("Host"), .value = target.host};
    if (request->content_type.p)
        fields[n++] = (struct mk_header){.name = MK_STR("Content-Type"), .value = request->content_type};
    if (http->sends_request_id && !has_header(request, MK_STR("X-Request-Id")))
        fields[n++] = (struct mk_header){.name = MK_STR("X-Request-Id"), .value = duda_request_id(stream->d)};
    begin_span(stream, method, &target);
    if (http->sends_trace && !has_header(request, MK_STR("traceparent")))
        n += add_trace_headers(stream, fields + n);
    if (request->decompress && http_decoder_codings().p && !has_header(request, MK_STR("Accept-Encoding")))
        fields[n++] = (struct mk_header){.name = MK_STR("Accept-Encoding"), .value = http_decoder_codings()};
    stream->decompress = request->decompress;
    stream->is_head = mk_str_eq(method, MK_STR("HEAD"));
    for (size_t i = 0; i < request->n_headers; i++)
        fields[n++] = request->headers[i];
    const struct mk_upstream_request_options options = {
        .upstream = target.upstream,
        .protocol = MK_UPSTREAM_PROTOCOL_HTTP,
        .method = method,
        .target = target.target,
        .headers = fields,
        .n_headers = n,
        .body = request->body,
        .length = length,
        .body_source = source,
        .body_source_ctx = stream,
        .is_idempotent = mk_method_is_idempotent(mk_method_find(method)),
        .limits = {.max_tries = http->tries,
                   .response_timeout_ms = stream->timeout_ms,
                   .read_timeout_ms = stream->timeout_ms},
        .conn = {.server = -1, .host = target.dynamic_host, .port = target.dynamic_port},
    };
    stream->client = mk_upstream_request_start(duda_worker(stream->d), &options, on_exchange_event, stream);
    return stream->client ? 0 : -ENOMEM;
}
