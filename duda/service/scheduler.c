/* SPDX-License-Identifier: Apache-2.0 */
#include "service/scheduler.h"

#include <duda/middleware.h>
#include <errno.h>
#include <monkey/clock.h>

#include "service/error_handlers.h"
#include "service/extras.h"
#include "service/memory.h"
#include "service/memory_limit.h"
#include "service/response.h"
#include "service/result.h"
#include "service/route_table.h"
#include "service/span.h"
#include "service/sse_streams.h"
#include "service/stall_detector.h"
#include "service/suspend.h"
#include "service/terminated.h"
#include "service/worker_ctx.h"

enum {
    STACK = 64 << 10,
    SPARE_MAX = 16 << 10,
    ERROR_HANDLERS_MS = 5000, /* deadline of all error handlers of a request: see duda/error.h */
};

/* ---- Stacks ---- */

_Static_assert(DUDA_STACK_POOL_SIZE_MAX == DUDA_STACK_MAX,
               "the public limit of stack sizes is that of the pool");

static struct duda_stack_pool *stack_pool_for(struct duda_worker_ctx *worker_ctx, size_t size)
{
    size_t i = 0;
    while (i + 1 < MK_LEN(worker_ctx->stacks) && ((size_t)DUDA_STACK_POOL_SIZE_MIN << i) < size)
        i++;
    if (!worker_ctx->stacks[i])
        worker_ctx->stacks[i] = duda_stack_pool_new((size_t)DUDA_STACK_POOL_SIZE_MIN << i);
    return worker_ctx->stacks[i];
}

static int check_requirement(struct duda_ctx *d, const struct duda_route *r)
{
    bool allows = r->predicate(d);
    return d->cancel_error ? d->cancel_error : allows ? DUDA_NEXT : (int)r->status;
}

/* Returns DUDA_NEXT if the handler shall run. A DUDA_AROUND() function may already have run the handler with
 * duda_next(); the result is then that of the function. */
static int run_before_middleware(struct duda_ctx *d)
{
    const struct duda_route_entry *entry = d->route_entry;
    int result = DUDA_NEXT;
    while (d->n_middleware < entry->n_before && result == DUDA_NEXT && !d->session_error) {
        d->middleware = d->result_route = entry->before[d->n_middleware++];
        result = d->middleware->kind == DUDA_IS_REQUIRE ? check_requirement(d, d->middleware)
                                                        : d->middleware->fn(d);
    }
    return d->session_error ? d->session_error : result;
}

static void log_late_header(struct duda_ctx *d)
{
    const struct duda_route *r = d->middleware;
    duda_log(d, MK_LOG_WARN,
             "%s() in %s:%d: the header comes too late: the response has started (check "
             "duda_response_has_started(), or set the header before the handler runs)",
             r->name, r->file, r->line);
}

/* Returns the result of a DUDA_AROUND() function. If the function only failed to change a response that has
 * started, the result of the handler stays, so that the client gets the rest of the response. */
static int result_of_around(struct duda_ctx *d, int result)
{
    if (result == -EALREADY && duda_response_has_started(d)) {
        if (d->result == DUDA_HANDLED || (d->result >= 0 && d->result < 400))
            log_late_header(d);
        return d->result;
    }
    if (result != d->result && result != 0)
        d->result_route = d->middleware;
    return result;
}

static void run_after_middleware(struct duda_ctx *d)
{
    for (const struct duda_middleware *s = d->route_entry->after; s; s = s->outer) {
        d->middleware = s->entry;
        if (s->entry->fn(d) == -EALREADY && duda_response_has_started(d) && !d->cancel_error)
            log_late_header(d);
    }
}

