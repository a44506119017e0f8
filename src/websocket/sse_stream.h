/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events. */
#ifndef MK_WEBSOCKET_SSE_STREAM_H
#define MK_WEBSOCKET_SSE_STREAM_H

#include <monkey/sse_stream.h>
#include <monkey/timer.h>

#include "base/list.h"

/* State of all event streams of a worker. */
struct mk_sse_stream_worker {
    struct mk_worker *worker;
    struct mk_list open; /* streams */
};

void mk_sse_stream_worker_init(struct mk_sse_stream_worker *w, struct mk_worker *worker);
/* Closes all streams after their queued data is sent: the worker is shutting down. */
void mk_sse_stream_worker_drain(struct mk_sse_stream_worker *w);

/* Implements mk_sse_stream_open(). */
int mk_sse_stream_worker_open(struct mk_sse_stream_worker *w, struct mk_request *request,
                              struct mk_response *r, const struct mk_sse_stream_options *options, void *ctx,
                              struct mk_sse_stream **out);

#endif
