/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose bodies are sent as a whole, and redirects. */
#include <duda/request.h>
#include <errno.h>
#include <monkey/sized.h>

#include "common/package.h"
#include "decode.h"
#include "redirect.h"
#include "request.h"

enum { DISCARD_SIZE = 1024, DISCARD_READS = 16 };

/* Reads the body of a redirect, if it has arrived and is short, so that the connection can be used again. */
static void discard_body(struct duda_http_stream *stream)
{
    char buf[DISCARD_SIZE];
    for (unsigned i = 0; i < DISCARD_READS && mk_upstream_request_read(stream->client, buf, sizeof buf) > 0;
         i++)
        continue;
    http_stream_end_span(stream, 0);
    mk_upstream_request_free(stream->client);
    stream->client = NULL;
    http_decoder_free(stream->decoder);
    stream->decoder = NULL;
    stream->has_head = false;
}

/* Sends the request, and waits for the headers of the response. Follows redirects. */
static int run_request(struct duda_http_stream *stream, const struct duda_http_request *request,
                       struct duda_http_response *response)
{
    struct duda_http_request current = *request;
    int e = http_stream_write_json(stream, &current);
    while (!e) {
        e = http_stream_start(stream, &current, NULL, 0, response);
        e = e ? e : http_stream_wait_headers(stream, response);
        if (e || !request->max_redirects)
            return e;
        e = http_redirect_follow(stream, &current, response);
        if (e <= 0)
            return e;
        discard_body(stream);
        e = 0;
    }
    return e;
}

static int open_stream(struct duda_ctx *d, struct duda_http_client *http,
                       const struct duda_http_request *request, struct duda_http_response *response,
                       struct duda_http_stream **out)
{
    struct duda_http_stream *stream = http_stream_new(d, http, request->timeout_ms);
    int e = stream ? run_request(stream, request, response) : -ENOMEM;
    if (!e) {
        *out = stream;
        return 0;
    }
    http_stream_set_error(stream, d, http, response, e);
    if (stream) {
        http_stream_end_span(stream, e);
        duda_http_close(stream);
    }
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
