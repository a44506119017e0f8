/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that stream server-sent events. The streams would last as long as their clients, so a draining
 * worker ends them. */
#ifndef DUDA_SERVICE_SSE_STREAMS_H
#define DUDA_SERVICE_SSE_STREAMS_H

#include "service/suspend.h"

/* Registers the handler: its response is an event stream. */
void duda_sse_streams_add(struct duda_ctx *d);
/* Unregisters the handler. Does nothing for other handlers. */
DUDA_COLD void duda_sse_streams_remove(struct duda_ctx *d);
/* Called when the worker drains. */
void duda_sse_streams_drain(struct duda_worker_ctx *worker_ctx);

#endif
