/* SPDX-License-Identifier: Apache-2.0 */
/* Request references, with which any thread can complete a request later. Only in libmonkey. */
#ifndef MONKEY_REQUEST_REF_H
#define MONKEY_REQUEST_REF_H

#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A reference to a request that may end before its response is ready: the client disconnects, a timeout
 * expires, or the server stops. Other threads must not access the request itself, but they may use its
 * reference. The request of a WebSocket or an event stream (mk_websocket_request(), mk_sse_stream_request())
 * ends when the WebSocket or stream is closed. Until then, other threads can send to its client through a
 * reference to the request.
 *
 *     static void set_result(struct mk_request *request, void *ctx) // in the thread of the request
 *     {
 *         struct job *job = ctx;
 *         if (request)
 *             mk_request_set_data(request, job->result);
 *         free_job(job);
 *     }
 *     static void *work(void *ctx) // in a thread of the program
 *     {
 *         struct job *job = ctx;
 *         struct mk_request_ref *ref = job->ref;
 *         job->result = compute();
 *         if (mk_request_ref_resume(ref, set_result, job))
 *             free_job(job); // the request has ended
 *         mk_request_ref_free(ref);
 *     }
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         const struct result *result = mk_request_data(request);
 *         if (result)
 *             return send_result(response, result);
 *         struct job *job = mk_request_attached(request, &key);
 *         if (!job)
 *             job = start_job(request, mk_request_ref_new(request)); // attaches the job, and starts work()
 *         return job ? MK_WAIT : MK_ERROR;
 *     }
 */
struct mk_request_ref;

/** Creates a reference to this request. Call it in the thread of the request. Returns NULL if out of memory,
 * or if `request` is NULL. */
MK_API struct mk_request_ref *mk_request_ref_new(struct mk_request *request) MK_API_MUST_USE;

/**
 * Schedules in_loop(request, ctx) in the thread of the request and then resumes the request: its handler or
 * body source is called again (see mk_request_resume()). If the request ends first, in_loop receives NULL in
 * place of the request. in_loop may be NULL. You may call this from any thread, and more than once.
 *
 * Returns 0 if in_loop will be called, exactly once. Otherwise nothing is called, and the result is -ESTALE
 * if the request has ended; -ENOMEM; or -EINVAL if `ref` is NULL or was freed (only debug builds of the
 * library detect the latter).
 */
MK_API int mk_request_ref_resume(struct mk_request_ref *ref,
                                 void (*in_loop)(struct mk_request *request, void *ctx), void *ctx);

/** Has the request ended? If not, it may end at any moment. Thread-safe. */
MK_API bool mk_request_ref_is_gone(const struct mk_request_ref *ref);

/** Frees the reference; calls that were already scheduled still run. Any thread may call it, even after
 * the server is gone. NULL is allowed. */
MK_API void mk_request_ref_free(struct mk_request_ref *ref);

#ifdef __cplusplus
}
#endif

#endif