/* Inlined into both callers, so that a handler without middleware costs no additional call. */
static inline __attribute__((always_inline)) int run_middleware_and_handler(struct duda_ctx *d)
{
    const struct duda_route *route = d->route_entry->route;
    if (d->route_entry->n_before) {
        int result = run_before_middleware(d);
        bool is_over = d->n_middleware > d->route_entry->n_before;
        d->n_middleware = (uint8_t)(d->route_entry->n_before + 1);
        if (is_over)
            return result_of_around(d, result);
        if (result != DUDA_NEXT)
            return result;
        d->middleware = NULL;
    }
    d->result_route = route;
    return route->fn(d);
}

int duda_next(struct duda_ctx *d)
{
    const struct duda_route *self = d->middleware;
    if (!self || self->kind != DUDA_IS_AROUND || d->n_middleware > d->route_entry->n_before) {
        duda_log_handler(d, MK_LOG_ERROR,
                         "duda_next() was called twice, or outside of a DUDA_AROUND() function");
        return -EALREADY;
    }
    d->result = run_middleware_and_handler(d);
    d->middleware = self;
    return d->result;
}

const void *duda_route_data(struct duda_ctx *d)
{
    return d->route_entry->route->data;
}

const void *duda_middleware_data(struct duda_ctx *d)
{
    return d->middleware ? d->middleware->data : NULL;
}

static void handler_fiber_main(void *arg)
{
    struct duda_ctx *d = arg;
    const struct duda_route *route = d->result_route = d->route_entry->route;
    int result = route->deadline_ms ? duda_deadline(d, route->deadline_ms) : 0;
    d->result = result ? result : run_middleware_and_handler(d);
    if (d->route_entry->after)
        run_after_middleware(d);
    duda_memory_run_cleanups(d);
}

/* ---- End of a handler ---- */

static void end_fiber(struct duda_ctx *d)
{
    if (d->fiber)
        duda_fiber_free(d->fiber);
    d->fiber = NULL;
    if (d->span)
        duda_span_end_handler(d);
    mk_timer_stop(&d->deadline);
}

static bool resume_fiber(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    /* The running handler, whose action ended the request of `d` and thereby resumes `d`; NULL: none. */
    struct duda_ctx *outer = worker_ctx->runs;
    worker_ctx->runs = d;
    duda_crash_slot_set_running(worker_ctx->crash_slot, worker_ctx->crash_table, d->route_entry->route_slot);
    if (!outer)
        duda_stall_detector_enter(worker_ctx->stall_detector);
    bool returned = duda_fiber_resume(d->fiber);
    if (!outer && duda_stall_detector_leave(worker_ctx->stall_detector))
        duda_worker_ctx_log_crash(worker_ctx);
    duda_crash_slot_set_running(worker_ctx->crash_slot, worker_ctx->crash_table,
                                outer ? outer->route_entry->route_slot : NULL);
    worker_ctx->runs = outer;
    return returned;
}

static void resume_handler(struct duda_ctx *d)
{
    d->woken = false;
    d->waits_for = DUDA_SUSPEND_NONE;
    bool returned = resume_fiber(d);
    if (returned) {
        if (d->waits) {
            duda_suspend_log_leaked_waits(d);
            duda_terminated_keep_stack(d);
        }
        end_fiber(d);
        if ((d->result || d->session_error || d->form_error ||
             d->result_route != d->route_entry->route) && /* a plain success needs no check and no report */
            !duda_ctx_runs_error_handlers(d))
            duda_result_validate(d);
    } else if (d->n_refused_waits >= DUDA_REFUSALS_MAX) {
        duda_terminate(d);
    }
}

static bool remove_from_list(struct duda_ctx **list, struct duda_ctx *d)
{
    while (*list && *list != d)
        list = &(*list)->next_woken;
    bool is_there = *list != NULL;
    if (is_there)
        *list = d->next_woken;
    return is_there;
}

DUDA_COLD static void remove_from_wake_queue(struct duda_ctx *d)
{
    (void)(remove_from_list(&d->worker_ctx->woken, d) || remove_from_list(&d->worker_ctx->due, d));
    d->is_queued = false;
}

