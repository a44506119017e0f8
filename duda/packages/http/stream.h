/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange that a handler has begun. */
#ifndef DUDA_HTTP_STREAM_H
#define DUDA_HTTP_STREAM_H

#include <duda/wait.h>
#include <monkey/worker.h>

#include "client.h"

/* Content that is sent piece by piece. */
struct http_request_body {
    bool is_open;  /* there may be more */
    bool goes_on;  /* the server answers while it reads */
    uint64_t left; /* bytes that are to come; UINT64_MAX: as many as there will be */
    mk_str piece;  /* what is to be sent, in memory of the handler that waits */
    struct mk_timer timer;
    bool is_late;
    uint64_t begun; /* for the meter; 0: the exchange is counted */
};

struct duda_http_stream {
    struct duda_wait wait; /* of the function that is called; the first */
    struct duda_ctx *d;
    struct duda_http_client *http;
    struct mk_upstream_request *client;  /* NULL: it is over */
    struct duda_http_response *response; /* of content that is sent piece by piece */
    bool has_head;
    int error;       /* why it is over */
    const char *why; /* in words; NULL: the exchange knows */
    struct http_request_body output;
};

/* It ends with the handler. NULL: out of memory. */
struct duda_http_stream *http_stream_new(struct duda_ctx *d, struct duda_http_client *http);
/* Starts the exchange; the content is that of the request, or comes from `source`, if it is not NULL. */
int http_stream_start(struct duda_http_stream *stream, const struct duda_http_request *request,
                      const struct mk_upstream_request_body *source, int64_t length);
/* Reads the head if it is there: 0, -EAGAIN, or an error. */
int http_stream_poll_headers(struct duda_http_stream *stream, struct duda_http_response *response);
/* Waits for it. */
int http_stream_wait_headers(struct duda_http_stream *stream, struct duda_http_response *response);
/* Says in the response what happened where; `e`. The stream may be NULL. */
int http_stream_set_error(const struct duda_http_stream *stream, struct duda_ctx *d,
                          const struct duda_http_client *http, struct duda_http_response *response, int e);

#endif
