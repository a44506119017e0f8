/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that ignored their cancellation and will not be resumed. Who waits with a pattern of its own may have left pointers to
 * their stacks and memory with callbacks, so these are kept for a while. */
#ifndef DUDA_SERVICE_TERMINATED_H
#define DUDA_SERVICE_TERMINATED_H

#include "service/duda_ctx.h"

/* Cancels its waits, runs its deferred functions, and ends it. In the loop. */
DUDA_COLD void duda_terminate(struct duda_ctx *d);
/* Keeps the stack of a handler that has returned as that of a terminated one. */
DUDA_COLD void duda_terminated_keep_stack(struct duda_ctx *d);
/* Its request is over: takes over its memory, and frees that of old ones. */
DUDA_COLD void duda_terminated_add(struct duda_ctx *d);
/* Frees all of them. */
void duda_terminated_free_all(struct duda_worker_ctx *worker_ctx);

#endif