/* Keeps the output buffer for the next handler, unless it is too large or there is a spare one already. */
static void recycle_output_buf(struct duda_ctx *d)
{
    struct mk_buf *spare = &d->worker_ctx->spare;
    if (spare->p || d->out.cap > SPARE_MAX) {
        mk_buf_free(&d->out);
        return;
    }
    spare->p = d->out.p;
    spare->cap = d->out.cap;
    spare->max = d->out.max; /* makes mk_buf_free() free it: 0 would mean a fixed buffer */
}

static uint64_t *find_route_cells(struct duda_worker_ctx *worker_ctx, uint32_t series)
{
    struct duda_route_cells *entry = &worker_ctx->route_cells[series % DUDA_ROUTE_CELLS];
    if (entry->series != series) {
        entry->cells = mk_worker_cells(worker_ctx->worker, series);
        entry->series = entry->cells ? series : 0;
    }
    return entry->cells;
}

static void count_route_request(struct duda_ctx *d)
{
    bool cancelled = d->cancel_error == -ECANCELED,
         failed = d->request ? mk_response_status(d->response) >= 500 : d->result < 0;
    if (d->route_entry->series && d->began_us)
        mk_route_stats_record(find_route_cells(d->worker_ctx, d->route_entry->series),
                              mk_clock_us() - d->began_us, failed && !cancelled, cancelled);
}

/* Frees the handler. The tunnel of its request may live on. */
static void free_handler(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    void (*on_over)(void *ctx, int result) = d->on_task_end;
    void *ctx = d->task_end_ctx;
    int result = d->result;
    if (d->is_queued)
        remove_from_wake_queue(d);
    if (d->drain_listener_link)
        duda_sse_streams_remove(d);
    count_route_request(d);
    recycle_output_buf(d);
    if (d->ctx_ref) {
        if (!duda_ctx_runs_error_handlers(d)) /* other handlers may have set the data of the request */
            mk_request_set_data(d->request, NULL);
        d->ctx_ref->d = NULL;
    }
    if (d->extras)
        duda_extras_free(d);
    if (d->terminated) {
        duda_terminated_add(d);
    } else {
        duda_memory_free_chunks(d);
        duda_memory_release_block(worker_ctx, d);
    }
    if (on_over)
        on_over(ctx, result);
}

void duda_scheduler_cancel(struct duda_ctx *d)
{
    if (d->fiber)
        (void)duda_suspend_cancel(d, -ECANCELED);
    while (d->fiber)
        resume_handler(d);
    free_handler(d);
}

/* The request has ended, but its memory still exists: end the handler now. */
void duda_scheduler_on_request_end(void *data)
{
    const struct duda_ctx_ref *ctx_ref = data;
    if (ctx_ref->d)
        duda_scheduler_cancel(ctx_ref->d);
}

/* ---- Handlers that no request event resumes ---- */

static bool can_resume(struct duda_ctx *d)
{
    return d->woken || d->waits_for == DUDA_SUSPEND_FOR_INPUT ||
           (d->waits_for == DUDA_SUSPEND_FOR_OUTPUT && !d->out.len);
}

static void resume_if_ready(struct duda_ctx *d)
{
    if (!d->fiber || d->waits_for == DUDA_SUSPEND_NONE || !can_resume(d))
        return;
    resume_handler(d);
    /* If the handler has returned, the server still reads its output, unless that was a tunnel. */
    if (!d->fiber && d->output == DUDA_OUTPUT_TUNNEL)
        free_handler(d);
}

/* Resumes the woken handlers. Handlers woken during this function run at the end of the next loop
 * iteration. */
static void resume_woken_handlers(void *ctx)
{
    struct duda_worker_ctx *worker_ctx = ctx;
    worker_ctx->due = worker_ctx->woken;
    worker_ctx->woken = NULL;
    while (worker_ctx->due) {
        struct duda_ctx *d = worker_ctx->due;
        worker_ctx->due = d->next_woken;
        d->is_queued = false;
        resume_if_ready(d);
    }
}

