/* SPDX-License-Identifier: Apache-2.0 */
/* Answering later, from any thread. Only in libmonkey. */
#ifndef MONKEY_REQUEST_REF_H
#define MONKEY_REQUEST_REF_H

#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A ticket stands for a request that may end before its answer is there: the client goes away, a timeout
 * comes, the server stops. The request itself must not be touched by other threads; its ticket may.
 *
 *     static void bring(struct mk_request *request, void *ctx) // in the thread of the request
 *     {
 *         struct job *job = ctx;
 *         if (request)
 *             mk_request_set_data(request, job->result);
 *         free_job(job);
 *     }
 *     static void *work(void *ctx) // in a thread of the program
 *     {
 *         struct job *job = ctx;
 *         struct mk_request_ref *ticket = job->ticket;
 *         job->result = compute();
 *         if (mk_request_ref_resume(ticket, bring, job))
 *             free_job(job); // the client has gone
 *         mk_request_ref_free(ticket);
 *     }
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         const struct result *result = mk_request_data(request);
 *         if (result)
 *             return answer(response, result);
 *         struct job *job = mk_request_attached(request, &key);
 *         if (!job)
 *             job = begin(request, mk_request_ref_new(request)); // attaches it, and starts work()
 *         return job ? MK_WAIT : MK_ERROR;
 *     }
 */
struct mk_request_ref;

/** A ticket for this request; in its thread. NULL when memory is out, or without a request. */
MK_API struct mk_request_ref *mk_request_ref_new(struct mk_request *request) MK_API_MUST_USE;

/**
 * Calls in_loop(request, ctx) in the thread of the request, soon, and then resumes the request: its handler
 * or source is called again (see mk_request_resume()). If the request ends before that, in_loop gets NULL in
 * its place. in_loop may be NULL. From any thread, and more than once.
 *
 * 0: in_loop will be called, once. -ESTALE: the request has ended; -ENOMEM; -EINVAL: it is NULL or, as debug
 * builds of the library notice, was freed. In these cases nothing is called.
 */
MK_API int mk_request_ref_resume(struct mk_request_ref *ticket,
                                 void (*in_loop)(struct mk_request *request, void *ctx), void *ctx);

/** Has the request ended? If not, it may a moment later. From any thread. */
MK_API bool mk_request_ref_is_gone(const struct mk_request_ref *ticket);

/** The ticket is not used any more; what it has resumed goes on. From any thread, also when the server is
 * gone. NULL is fine. */
MK_API void mk_request_ref_free(struct mk_request_ref *ticket);

#ifdef __cplusplus
}
#endif

#endif
