/* SPDX-License-Identifier: Apache-2.0 */
#include "service/suspend.h"

#include <assert.h>
#include <errno.h>

#include "service/route_table.h"

int duda_suspend_until(struct duda_ctx *d, enum duda_suspend_reason reason)
{
    if (!d->fiber) /* called by a deferred function of a terminated handler */
        return d->cancel_error;
    if (!d->cancel_error && !(reason == DUDA_SUSPEND_FOR_WAKE && d->woken)) {
        d->waits_for = reason;
        duda_fiber_yield(d->fiber);
    } else if (d->cancel_error && ++d->n_refused_waits >= DUDA_REFUSALS_MAX) {
        duda_fiber_yield(d->fiber);
    }
    d->woken = false;
    return d->cancel_error;
}

int duda_suspend_cancel(struct duda_ctx *d, int error)
{
    if (!d->cancel_error)
        d->cancel_error = error;
    return d->cancel_error;
}

/* ---- Waits ---- */

/* Returns NULL if the wait is not active. */
static inline struct duda_wait **find_wait(struct duda_ctx *d, const struct duda_wait *w)
{
    struct duda_wait **at = &d->waits;
    while (*at && *at != w)
        at = &(*at)->outer;
    return *at ? at : NULL;
}

/* Returns whether an active wait is below `frame`, the frame of the running function. The stack there belongs
 * to functions that have returned. */
static inline bool has_wait_of_returned_function(struct duda_ctx *d, const void *frame)
{
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    const char *low = stack ? stack->low : NULL, *at = frame;
    if (!stack || at < low || at >= low + stack->size)
        return false;
    const struct duda_wait *w = d->waits;
    while (w && ((const char *)w < low || (const char *)w >= at))
        w = w->outer;
    return w;
}

#ifdef NDEBUG
#define ASSERT_NO_WAIT_OUTLIVES_ITS_FUNCTION(d) ((void)0)
#define KEEPS_FRAME
#else
#define ASSERT_NO_WAIT_OUTLIVES_ITS_FUNCTION(d)                                                              \
    assert(!has_wait_of_returned_function(d, __builtin_frame_address(0)) &&                                  \
           "a function returned during its wait")
#define KEEPS_FRAME __attribute__((noinline)) /* not inlined, so its frame is below those of its callers */
#endif

KEEPS_FRAME int duda_wait_begin(struct duda_ctx *d, struct duda_wait *w, void (*on_end)(struct duda_wait *w))
{
    ASSERT_NO_WAIT_OUTLIVES_ITS_FUNCTION(d);
    if (find_wait(d, w)) {
        assert(false && "duda_wait_end() is missing");
        return -EINVAL;
    }
    *w = (struct duda_wait){.d = d, .outer = d->waits, .on_end = on_end, .is_active = !d->cancel_error};
    if (d->cancel_error)
        return duda_suspend(d); /* may terminate the handler, so the wait is not linked yet */
    d->waits = w;
    return 0;
}

static void call_wait_cleanup(struct duda_wait *w)
{
    void (*on_end)(struct duda_wait *) = w->on_end;
    w->on_end = NULL;
    if (on_end)
        on_end(w);
}

/* Handles a caller that ignored that the wait failed to begin or has ended: cancels whatever the caller
 * started. */
static int reject_ended_wait(struct duda_wait *w)
{
    if (!w->d || !w->d->cancel_error)
        return -EINVAL;
    call_wait_cleanup(w);
    return duda_suspend(w->d);
}

KEEPS_FRAME int duda_wait_suspend(struct duda_wait *w)
{
    int e = 0;
    if (!w->is_active)
        return reject_ended_wait(w);
    ASSERT_NO_WAIT_OUTLIVES_ITS_FUNCTION(w->d);
    while (!w->is_woken && !e)
        e = duda_suspend(w->d);
    if (!w->is_woken) {
        duda_wait_end(w);
        return e;
    }
    w->is_woken = false;
    return 0;
}

int duda_suspend_until_drain(struct duda_wait *w)
{
    struct duda_ctx *d = w->d;
    if (!d->ends_on_drain)
        return duda_wait_suspend(w);
    d->drainable_wait = w;
    int e = d->worker_ctx->is_draining ? 0 : duda_wait_suspend(w);
    d->drainable_wait = NULL;
    return e ? e : d->worker_ctx->is_draining ? -ESHUTDOWN : 0;
}

void duda_wait_wake(struct duda_wait *w)
{
    if (!w->is_active)
        return;
    w->is_woken = true;
    duda_wake(w->d);
}

void duda_wait_end(struct duda_wait *w)
{
    if (!w->is_active)
        return;
    struct duda_ctx *d = w->d;
    assert(d->waits == w && "waits end in the reverse order of their begin");
    struct duda_wait **at = d->waits == w ? &d->waits : find_wait(d, w);
    if (at)
        *at = w->outer;
    w->is_active = false;
    call_wait_cleanup(w);
}

static void free_scratch_buf(struct duda_wait *w)
{
    mk_buf_free(&((struct duda_scratch_buf *)w)->buf);
}

int duda_scratch_buf_begin(struct duda_ctx *d, struct duda_scratch_buf *s, size_t max)
{
    s->buf = mk_buf_growing(max);
    return duda_wait_begin(d, &s->wait, free_scratch_buf);
}

void duda_suspend_end_waits(struct duda_ctx *d)
{
    for (struct duda_wait *w; (w = d->waits);) {
        d->waits = w->outer;
        w->is_active = false;
        call_wait_cleanup(w);
    }
}

void duda_suspend_log_leaked_waits(struct duda_ctx *d)
{
    const struct duda_route *route = d->route_entry->route;
    duda_log_plain(d, MK_LOG_ERROR, "%s() in %s:%d returned during a wait: duda_wait_end() is missing",
                   route->name, route->file, route->line);
    assert(!d->waits && "duda_wait_end() is missing");
    d->waits = NULL;
}

int duda_suspend(struct duda_ctx *d)
{
    return duda_suspend_until(d, DUDA_SUSPEND_FOR_WAKE);
}

void duda_wake(struct duda_ctx *d)
{
    d->woken = true;
    if (d->waits_for == DUDA_SUSPEND_NONE || !d->fiber)
        return;
    bool is_tunnel = d->output == DUDA_OUTPUT_TUNNEL;
    if (!is_tunnel)
        mk_request_resume(d->request);
    /* The server resumes a streamed response when the client has space: a cancelled handler does not wait for
     * that. */
    bool is_ours = is_tunnel || (d->output == DUDA_OUTPUT_STREAMED && d->cancel_error);
    if (is_ours && !d->is_queued) {
        d->is_queued = true;
        d->next_woken = d->worker_ctx->woken;
        d->worker_ctx->woken = d;
        mk_deferred_post(d->worker_ctx->deferred);
    }
}

int duda_cancelled(struct duda_ctx *d)
{
    return d->cancel_error;
}

static void on_deadline(struct mk_timer *t)
{
    struct duda_ctx *d = MK_CONTAINER(t, struct duda_ctx, deadline);
    (void)duda_suspend_cancel(d, -ETIMEDOUT);
    duda_wake(d);
}

int duda_deadline(struct duda_ctx *d, uint32_t ms)
{
    int e = d->request ? mk_request_set_handler_timeout(d->request, MK_FOREVER)
                       : 0; /* d->deadline applies instead */
    if (e)
        return e;
    mk_timer_stop(&d->deadline);
    mk_timer_init(&d->deadline, on_deadline);
    if (ms != MK_FOREVER)
        mk_timer_set(&d->deadline, d->worker_ctx->worker, ms);
    return 0;
}