int duda_scheduler_init(struct duda_worker_ctx *worker_ctx)
{
    worker_ctx->resume_handler = resume_if_ready;
    worker_ctx->deferred = mk_deferred_new(worker_ctx->worker, resume_woken_handlers, worker_ctx);
    return worker_ctx->deferred ? 0 : -ENOMEM;
}

void duda_scheduler_fini(struct duda_worker_ctx *worker_ctx)
{
    mk_deferred_free(worker_ctx->deferred);
}

static inline int create_fiber(struct duda_ctx *d, void (*run)(void *d))
{
    struct duda_stack_pool *stacks =
        stack_pool_for(d->worker_ctx, d->route_entry->route->stack ? d->route_entry->route->stack : STACK);
    d->fiber = stacks ? duda_fiber_new(stacks, run, d) : NULL;
    if (!d->fiber)
        return -ENOMEM;
    d->woken = true;
    return 0;
}

int duda_scheduler_create_fiber(struct duda_ctx *d)
{
    int e = create_fiber(d, handler_fiber_main);
    if (!e)
        d->began_us = mk_clock_us();
    return e;
}

/* ---- The response ---- */

static enum mk_verdict send_error_status(struct duda_ctx *d, unsigned status)
{
    if (d->result > 0) /* duda_result_validate() has logged failures */
        duda_result_log_source(d);
    if (status == 401 && d->result < 0)
        duda_result_add_www_authenticate(d);
    (void)mk_response_set_status(d->response, status);
    return MK_ERROR;
}

/* Logs at most once per second, because clients must not fill the log. */
static void log_out_of_memory(struct duda_ctx *d)
{
    const struct duda_route *route = d->route_entry->route;
    char limit[64];
    int64_t now = mk_request_time(d->request);
    duda_memory_check_later(d->worker_ctx);
    if (d->worker_ctx->out_of_memory_logged_at == now)
        return;
    d->worker_ctx->out_of_memory_logged_at = now;
    duda_memory_limit_format(limit, sizeof limit);
    duda_log(d, MK_LOG_ERROR, "%s() in %s:%d: out of memory%s%s", route->name, route->file, route->line,
             *limit ? ": " : "", limit);
}

