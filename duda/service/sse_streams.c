/* SPDX-License-Identifier: Apache-2.0 */
#include "service/sse_streams.h"

#include <errno.h>

#include "service/memory.h"
#include "service/suspend.h"

enum { RETRY_MIN_MS = 500, RETRY_SPREAD_MS = 3000, RETRY_DEV_MS = 100 };

/* ---- Keep-alive comments ---- */

/* duda_sse_send() writes whole events, so a comment fits between any two calls. A stream with unsent output
 * needs no comment: TCP detects that its client is gone. */
static void send_keep_alive(struct duda_ctx *d)
{
    bool is_idle = d->fiber && !d->cancel_error && d->output == DUDA_OUTPUT_STREAMED &&
                   d->waits_for == DUDA_SUSPEND_FOR_WAKE && !d->out.len;
    if (!is_idle)
        return;
    mk_buf_add(&d->out, MK_STR(":\n\n"));
    mk_request_resume(d->request);
}

/* Returns half of the interval of an event stream; 0: the stream gets no comments. */
static uint32_t check_interval(const struct duda_ctx *d)
{
    uint32_t ms = d->sse_keep_alive_ms ? d->sse_keep_alive_ms : d->worker_ctx->sse_keep_alive_ms;
    return !d->is_event_stream || ms == MK_FOREVER ? 0 : ms / 2;
}

/* Checks a stream twice per interval: a stream that has sent nothing since the last check gets a comment. */
static void check_stream(struct duda_ctx *d, uint64_t now, uint32_t interval)
{
    if (now < d->sse_check_at)
        return;
    if (!d->sse_was_active)
        send_keep_alive(d);
    d->sse_was_active = false;
    d->sse_check_at = now + interval;
}

static void on_keep_alive_timer(struct mk_timer *t);

static void set_keep_alive_timer(struct duda_worker_ctx *worker_ctx, uint64_t now, uint64_t at)
{
    if (worker_ctx->sse_timer_at && at >= worker_ctx->sse_timer_at)
        return;
    if (!worker_ctx->sse_timer_at)
        mk_timer_init(&worker_ctx->sse_timer, on_keep_alive_timer);
    worker_ctx->sse_timer_at = at;
    mk_timer_set(&worker_ctx->sse_timer, worker_ctx->worker, (uint32_t)(at - now));
}

static void on_keep_alive_timer(struct mk_timer *t)
{
    struct duda_worker_ctx *worker_ctx = MK_CONTAINER(t, struct duda_worker_ctx, sse_timer);
    uint64_t now = mk_worker_now_ms(worker_ctx->worker), first = 0;
    for (struct duda_ctx *d = worker_ctx->drain_listeners; d; d = d->next_drain_listener) {
        uint32_t interval = check_interval(d);
        if (!interval)
            continue;
        check_stream(d, now, interval);
        first = !first || d->sse_check_at < first ? d->sse_check_at : first;
    }
    worker_ctx->sse_timer_at = 0;
    if (first)
        set_keep_alive_timer(worker_ctx, now, first);
}

/* A new stream is first checked when the timer is due, even if that is early: streams with equal intervals
 * are then always checked together, and the timer runs rarely. */
static void schedule_check(struct duda_ctx *d)
{
    const struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    uint64_t now = mk_worker_now_ms(worker_ctx->worker);
    uint32_t interval = check_interval(d);
    if (!interval)
        return;
    d->sse_check_at = now + interval;
    if (worker_ctx->sse_timer_at && worker_ctx->sse_timer_at < d->sse_check_at)
        d->sse_check_at = worker_ctx->sse_timer_at;
    set_keep_alive_timer(d->worker_ctx, now, d->sse_check_at);
}

void duda_sse_set_keep_alive(struct duda_ctx *d, uint32_t interval_ms)
{
    d->sse_keep_alive_ms = interval_ms;
    schedule_check(d);
}

/* ---- Draining ---- */

/* Spreads the reconnections of the clients. Under `monkey run`, a page shows the new version at once. */
static unsigned reconnection_delay(const struct duda_ctx *d)
{
    uint16_t random;
    if (duda_memory_is_dev_mode(d->worker_ctx))
        return RETRY_DEV_MS;
    mk_random(&random, sizeof random);
    return RETRY_MIN_MS + (unsigned)random % RETRY_SPREAD_MS;
}

/* Keeps the delay that the service has chosen. */
static void append_retry(struct duda_ctx *d)
{
    if (d->sse_has_retry || d->output != DUDA_OUTPUT_STREAMED || !d->out.max)
        return;
    mk_buf_addf(&d->out, "retry: %u\n\n", reconnection_delay(d));
}

/* Every wait of the handler fails; the client sees a regular end of the stream and reconnects. */
static void end_sse_stream(struct duda_ctx *d)
{
    if (d->cancel_error)
        return;
    (void)duda_suspend_cancel(d, -ESHUTDOWN);
    append_retry(d);
    duda_wake(d);
}

static void notify_drain_listener(struct duda_ctx *d)
{
    if (d->is_event_stream)
        end_sse_stream(d);
    else if (d->drainable_wait)
        duda_wait_wake(d->drainable_wait);
}

static void add_drain_listener(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    if (d->drain_listener_link)
        return;
    d->next_drain_listener = worker_ctx->drain_listeners;
    d->drain_listener_link = &worker_ctx->drain_listeners;
    if (worker_ctx->drain_listeners)
        worker_ctx->drain_listeners->drain_listener_link = &d->next_drain_listener;
    worker_ctx->drain_listeners = d;
}

void duda_sse_streams_add(struct duda_ctx *d)
{
    d->is_event_stream = true;
    add_drain_listener(d);
    schedule_check(d);
    if (d->worker_ctx->is_draining)
        end_sse_stream(d);
}

void duda_sse_streams_remove(struct duda_ctx *d)
{
    if (!d->drain_listener_link)
        return;
    *d->drain_listener_link = d->next_drain_listener;
    if (d->next_drain_listener)
        d->next_drain_listener->drain_listener_link = d->drain_listener_link;
    d->drain_listener_link = NULL;
}

void duda_sse_streams_drain(struct duda_worker_ctx *worker_ctx)
{
    worker_ctx->is_draining = true;
    for (struct duda_ctx *d = worker_ctx->drain_listeners; d; d = d->next_drain_listener)
        notify_drain_listener(d);
}

bool duda_is_draining(struct duda_ctx *d)
{
    return d->worker_ctx->is_draining;
}

void duda_end_on_drain(struct duda_ctx *d)
{
    d->ends_on_drain = true;
    add_drain_listener(d);
}
