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
MK_API int duda_sleep(struct duda *d, uint32_t ms) MK_API_MUST_USE;

/** Waits until the descriptor (non-blocking) is ready for `events`, MK_READABLE or MK_WRITABLE, at most `ms`
 * milliseconds (0: without limit). What is ready (above 0), -ETIMEDOUT when this time or the deadline is
 * over, -ECANCELED, -ENOMEM, -EEXIST (another handler waits for it). */
MK_API int duda_ready(struct duda *d, int fd, unsigned events, uint32_t ms) MK_API_MUST_USE;

/**
 * Runs work(job) in another thread, which may block, and waits for it. The thread gets a copy of the job,
 * `size` bytes, which is copied back when work has returned: work may write results into it, and must touch
 * nothing of the handler, not even through pointers, because the handler may be cancelled meanwhile.
 *
 * `threads` are those of mk_threads_new(); NULL: the four of the worker. 0; -EAGAIN: too much waits for a
 * thread; -ENOMEM, -ETIMEDOUT, -ECANCELED: then `work` may still be running.
 *
 *     struct job job = {.n = 40};
 *     int e = duda_aside(d, NULL, fibonacci, &job, sizeof job);
 */
MK_API int duda_aside(struct duda *d, struct mk_threads *threads, void (*work)(void *job), void *job,
                      size_t size) MK_API_MUST_USE;
/** The same without copies: the job is on the heap. 0: it is the caller's again. Any other result: drop(job)
 * is called, at once or when work has returned. */
MK_API int duda_aside_given(struct duda *d, struct mk_threads *threads, void (*work)(void *job), void *job,
                            void (*drop)(void *job)) MK_API_MUST_USE;

/** The handler has to end within `ms` from now, or its waits answer -ETIMEDOUT; 0: it has all the time of the
 * world, and the HandlerTimeout of the configuration does not hold either. 0 or -ENOMEM. */
MK_API int duda_deadline(struct duda *d, uint32_t ms);

/** 0, -ECANCELED or -ETIMEDOUT: what waits answer. For long computations. */
MK_API int duda_ended(const struct duda *d);

/* ---- For packages: what makes a wait out of a callback ---- */

/** A wait of a handler, on its stack: what to take back if the handler is terminated while it waits. */
struct duda_wait {
    struct duda_wait *outer; /**< Duda's */
    struct duda *d;          /**< Duda's; NULL: the wait has ended */
    void (*cancel)(struct duda_wait *w);
};

/** Begins a wait. If the handler is terminated, cancel(w) is called, the last wait first, ahead of the deferred functions: it
 * takes back whatever would call duda_wake(), and must not wait itself. */
MK_API void duda_wait_begin(struct duda *d, struct duda_wait *w, void (*cancel)(struct duda_wait *w));
/** Ends it. Waits end in the reverse order of their begin. */
MK_API void duda_wait_end(struct duda_wait *w);

/**
 * Suspends the handler until duda_wake(). A wake before it counts, so it may return early: look at what you
 * wait for, in a loop. When it answers an error, take back what would call duda_wake(): the handler ends.
 *
 *     ask(&question, on_answer, &answer);      // on_answer sets answer.over and calls duda_wake(answer.d)
 *     duda_wait_begin(d, &question.wait, cancel_question); // which calls forget()
 *     while (!answer.over && !(e = duda_suspend(d)))
 *         ;
 *     duda_wait_end(&question.wait);
 *     if (e)
 *         forget(&question);
 */
MK_API int duda_suspend(struct duda *d) MK_API_MUST_USE;
/** Lets the handler go on at the end of this turn of the loop. Only in the loop of its worker. */
MK_API void duda_wake(struct duda *d);

#ifdef __cplusplus
}
#endif

#endif