static void set_default_content_type(struct duda_ctx *d)
{
    (void)mk_response_add_default(d->response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
}

/* Applies the preconditions and ranges of the request to a complete response. */
DUDA_COLD static enum mk_verdict finish_conditional_response(struct duda_ctx *d)
{
    int e = mk_response_make_conditional(d->request, d->response, d->conditional);
    return e < 0 ? send_error_status(d, 503) : e ? MK_ERROR : MK_DONE;
}

static enum mk_verdict finish_response(struct duda_ctx *d)
{
    int result = d->result;
    if (d->output == DUDA_OUTPUT_TUNNEL) {
        free_handler(d);
        return MK_DONE;
    }
    if (result < 0 && d->is_refused)
        return MK_ERROR;
    if (result == -ENOMEM)
        log_out_of_memory(d);
    if (result < 0)
        return send_error_status(d, duda_result_errno_to_status(result));
    if (result >= 400 && result != DUDA_HANDLED)
        return send_error_status(d, (unsigned)result);
    if (result >= 200 && result != DUDA_HANDLED)
        (void)mk_response_set_status(d->response, (unsigned)result);
    if (d->output == DUDA_OUTPUT_NONE) {
        if (result == 0 && !duda_response_is_set(d))
            (void)mk_response_set_status(d->response, 204);
        return d->conditional ? finish_conditional_response(d) : MK_DONE;
    }
    set_default_content_type(d);
    /* Not copied: freed at the end of the request. */
    if (mk_response_set_body_nocopy(d->response, mk_buf_str(&d->out)))
        return send_error_status(d, 503);
    return d->conditional ? finish_conditional_response(d) : MK_DONE;
}

/* ---- Streamed responses ---- */

static size_t take_output(struct duda_ctx *d, char *buf, size_t cap)
{
    size_t left = d->out.len - d->out_at, n = left < cap ? left : cap;
    memcpy(buf, d->out.p + d->out_at, n);
    d->out_at += n;
    if (n == left) {
        mk_buf_clear(&d->out);
        d->out_at = 0;
    }
    return n;
}

/* When the client disconnects, cancels a handler that waits for something other than the client. */
static void watch_client_disconnect(struct duda_ctx *d)
{
    if (d->waits_for == DUDA_SUSPEND_FOR_WAKE)
        mk_request_cancel_on_disconnect(d->request);
}

static ssize_t read_handler_output(void *ctx, char *buf, size_t cap)
{
    struct duda_ctx *d = ctx;
    for (bool tried = false;; tried = true) {
        if (d->out.len)
            return (ssize_t)take_output(d, buf, cap);
        if (!d->fiber)
            return d->cancel_error == -ESHUTDOWN ? 0 /* the draining worker ended the stream */
                   : d->result < 0               ? d->result
                   : d->result >= 400 && d->result != DUDA_HANDLED ? -EPIPE
                                                                   : 0;
        watch_client_disconnect(d);
        if (!can_resume(d) || (tried && d->waits_for == DUDA_SUSPEND_FOR_INPUT && !d->woken))
            return -EAGAIN; /* input is checked once per call: more input triggers the next call */
        resume_handler(d);
    }
}

static const struct mk_body_source_ops source = {.read = read_handler_output};

static enum mk_verdict begin_streaming_response(struct duda_ctx *d)
{
    set_default_content_type(d);
    return mk_response_set_body_source(d->response, &source, d, MK_LENGTH_UNKNOWN) ? MK_ERROR : MK_DONE;
}

enum mk_verdict duda_scheduler_run(struct duda_ctx *d)
{
    if (can_resume(d))
        resume_handler(d);
    if (!d->fiber)
        return finish_response(d);
    if (d->output == DUDA_OUTPUT_TUNNEL)
        return MK_DONE;
    if (d->output == DUDA_OUTPUT_STREAMED)
        return begin_streaming_response(d);
    watch_client_disconnect(d);
    return MK_WAIT;
}

/* ---- Error handlers ---- */

static void error_fiber_main(void *arg)
{
    struct duda_ctx *d = arg;
    d->result = duda_error_handlers_run(d);
    duda_memory_run_cleanups(d);
}

DUDA_COLD int duda_scheduler_start_error_handlers(struct duda_ctx *d)
{
    if (mk_request_data(d->request) == d)
        mk_request_set_data(d->request, NULL);
    mk_buf_clear(&d->out);
    d->out_at = 0;
    d->output = DUDA_OUTPUT_NONE;
    d->cancel_error = d->session_error = d->form_error = 0;
    d->n_refused_waits = 0;
    d->waits_for = DUDA_SUSPEND_FOR_WAKE;
    d->is_refused = false;
    int e = create_fiber(d, error_fiber_main);
    return e ? e : duda_deadline(d, ERROR_HANDLERS_MS);
}

static enum mk_verdict finish_error_response(struct duda_ctx *d)
{
    int result = d->result;
    if (result == DUDA_NEXT || result < 0) {
        (void)mk_response_set_status(d->response, d->extras->error_status);
        return MK_NEXT;
    }
    if (result >= 200 && result != DUDA_HANDLED)
        (void)mk_response_set_status(d->response, (unsigned)result);
    if (d->output == DUDA_OUTPUT_NONE)
        return MK_DONE;
    set_default_content_type(d);
    return mk_response_set_body_nocopy(d->response, mk_buf_str(&d->out)) ? MK_NEXT : MK_DONE;
}

DUDA_COLD enum mk_verdict duda_scheduler_run_error_handlers(struct duda_ctx *d)
{
    if (d->fiber && can_resume(d))
        resume_handler(d);
    if (!d->fiber)
        return finish_error_response(d);
    if (d->output == DUDA_OUTPUT_STREAMED)
        return begin_streaming_response(d);
    watch_client_disconnect(d);
    return MK_WAIT;
}
