/* SPDX-License-Identifier: Apache-2.0 */
/* How plugins wait in a worker: alarms, watchers, work in other threads, calls from other threads. Public:
 * monkey/worker.h. */
#ifndef MK_WORKER_WORKER_ASYNC_H
#define MK_WORKER_WORKER_ASYNC_H

#include "worker/worker_type.h"

mk_err mk_worker_async_init(struct mk_worker *w) MK_MUST_USE;
/* Makes all pending calls; none is made after this. */
void mk_worker_async_fini(struct mk_worker *w);

#endif
