/* SPDX-License-Identifier: Apache-2.0 */
#include "service/start_tasks.h"

#include <duda/readiness.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/result.h"
#include "service/task_create.h"

enum { RETRY_MS = 1000, RETRY_MAX_MS = 60000 };

/* The start tasks of a service in a worker. They run one after the other. */
struct duda_start_tasks {
    struct duda_start_tasks *next;
    struct duda_worker_ctx *worker_ctx;
    const struct service_entry *service_entry;
    size_t at;             /* index of the current task in the table of the service */
    struct duda_ctx *task; /* NULL: the timer is set */
    struct mk_timer timer; /* for the next attempt */
    uint32_t retry_ms;
    bool is_cancelled;
};

/* Returns the index of the first start task of the table from index `i` on; the size of the table if there is
 * none. */
static size_t find_start_task(const struct service_entry *entry, size_t i)
{
    const struct duda_routes *routes = entry->service->routes;
    while (i < routes->n && duda_routes_at(routes, i)->kind != DUDA_IS_START_TASK)
        i++;
    return i;
}

static bool has_more_start_tasks(const struct duda_start_tasks *s)
{
    return s->at < s->service_entry->service->routes->n;
}

static const struct duda_route *current_start_task(const struct duda_start_tasks *s)
{
    return duda_routes_at(s->service_entry->service->routes, s->at);
}

static void set_task_readiness(struct duda_start_tasks *s, const char *reason)
{
    char component[2 * DUDA_COMPONENT_MAX];
    snprintf(component, sizeof component, "%s.%s", s->service_entry->service->name,
             current_start_task(s)->name);
    int e = duda_set_readiness(s->worker_ctx->worker, component, reason);
    if (e)
        mk_worker_log(s->worker_ctx->worker, MK_LOG_ERROR, "the readiness of %s is not reported: %s",
                      component, strerror(-e));
}

/* Counts the start tasks of a service as one task, from the first attempt until all have succeeded. */
static void count_start_tasks(struct duda_start_tasks *s, int change)
{
    if (s->worker_ctx->count_task)
        s->worker_ctx->count_task(change);
}

static void free_start_tasks(struct duda_start_tasks *s)
{
    struct duda_start_tasks **at = &s->worker_ctx->start_tasks;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    count_start_tasks(s, -1);
    mk_timer_stop(&s->timer);
    mk_mem_free(s);
}

/* ---- Attempts ---- */

static void retry_start_task_later(struct duda_start_tasks *s, int error)
{
    char reason[DUDA_NOT_READY_REASON_MAX], text[DUDA_ERRNO_TEXT_SIZE];
    const struct duda_route *r = current_start_task(s);
    snprintf(reason, sizeof reason, "failed: %s", strerror(-error));
    set_task_readiness(s, reason);
    mk_worker_log(s->worker_ctx->worker, MK_LOG_WARN,
                  "the start task %s() in %s:%d returned %s; the next attempt is in %u s", r->name, r->file,
                  r->line, duda_errno_text(error, text), s->retry_ms / 1000);
    mk_timer_set(&s->timer, s->worker_ctx->worker, s->retry_ms);
    s->retry_ms = s->retry_ms > RETRY_MAX_MS / 2 ? RETRY_MAX_MS : 2 * s->retry_ms;
}

static void run_start_task(struct duda_start_tasks *s);

static void on_start_task_end(void *ctx, int result)
{
    struct duda_start_tasks *s = ctx;
    s->task = NULL;
    if (s->is_cancelled)
        return;
    if (result < 0) {
        retry_start_task_later(s, result);
        return;
    }
    set_task_readiness(s, NULL);
    s->retry_ms = RETRY_MS;
    s->at = find_start_task(s->service_entry, s->at + 1);
    if (!has_more_start_tasks(s)) {
        free_start_tasks(s);
        return;
    }
    set_task_readiness(s, "starting"); /* again: the names of both components may be equal after truncation */
    run_start_task(s);
}

static void run_start_task(struct duda_start_tasks *s)
{
    const struct duda_route *r = current_start_task(s);
    const struct duda_task task = {.name = r->name,
                                   .fn = r->fn,
                                   .ctx = s,
                                   .stack = r->stack,
                                   .deadline_ms = r->deadline_ms,
                                   .owner = &s->service_entry->has,
                                   .on_end = on_start_task_end};
    int e = duda_task_create(s->worker_ctx, &task, &s->task);
    if (e) { /* for example -EAGAIN: the task has crashed too often */
        retry_start_task_later(s, e);
        return;
    }
    duda_task_set_source_pos(s->task, r->file, r->line);
    duda_wake(s->task);
}

static void on_start_task_retry(struct mk_timer *t)
{
    run_start_task(MK_CONTAINER(t, struct duda_start_tasks, timer));
}

/* ---- The worker ---- */

int duda_start_tasks_begin(struct duda_worker_ctx *worker_ctx, const struct service_entry *service_entry)
{
    size_t first = find_start_task(service_entry, 0), n = service_entry->service->routes->n;
    if (first == n)
        return 0;
    struct duda_start_tasks *s = mk_mem_alloc(sizeof *s);
    if (!s)
        return -ENOMEM;
    *s = (struct duda_start_tasks){.next = worker_ctx->start_tasks,
                                   .worker_ctx = worker_ctx,
                                   .service_entry = service_entry,
                                   .retry_ms = RETRY_MS};
    mk_timer_init(&s->timer, on_start_task_retry);
    worker_ctx->start_tasks = s;
    count_start_tasks(s, 1);
    for (s->at = first; s->at < n; s->at = find_start_task(service_entry, s->at + 1))
        set_task_readiness(s, "starting");
    s->at = first;
    run_start_task(s);
    return 0;
}

void duda_start_tasks_cancel(struct duda_worker_ctx *worker_ctx, const struct service_entry *service_entry)
{
    struct duda_start_tasks *s = worker_ctx->start_tasks;
    while (s && s->service_entry != service_entry)
        s = s->next;
    if (!s)
        return;
    s->is_cancelled = true;
    if (s->task)
        duda_task_cancel(s->task);
    free_start_tasks(s);
}
