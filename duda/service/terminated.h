/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that ignored their cancellation and will not be resumed. Callbacks may still hold pointers to
 * their stacks and memory, so both are kept for a while. */
#ifndef DUDA_SERVICE_TERMINATED_H
#define DUDA_SERVICE_TERMINATED_H

#include "service/duda_ctx.h"

/* Cancels the waits of the handler, runs its deferred functions, and ends it. Called in the loop. */
DUDA_COLD void duda_terminate(struct duda_ctx *d);
/* Keeps the stack of a handler that has returned, like that of a terminated one. */
DUDA_COLD void duda_terminated_keep_stack(struct duda_ctx *d);
/* Called when the request of a terminated handler has ended: keeps the memory of this handler, and frees that
 * of the oldest terminated handlers. */
DUDA_COLD void duda_terminated_add(struct duda_ctx *d);
/* Frees the memory of all terminated handlers. */
void duda_terminated_free_all(struct duda_worker_ctx *worker_ctx);

#endif
