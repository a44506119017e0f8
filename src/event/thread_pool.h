/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for blocking work of code outside the server core, with a limit for waiting jobs: see
 * monkey/worker.h. */
#ifndef MK_EVENT_THREAD_POOL_H
#define MK_EVENT_THREAD_POOL_H

#include <monkey/worker.h>

#include "event/offload.h"

struct mk_thread_pool {
    struct mk_offload helper;
    unsigned n_jobs, jobs_max; /* waiting or running */
    bool ending;               /* accepts no more jobs */
    struct mk_loop_task task;  /* frees the pool */
};

mk_err mk_thread_pool_init(struct mk_thread_pool *t, struct mk_loop *loop, unsigned n,
                           unsigned waiting_max) MK_MUST_USE;
/* Waits for all jobs, and calls done() for each. */
void mk_thread_pool_fini(struct mk_thread_pool *t);
/* Like mk_thread_pool_new(), but on the given loop. */
struct mk_thread_pool *mk_thread_pool_new_on(struct mk_loop *loop, unsigned n,
                                             unsigned waiting_max) MK_MUST_USE;

#endif
