/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that suspend the handler while the worker serves other requests. */
#ifndef DUDA_WAIT_H
#define DUDA_WAIT_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function that waits returns 0 or a negative errno value. -ECANCELED: the client has disconnected.
 * -ETIMEDOUT: the deadline has passed. From then on, every wait fails at once: return from the handler. The
 * time limit of a single call, such as `timeout_ms`, is a different error, -ETIME: the handler may continue.
 * A handler that keeps calling blocking functions is terminated: its waits are cancelled, its deferred
 * functions run, and it is never resumed. Its stack and memory are kept for a while, so that a callback that
 * still refers to them is harmless. */

/**
 * Sleeps for `duration_ms` milliseconds (a timer); accurate to about 32 ms, never early.
 *
 *     int e = duda_sleep(d, 500);
 *     if (e)
 *         return e;
 */
MK_API int duda_sleep(struct duda_ctx *d, uint32_t duration_ms) MK_API_MUST_USE;

/**
 * Waits until the non-blocking descriptor is ready for `events` (MK_READABLE, MK_WRITABLE), for at most
 * `timeout_ms` milliseconds (MK_FOREVER: no limit; 0: does not wait). Returns the ready events (above 0);
 * -ETIME when the time limit has passed; -ETIMEDOUT; -ECANCELED; -ENOMEM; -EEXIST (another handler is waiting
 * for this descriptor).
 *
 *     int e = duda_wait_fd(d, fd, MK_READABLE, 1000);
 *     ssize_t n = e > 0 ? read(fd, buf, sizeof buf) : 0; // does not block
 *     if (e == -ETIME)
 *         return 504;
 */
MK_API int duda_wait_fd(struct duda_ctx *d, int fd, unsigned events, uint32_t timeout_ms) MK_API_MUST_USE;

/** The work of a thread: returns 0 or a negative errno value. */
typedef int duda_work_fn(void *job);
/**
 * Offloads blocking work to a thread: runs work(job) in a thread pool, and waits until it returns. The thread
 * gets a copy of the job (`size` bytes), which is copied back when work returns, regardless of its result.
 * The function may therefore write results into the job, but must not access data of the handler, not even
 * through pointers, because the handler may be cancelled in the meantime. `monkey run` reports a job that
 * contains a pointer to the handler's stack.
 *
 * `threads` is a pool of mk_thread_pool_new(); NULL: the worker's own pool of four threads. Returns the
 * result of `work`, or, if it did not run, -EAGAIN: the queue of the pool is full; -ENOMEM. -ETIMEDOUT or
 * -ECANCELED: `work` may still be running; duda_cancelled() tells whether the handler itself was cancelled.
 *
 *     struct job job = {.n = 40};
 *     int e = duda_offload(d, NULL, fibonacci, &job, sizeof job);
 */
MK_API int duda_offload(struct duda_ctx *d, struct mk_thread_pool *threads, duda_work_fn *work, void *job,
                        size_t size) MK_API_MUST_USE;
/**
 * Like duda_offload(), but without copies: the job is on the heap. If the result is 0, the caller owns the
 * job again. Otherwise drop(job) is called, at once or when work returns.
 *
 *     struct job *job = mk_mem_zalloc(1, sizeof *job);
 *     int e = job ? duda_offload_owned(d, NULL, fibonacci, job, mk_mem_free) : -ENOMEM;
 *     if (e)
 *         return e; // the job is freed, or will be
 *     e = duda_printf(d, "%d\n", job->n);
 *     mk_mem_free(job);
 */
MK_API int duda_offload_owned(struct duda_ctx *d, struct mk_thread_pool *threads, duda_work_fn *work,
                              void *job, void (*drop)(void *job)) MK_API_MUST_USE;

/**
 * Sets the deadline, a timeout for the whole handler: it must return within `timeout_ms` milliseconds;
 * afterwards its waits return -ETIMEDOUT. MK_FOREVER removes the deadline, including HandlerTimeout. Returns
 * 0 or -ENOMEM.
 *
 *     int e = duda_deadline(d, 2000);
 *     e = e ? e : duda_sleep(d, 5000); // returns -ETIMEDOUT after 2 seconds
 */
