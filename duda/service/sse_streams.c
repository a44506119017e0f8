/* SPDX-License-Identifier: Apache-2.0 */
#include "service/sse_streams.h"

#include <errno.h>

/* The handler's waits return the same error as after a disconnect; the client sees a regular end of the
 * stream and reconnects. */
static void end_sse_stream(struct duda_ctx *d)
{
    d->is_drained = true;
    (void)duda_suspend_cancel(d, -ECANCELED);
    duda_wake(d);
}

void duda_sse_streams_add(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    d->next_events = worker_ctx->events;
    d->events_link = &worker_ctx->events;
    if (worker_ctx->events)
        worker_ctx->events->events_link = &d->next_events;
    worker_ctx->events = d;
    if (worker_ctx->is_draining)
        end_sse_stream(d);
}

void duda_sse_streams_remove(struct duda_ctx *d)
{
    if (!d->events_link)
        return;
    *d->events_link = d->next_events;
    if (d->next_events)
        d->next_events->events_link = d->events_link;
    d->events_link = NULL;
}

void duda_sse_streams_drain(struct duda_worker_ctx *worker_ctx)
{
    worker_ctx->is_draining = true;
    for (struct duda_ctx *d = worker_ctx->events; d; d = d->next_events)
        end_sse_stream(d);
}
