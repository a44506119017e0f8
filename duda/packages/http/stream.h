/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP exchange started by a handler. */
#ifndef DUDA_HTTP_STREAM_H
#define DUDA_HTTP_STREAM_H

#include <duda/span.h>
#include <duda/wait.h>
#include <monkey/worker.h>

#include "client.h"

/* A request body that is sent in pieces. */
struct http_request_body {
    bool is_open;        /* more pieces may follow */
    bool is_full_duplex; /* the server may respond before it has read the whole body */
    uint64_t left;       /* bytes to come; UINT64_MAX: unknown length */
    mk_str piece;        /* bytes to send, in the memory of the waiting handler */
    struct mk_timer timer;
    bool has_timed_out;
    uint64_t began_us; /* start time, for metrics; 0: already counted */
};

struct duda_http_stream {
    struct duda_wait wait; /* wait of the active call; must be first */
    struct duda_ctx *d;
    struct duda_http_client *http;
    struct mk_upstream_request *client;  /* NULL: the exchange has ended */
    struct duda_http_response *response; /* set if the handler sends the request body in pieces */
    bool has_head;
    int error;              /* reason why the exchange ended */
    const char *error_text; /* message for `error`; NULL: `client` has the message */
    uint32_t timeout_ms;    /* limit of each wait; by default, that of the section */
    uint64_t deadline_ms;   /* end of the exchange on the clock of mk_clock_ms(); 0: none */
    struct mk_timer deadline;
    unsigned n_redirects;
    struct http_decoder *decoder; /* NULL: the body is not decoded */
    bool decompress;              /* the handler wants the body decoded */
    bool is_head;                 /* the request is HEAD, whose response has no body */
    char *host;                   /* a host of AllowHosts; NULL: the request goes to Server */
    struct http_request_body output;
    struct mk_span *span; /* of the exchange; NULL: the trace is not recorded */
};

/* Creates a stream that ends with the handler. Returns NULL if out of memory. */
struct duda_http_stream *http_stream_new(struct duda_ctx *d, struct duda_http_client *http,
                                         uint32_t timeout_ms);
/* Ends the span of the exchange. `error`: why it failed, a negative errno value; 0: it did not. */
void http_stream_end_span(struct duda_http_stream *stream, int error);
/* The method of the request. `is_streamed`: its body is sent in pieces. */
mk_str http_stream_method(const struct duda_http_request *request, bool is_streamed);
/* Reads the response headers if they have arrived. Returns 0, -EAGAIN, or an error. */
int http_stream_poll_headers(struct duda_http_stream *stream, struct duda_http_response *response);
/* Waits for the response headers. */
int http_stream_wait_headers(struct duda_http_stream *stream, struct duda_http_response *response);
/* Like duda_wait_suspend() for the wait of the stream, but ends at the deadline with -ETIMEDOUT. */
int http_stream_suspend(struct duda_http_stream *stream);
/* Stores the error and the server in the response, and returns `e`. The stream may be NULL. */
int http_stream_set_error(const struct duda_http_stream *stream, struct duda_ctx *d,
                          const struct duda_http_client *http, struct duda_http_response *response, int e);

#endif
