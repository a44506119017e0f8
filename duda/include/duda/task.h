/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that no request has asked for: for packages that work by themselves. */
#ifndef DUDA_TASK_H
#define DUDA_TASK_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A service, to which an errand belongs. */
struct duda_service_ref;

/** What an errand does. Copied; `name` must live as long as the worker. */
struct duda_task {
    const char *name;     /**< "mail": for messages, and to count crashes */
    duda_fn *fn;          /**< runs on a stack of its own, and may wait; 0, or a negated errno value */
    void *ctx;            /**< the caller's: duda_task_context() */
    size_t stack;         /**< bytes, at most DUDA_STACK_MAX; 0: 64 KB */
    uint32_t deadline_ms; /**< as duda_deadline() at its begin; 0: none */
    /** The service whose settings and state it has; NULL: that of the handler or DUDA_START() function that begins it,
     * if there is one. */
    const struct duda_service_ref *owner;
    /** It is over, with that result: free what `ctx` leads to. In the loop; begins another one, if need be.
     */
    void (*on_end)(void *ctx, int result);
};

/**
 * Begins an errand at the end of this turn. The functions of Duda work as in any handler, but that there is
 * no request: what the client has asked is absent, what is said to it is refused with -EALREADY, and
 * duda_request() and duda_response() are NULL. The plugin that begins errands ends those that are left in
 * worker_stop.
 *
 * 0; -EAGAIN: errands of that name have crashed too often (`CrashLimit` of [DUDA]); -EINVAL: its stack would
 * be too large; -ENOMEM.
 *
 *     static int tidy(struct duda_ctx *d)
 *     {
 *         int e;
 *         while (!(e = duda_sleep(d, 60000)))
 *             remove_old(d, duda_task_context(d));
 *         return e;
 *     }
 *     const struct duda_task errand = {.name = "tidy", .fn = tidy, .ctx = mine};
 *     int e = duda_task_spawn(worker, &errand, &mine->errand);
 */
MK_API int duda_task_spawn(struct mk_worker *worker, const struct duda_task *errand,
                           struct duda_ctx **out) MK_API_MUST_USE;
/** In a DUDA_START() function, and in functions of packages that it calls: its service, as the owner of
 * errands that begin later. Valid as long as the worker. NULL elsewhere. */
MK_API const struct duda_service_ref *duda_task_owner(struct mk_worker *worker);
/** The `ctx` of the errand; NULL in handlers of requests. */
MK_API void *duda_task_context(const struct duda_ctx *d);
/** Ends it now: its waits answer -ECANCELED until it has returned, and on_end is called. Not from inside of
 * that errand. */
MK_API void duda_task_cancel(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
