/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for blocking work of code outside the server core, with a bound for what may wait: see
 * monkey/worker.h. */
#ifndef MK_NET_THREADS_H
#define MK_NET_THREADS_H

#include <monkey/worker.h>

#include "net/helper.h"

struct mk_threads {
    struct mk_helper helper;
    unsigned n_jobs, jobs_max; /* waiting or running */
    bool ending;               /* takes no more */
    struct mk_task task;       /* frees it */
};

mk_err mk_threads_init(struct mk_threads *t, struct mk_loop *loop, unsigned n,
                       unsigned waiting_max) MK_MUST_USE;
/* Waits for all jobs, and calls done() for each. */
void mk_threads_fini(struct mk_threads *t);
/* As mk_threads_new, on the given loop. */
struct mk_threads *mk_threads_new_in(struct mk_loop *loop, unsigned n, unsigned waiting_max) MK_MUST_USE;

#endif
