/* SPDX-License-Identifier: Apache-2.0 */
/* Background tasks: handlers that run without a request. */
#ifndef DUDA_TASK_H
#define DUDA_TASK_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A reference to a service that owns tasks. */
struct duda_service_ref;

/** Options of a task. They are copied, but `name` must live as long as the worker. */
struct duda_task {
    const char *name;     /**< such as "mail", for log messages and for counting crashes */
    duda_fn *fn;          /**< runs on its own stack and may wait; returns 0 or a negative errno value */
    void *ctx;            /**< the caller's data, for duda_task_context(); not in the memory of a handler */
    size_t stack;         /**< stack size in bytes, at most DUDA_STACK_MAX; 0: 64 KB */
    uint32_t deadline_ms; /**< passed to duda_deadline() when the task starts; default: no deadline */
    /** The service whose settings and state the task uses; NULL: that of the handler or DUDA_START() function
     * that spawns the task, if any. */
    const struct duda_service_ref *owner;
    /** Called from the event loop when the task has ended, with its result: free `ctx`, or spawn a new
     * task. */
    void (*on_end)(void *ctx, int result);
};

/**
 * Spawns a background task, which starts at the end of this loop iteration. All functions of Duda work as in
 * any handler, but there is no request: request accessors return absent values, response functions return
 * -EALREADY, and duda_request() and duda_response() return NULL. A plugin that spawns tasks must cancel the
 * remaining ones in worker_cancel, a service in its DUDA_STOP() function.
 *
 * Returns 0; -EAGAIN: tasks with that name crashed too often (`CrashLimit` of [DUDA]); -EINVAL: the stack
 * size is too large; -ENOMEM.
 *
 *     static int tidy(struct duda_ctx *d)
 *     {
 *         int e;
 *         while (!(e = duda_sleep(d, 60000)))
 *             remove_old(d, duda_task_context(d));
 *         return e;
 *     }
 *     const struct duda_task task = {.name = "tidy", .fn = tidy, .ctx = mine};
 *     int e = duda_task_spawn(worker, &task, &mine->task);
 */
MK_API int duda_task_spawn_sized(struct mk_worker *worker, const struct duda_task *task, size_t task_size,
                                 struct duda_ctx **out) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_task_spawn(struct mk_worker *worker, const struct duda_task *task,
                                                  struct duda_ctx **out)
{
    return duda_task_spawn_sized(worker, task, sizeof *task, out);
}
/**
 * Runs a background task after the request has ended, whatever its outcome, for example to send an email
 * after the response. The task calls fn(task), a handler without a request, which may wait. It gets a copy of
 * `data` (`size` bytes), which duda_task_context() returns. The memory of the handler is freed before the
 * task runs, so the data must not contain pointers into it, and thus no mk_str: copy strings into the data.
 * `monkey run` reports such pointers.
 *
 * A draining worker waits for its tasks, for at most `DrainTimeout`; afterwards their waits return
 * -ECANCELED. A task is lost if the worker crashes: use the package `jobs` for work that must not be lost.
 * Errors that fn() returns are logged with the ID of the request. Returns 0; -EAGAIN: the worker already has
 * as many tasks as `BackgroundTasks` of [DUDA] allows, or fn() has crashed too often; -EALREADY: the caller
 * is a task; or -ENOMEM.
 *
 *     struct welcome {
 *         char address[256];
 *     } welcome;
 *     mk_str email = duda_form(d, "email");
 *     snprintf(welcome.address, sizeof welcome.address, "%.*s", MK_STR_ARG(email));
 *     int e = duda_after_response(d, send_welcome, &welcome, sizeof welcome);
 */
#define duda_after_response(d, fn, data, size)                                                               \
    duda_after_response_at(d, __FILE__, __LINE__, #fn, fn, data, size)
/** Implementation of duda_after_response(): takes the source location of the call and the name of the
 * function, for messages. */
MK_API int duda_after_response_at(struct duda_ctx *d, const char *file, int line, const char *name,
                                  duda_fn *fn, const void *data, size_t size) MK_API_MUST_USE;
/**
 * Returns the service whose DUDA_START() function is running, for use as the owner of tasks spawned later.
 * Valid for the lifetime of the worker. NULL outside DUDA_START() functions.
 *
 *     static int start(struct mk_worker *worker)
 *     {
 *         mine->owner = duda_task_owner(worker); // for tasks that a timer spawns later
 *         return 0;
 *     }
 */
MK_API const struct duda_service_ref *duda_task_owner(struct mk_worker *worker);
/** The `ctx` of the task; NULL in request handlers. */
MK_API void *duda_task_context(struct duda_ctx *d);
/**
 * Cancels the task: its waits return -ECANCELED, and on_end is called when the task has returned. Do not
 * call it from the task itself.
 *
 *     static void stop(struct mk_worker *worker)
 *     {
 *         if (mine->task)
 *             duda_task_cancel(mine->task); // its `on_end` sets mine->task to NULL
 *     }
 */
MK_API void duda_task_cancel(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
