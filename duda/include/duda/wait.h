/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: the handler is suspended, and the worker serves others. */
#ifndef DUDA_WAIT_H
#define DUDA_WAIT_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every wait answers 0 or a negated errno value. -ECANCELED: the client is gone. -ETIMEDOUT: the deadline is
 * over. From then on every wait answers that at once: return from the handler. A handler that keeps calling blocking functions
 * nevertheless is terminated: its waits are cancelled, its deferred functions run, and it is never resumed. Its stack and its
 * memory stay for a while, so that a callback that still knows of them does no harm. */

/** Waits for so many milliseconds; precise to some 32 ms, never early. */
MK_API int duda_sleep(struct duda_ctx *d, uint32_t ms) MK_API_MUST_USE;

/** Waits until the descriptor (non-blocking) is ready for `events`, MK_READABLE or MK_WRITABLE, at most `ms`
 * milliseconds (0: without limit). What is ready (above 0), -ETIMEDOUT when this time or the deadline is
 * over, -ECANCELED, -ENOMEM, -EEXIST (another handler waits for it). */
MK_API int duda_wait_fd(struct duda_ctx *d, int fd, unsigned events, uint32_t ms) MK_API_MUST_USE;

/**
 * Runs work(job) in another thread, which may block, and waits for it. The thread gets a copy of the job,
 * `size` bytes, which is copied back when work has returned: work may write results into it, and must touch
 * nothing of the handler, not even through pointers, because the handler may be cancelled meanwhile.
 *
 * `threads` are those of mk_thread_pool_new(); NULL: the four of the worker. 0; -EAGAIN: too much waits for a
 * thread; -ENOMEM, -ETIMEDOUT, -ECANCELED: then `work` may still be running.
 *
 *     struct job job = {.n = 40};
 *     int e = duda_offload(d, NULL, fibonacci, &job, sizeof job);
 */
MK_API int duda_offload(struct duda_ctx *d, struct mk_thread_pool *threads, void (*work)(void *job),
                        void *job, size_t size) MK_API_MUST_USE;
/** The same without copies: the job is on the heap. 0: it is the caller's again. Any other result: drop(job)
 * is called, at once or when work has returned. */
MK_API int duda_offload_owned(struct duda_ctx *d, struct mk_thread_pool *threads, void (*work)(void *job),
                              void *job, void (*drop)(void *job)) MK_API_MUST_USE;

/** The handler has to end within `ms` from now, or its waits answer -ETIMEDOUT; 0: it has all the time of the
 * world, and the HandlerTimeout of the configuration does not hold either. 0 or -ENOMEM. */
MK_API int duda_deadline(struct duda_ctx *d, uint32_t ms);

/** 0, -ECANCELED or -ETIMEDOUT: what waits answer. For long computations. */
MK_API int duda_cancelled(const struct duda_ctx *d);

/* ---- Callbacks of your own ---- */

/**
 * A wait turns a callback into a function that a handler calls. It is a struct on the stack of the handler, or in
 * its memory, and the worker knows it from duda_wait_begin() to duda_wait_end(): the callback cannot find a stack
 * that another request uses by now, whatever ends the handler, and however it treats errors.
 *
 *     struct question {
 *         struct duda_wait wait; // the first
 *         struct mk_timer timer;
 *     };
 *
 *     static void on_answer(struct mk_timer *t)
 *     {
 *         struct question *q = MK_CONTAINER(t, struct question, timer);
 *         duda_wait_wake(&q->wait);
 *     }
 *
 *     static void end_question(struct duda_wait *w)
 *     {
 *         mk_timer_stop(&((struct question *)w)->timer); // on_answer() is not called any more
 *     }
 *
 *     int ask(struct duda_ctx *d)
 *     {
 *         struct question q;
 *         mk_timer_init(&q.timer, on_answer);
 *         int e = duda_wait_begin(d, &q.wait, end_question);
 *         if (e)
 *             return e;
 *         mk_timer_set(&q.timer, duda_worker(d), 100);
 *         e = duda_wait_suspend(&q.wait);
 *         duda_wait_end(&q.wait);
 *         return e;
 *     }
 */
struct duda_wait {
    struct duda_ctx *d; /**< whose wait it is; all else is Duda's */
    struct duda_wait *outer;
    void (*on_end)(struct duda_wait *w);
    bool is_under_way, is_woken;
};

/**
 * Begins a wait. Returns 0, or the error that has ended the handler (-ECANCELED, -ETIMEDOUT); then no wait has begun.
 *
 * on_end(w) is called once, when the wait ends: by duda_wait_end(), or because the handler ends or is terminated. It takes
 * back whatever would wake the handler, and must not wait. NULL: there is nothing to take back.
 */
MK_API int duda_wait_begin(struct duda_ctx *d, struct duda_wait *w,
                           void (*on_end)(struct duda_wait *w)) MK_API_MUST_USE;
/** Suspends the handler until duda_wait_wake(): 0, also if it was woken before, or if the handler ends at the same time. Else
 * -ECANCELED or -ETIMEDOUT, and the wait has ended. Call it again to be woken again. */
MK_API int duda_wait_suspend(struct duda_wait *w) MK_API_MUST_USE;
/** Wakes its handler, in the loop of its worker; nothing if the wait has not begun or has ended. */
MK_API void duda_wait_wake(struct duda_wait *w);
/** Ends it, in the reverse order of the begin; nothing if it has ended. A handler must not return while a wait is under way: a
 * build of the server for debugging (CMAKE_BUILD_TYPE=Debug) aborts. */
MK_API void duda_wait_end(struct duda_wait *w);

/**
 * The same without a struct: suspends the handler until duda_wake(). A wake before it counts, so it may return early: look
 * at what you wait for, in a loop. What would call duda_wake() must end with the handler: free it by duda_defer().
 */
MK_API int duda_suspend(struct duda_ctx *d) MK_API_MUST_USE;
/** Lets the handler go on at the end of this turn of the loop. Only in the loop of its worker. */
MK_API void duda_wake(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
