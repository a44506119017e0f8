/* SPDX-License-Identifier: Apache-2.0 */
#include "service/after_response.h"

#include <errno.h>

#include "service/memory.h"
#include "service/task_create.h"

/* Allocated in the memory of the request. Links the request to its task until one of them ends. */
struct pending_start {
    struct duda_after_task *after_task; /* NULL: none */
};

/* A background task from duda_after_response() until it ends. It holds a reference to the worker, so a
 * draining worker stays alive. */
struct duda_after_task {
    struct duda_after_task *next, **link;
    struct duda_worker_ctx *worker_ctx;
    const struct duda_service_ref *owner;
    const char *name;
    struct duda_ctx *task;
    struct pending_start *pending; /* NULL: the request has ended */
    char request_id[65];
    _Alignas(max_align_t) char data[];
};

static void free_task(struct duda_after_task *a)
{
    if (a->pending)
        a->pending->after_task = NULL;
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    a->worker_ctx->n_after_tasks--;
    if (a->worker_ctx->count_task)
        a->worker_ctx->count_task(-1);
    mk_worker_unref(a->worker_ctx->worker);
    mk_mem_free(a);
}

/* Logs only cancellations: duda_result_validate() logs other failures. */
static void on_after_task_end(void *ctx, int result)
{
    struct duda_after_task *a = MK_CONTAINER(ctx, struct duda_after_task, data);
    if (result == -ECANCELED || result == -ETIMEDOUT)
        mk_worker_log(a->worker_ctx->worker, MK_LOG_WARN,
                      "the background task %s() (request %s) was cancelled: %s", a->name, a->request_id,
                      result == -ECANCELED ? "the worker stops" : "its deadline has passed");
    free_task(a);
}

static void start_task(void *ctx)
{
    struct duda_after_task *a = ((struct pending_start *)ctx)->after_task;
    if (!a)
        return;
    a->pending = NULL;
    duda_wake(a->task);
}

/* Registers start_task() to run when the request ends. The caller creates the task afterwards. */
static struct pending_start *register_task_start(struct mk_request *request)
{
    struct pending_start *p = mk_request_alloc(request, sizeof *p);
    if (!p)
        return NULL;
    p->after_task = NULL;
    return mk_request_add_cleanup(request, start_task, p) ? NULL : p;
}

static struct duda_after_task *new_task(struct duda_ctx *d, const char *name, const void *data, size_t size)
{
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    struct duda_after_task *a = size > SIZE_MAX / 2 ? NULL : mk_mem_alloc(sizeof *a + size);
    if (!a)
        return NULL;
    *a = (struct duda_after_task){.next = worker_ctx->after_tasks,
                                  .link = &worker_ctx->after_tasks,
                                  .worker_ctx = worker_ctx,
                                  .owner = d->owner,
                                  .name = name};
    mk_str id = mk_str_first(duda_request_id(d), sizeof a->request_id - 1);
    memcpy(a->request_id, id.p, id.len);
    if (size)
        memcpy(a->data, data, size);
    if (a->next)
        a->next->link = &a->next;
    worker_ctx->after_tasks = a;
    worker_ctx->n_after_tasks++;
    if (worker_ctx->count_task)
        worker_ctx->count_task(1);
    mk_worker_ref(worker_ctx->worker);
    return a;
}

int duda_after_response_at(struct duda_ctx *d, const char *file, int line, const char *name, duda_fn *fn,
                           const void *data, size_t size)
{
    if (!d->request)
        return -EALREADY;
    size_t at = duda_memory_is_dev_mode(d->worker_ctx) ? duda_memory_find_pointer(d, data, size) : size;
    if (at < size)
        duda_log(d, MK_LOG_ERROR,
                 "%s:%d: duda_after_response(): byte %zu of the data for %s() is a pointer to the stack or "
                 "memory of the handler, which ends before the task starts: copy the text into the data, for "
                 "example into a char[256]",
                 file, line, at, name);
    if (d->worker_ctx->n_after_tasks >= d->worker_ctx->after_tasks_max)
        return -EAGAIN;
    struct pending_start *pending = register_task_start(d->request);
    struct duda_after_task *a = pending ? new_task(d, name, data, size) : NULL;
    if (!a)
        return -ENOMEM;
    const struct duda_task task = {.name = name, .fn = fn, .ctx = a->data, .owner = d->owner};
    int e = duda_task_create(d->worker_ctx, &task, &a->task);
    if (e) {
        free_task(a);
        return e;
    }
    a->task->on_task_end = on_after_task_end;
    a->task->task_end_ctx = a->data;
    a->task->id = mk_str_from_c(a->request_id);
    a->pending = pending;
    pending->after_task = a;
    return 0;
}

void duda_after_response_cancel(struct duda_worker_ctx *worker_ctx, const struct duda_service_ref *owner)
{
    struct duda_after_task *a = worker_ctx->after_tasks;
    while (a) {
        if (a->owner != owner) {
            a = a->next;
            continue;
        }
        duda_task_cancel(a->task);
        a = worker_ctx->after_tasks; /* the task may have ended others */
    }
}
