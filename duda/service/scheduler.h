/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers from their first line to the end of the request. */
#ifndef DUDA_SERVICE_SCHEDULER_H
#define DUDA_SERVICE_SCHEDULER_H

#include "service/duda_ctx.h"

/* Called when a request ends: ends its handler. `ctx_ref` is the struct duda_ctx_ref of the request. */
void duda_scheduler_on_request_end(void *ctx_ref);
/* Cancels a handler: its waits return -ECANCELED until it returns. */
void duda_scheduler_cancel(struct duda_ctx *d);
/* Creates the fiber of the handler of d->route_entry, without running it. Returns 0 or -ENOMEM. */
int duda_scheduler_create_fiber(struct duda_ctx *d);
/* Runs the handler until it waits or returns; the result is the verdict for the server. */
enum mk_verdict duda_scheduler_run(struct duda_ctx *d);

/* Prepares a handler that has ended, or a new context, to run the error handlers of d->extras. Returns 0 or
 * -ENOMEM. */
int duda_scheduler_start_error_handlers(struct duda_ctx *d);
/* Runs the error handlers until they wait or return. Returns the verdict for the server. */
enum mk_verdict duda_scheduler_run_error_handlers(struct duda_ctx *d);

/* Prepares the worker for handlers. Returns 0 or -ENOMEM. */
int duda_scheduler_init(struct duda_worker_ctx *worker_ctx);
void duda_scheduler_fini(struct duda_worker_ctx *worker_ctx);

#endif
