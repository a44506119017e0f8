/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers: from their first line to the end of the request. */
#ifndef DUDA_SERVICE_RUN_H
#define DUDA_SERVICE_RUN_H

#include "service/duda_type.h"

/* When the request of the struct duda_tie is over: ends its handler. */
void duda_run_end(void *tie);
/* Ends a handler now: its waits answer -ECANCELED until it has returned. */
void duda_run_cancel(struct duda *d);
/* Starts the handler of d->route on a stack of its own; it has not run yet. 0 or -ENOMEM. */
int duda_run_begin(struct duda *d);
/* Runs it as far as it can go: what the server's handler answers. */
enum mk_verdict duda_run(struct duda *d);

/* What the worker needs for that. 0 or -ENOMEM. */
int duda_run_start(struct duda_home *home);
void duda_run_stop(struct duda_home *home);

#endif
