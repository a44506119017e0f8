/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers: from their first line to the end of the request. */
#ifndef DUDA_SERVICE_SCHEDULER_H
#define DUDA_SERVICE_SCHEDULER_H

#include "service/duda_ctx.h"

/* When the request of the struct duda_ctx_ref is over: ends its handler. */
void duda_scheduler_on_request_end(void *ctx_ref);
/* Ends a handler now: its waits answer -ECANCELED until it has returned. */
void duda_scheduler_cancel(struct duda_ctx *d);
/* Starts the handler of d->route on a stack of its own; it has not run yet. 0 or -ENOMEM. */
int duda_scheduler_start_handler(struct duda_ctx *d);
/* Runs it as far as it can go: what the server's handler answers. */
enum mk_verdict duda_scheduler_run(struct duda_ctx *d);

/* What the worker needs for that. 0 or -ENOMEM. */
int duda_scheduler_init(struct duda_worker_ctx *worker_ctx);
void duda_scheduler_fini(struct duda_worker_ctx *worker_ctx);

#endif