MK_API int duda_deadline(struct duda_ctx *d, uint32_t timeout_ms);

/**
 * Returns 0, -ECANCELED or -ETIMEDOUT, as a wait would. Call it in long computations.
 *
 *     for (int i = 0; i < n_parts; i++) {
 *         int e = duda_cancelled(d);
 *         if (e)
 *             return e;
 *         compute_part(i);
 *     }
 */
MK_API int duda_cancelled(struct duda_ctx *d);

/**
 * Returns whether the worker is draining: after a reload or a stop, it accepts no more connections, and
 * exits when its handlers have returned. After `DrainTimeout` it cancels them. Event streams
 * (duda_sse_send()) and WebSockets end as soon as the worker drains; the waits of their handlers then
 * fail.
 *
 *     while (!e && !duda_is_draining(d))
 *         e = poll_device(d);
 */
MK_API bool duda_is_draining(struct duda_ctx *d);
/**
 * Ends the idle waits of this handler when the worker starts to drain: duda_sleep() and the functions that
 * receive from topics then return -ESHUTDOWN. All other waits continue, so the handler can finish its work.
 * Call this function in handlers that wait for a long time, such as long polling and background tasks.
 *
 *     duda_end_on_drain(d);
 *     int e = duda_topic_receive(d, 60000, &text);
 *     if (e == -ESHUTDOWN || e == -ETIME)
 *         return 204; // the client repeats the request, and another worker responds
 */
MK_API void duda_end_on_drain(struct duda_ctx *d);

/* ---- Waiting for callbacks ---- */

/**
 * A wait turns a callback-based function into one that suspends only the calling handler. The struct is on
 * the handler's stack or in its memory, and registered with the worker from duda_wait_begin() to
 * duda_wait_end(). A late callback therefore never touches a stack that another request has reused, however
 * the handler ends and however it treats errors.
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
 *         mk_timer_stop(&((struct question *)w)->timer); // on_answer() is no longer called
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
    struct duda_ctx *d; /**< the waiting handler; the other members are internal */
    struct duda_wait *outer;
    void (*on_end)(struct duda_wait *wait);
    bool is_active, is_woken;
};

/**
 * Begins a wait. Returns 0, or the error that ended the handler (-ECANCELED, -ETIMEDOUT), in which case no
 * wait has begun.
 *
 * on_end(w) is called once, when the wait ends: by duda_wait_end(), or because the handler returns or is
 * terminated. The function must cancel whatever would wake the handler, and must not wait. NULL: nothing to
 * cancel.
 */
MK_API int duda_wait_begin(struct duda_ctx *d, struct duda_wait *wait,
                           void (*on_end)(struct duda_wait *wait)) MK_API_MUST_USE;
/** Suspends the handler until duda_wait_wake(). Returns 0, even if the wake-up came before this call, or if
 * the handler is cancelled at the same moment. Returns -ECANCELED or -ETIMEDOUT if the handler was cancelled
 * or its deadline has passed; the wait has then ended. Call it again to wait for the next wake-up. */
MK_API int duda_wait_suspend(struct duda_wait *wait) MK_API_MUST_USE;
/** Resumes the handler, from the event loop of its worker; does nothing unless the wait is active. */
MK_API void duda_wait_wake(struct duda_wait *wait);
/** Ends a wait; does nothing if it has ended. End nested waits in reverse order. A function
 * must not return while a `struct duda_wait` in its stack frame is active: otherwise debug builds of the
 * server (CMAKE_BUILD_TYPE=Debug) abort when the handler begins or continues another wait, or when it
 * returns. */
MK_API void duda_wait_end(struct duda_wait *wait);

/**
 * Suspends the handler until duda_wake(), without a wait struct. An earlier wake-up counts, so the function
 * may return early: check your condition in a loop. duda_wake() must not be called after the handler has
 * ended: in a function registered with duda_defer(), cancel whatever would call it (a timer, a callback).
 */
MK_API int duda_suspend(struct duda_ctx *d) MK_API_MUST_USE;
/** Resumes the handler at the end of this loop iteration. Call it only from the event loop of its worker. */
MK_API void duda_wake(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
