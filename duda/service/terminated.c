/* SPDX-License-Identifier: Apache-2.0 */
#include "service/terminated.h"

#include "service/crash_table.h"
#include "service/memory.h"
#include "service/route_table.h"
#include "service/suspend.h"

/* Each worker keeps the memory of this many handlers, each for at least this long: a route that would exceed
 * this limit is disabled. */
enum { KEPT_MAX = 1024, KEPT_S = 600 };

/* The handler's stack has no space left, so this is in the memory of the handler. */
struct duda_terminated {
    struct duda_terminated *next;
    struct duda_ctx *d;
    struct duda_fiber *fiber;
    int64_t since;
};

/* Records the terminated handler. Without this record the stack cannot be kept, and is freed at once. */
static void record_terminated(struct duda_ctx *d, struct duda_fiber *fiber)
{
    struct duda_terminated *t = duda_alloc(d, sizeof *t);
    if (!t) {
        duda_fiber_free(fiber);
        return;
    }
    *t = (struct duda_terminated){.d = d, .fiber = fiber};
    d->terminated = t;
}

void duda_terminate(struct duda_ctx *d)
{
    struct duda_fiber *fiber = d->fiber;
    duda_log_plain(d, MK_LOG_ERROR,
                   "%s() in %s:%d ignores cancellation and was terminated: return when a blocking call fails",
                   d->route_entry->route->name, d->route_entry->route->file, d->route_entry->route->line);
    d->result = d->cancel_error;
    d->fiber = NULL; /* makes waits in deferred functions fail */
    mk_timer_stop(&d->deadline);
    duda_suspend_end_waits(d);
    duda_memory_run_cleanups(d);
    record_terminated(d, fiber);
}

void duda_terminated_keep_stack(struct duda_ctx *d)
{
    record_terminated(d, d->fiber);
    d->fiber = NULL;
}

static void free_oldest_terminated(struct duda_worker_ctx *worker_ctx)
{
    struct duda_terminated *t = worker_ctx->terminated;
    struct duda_ctx *d = t->d;
    worker_ctx->terminated = t->next;
    worker_ctx->n_terminated--;
    duda_fiber_free(t->fiber);
    duda_memory_free_chunks(d);
    duda_memory_release_block(worker_ctx, d);
}

static void append_terminated(struct duda_worker_ctx *worker_ctx, struct duda_terminated *t, int64_t now)
{
    t->since = now;
    if (!worker_ctx->terminated)
        worker_ctx->last_terminated = &worker_ctx->terminated;
    *worker_ctx->last_terminated = t;
    worker_ctx->last_terminated = &t->next;
    worker_ctx->n_terminated++;
}

void duda_terminated_add(struct duda_ctx *d)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    int64_t now = mk_worker_now(worker_ctx->worker);
    append_terminated(worker_ctx, d->terminated, now);
    d->request = NULL; /* discards further output of the callbacks */
    d->response = NULL;
    d->out = (struct mk_buf){0}; /* already freed */
    d->output = DUDA_OUTPUT_TUNNEL;
    while (worker_ctx->n_terminated > KEPT_MAX && worker_ctx->terminated->since + KEPT_S <= now)
        free_oldest_terminated(worker_ctx);
    if (worker_ctx->n_terminated >= KEPT_MAX &&
        duda_route_slot_disable(d->route_entry->route_slot, worker_ctx->rules, now))
        mk_worker_log(worker_ctx->worker, MK_LOG_ERROR,
                      "%zu handlers were terminated within %d s: the route %.*s answers 503 for a while",
                      worker_ctx->n_terminated, KEPT_S, MK_STR_ARG(d->route_entry->pattern));
}

void duda_terminated_free_all(struct duda_worker_ctx *worker_ctx)
{
    while (worker_ctx->terminated)
        free_oldest_terminated(worker_ctx);
}
