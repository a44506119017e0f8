/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous operations of plugins in a worker: timers, watchers, offloaded work, calls from other threads.
 * Public API: monkey/worker.h. */
#ifndef MK_WORKER_WORKER_ASYNC_H
#define MK_WORKER_WORKER_ASYNC_H

#include "worker/worker_type.h"

mk_err mk_worker_async_init(struct mk_worker *w) MK_MUST_USE;
/* Runs the calls that were posted so far. */
void mk_worker_run_posts(struct mk_worker *w);
/* Runs all pending calls; none runs afterwards. */
void mk_worker_async_fini(struct mk_worker *w);

#endif
