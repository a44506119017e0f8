/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers whose responses are streams of events: they would last as long as their clients, so the worker ends
 * them when it drains. */
#ifndef DUDA_SERVICE_SSE_STREAMS_H
#define DUDA_SERVICE_SSE_STREAMS_H

#include "service/suspend.h"

/* The response of this handler is a stream of events. */
void duda_sse_streams_add(struct duda_ctx *d);
/* It is over. Harmless for other handlers. */
DUDA_COLD void duda_sse_streams_remove(struct duda_ctx *d);
/* The worker is to end. */
void duda_sse_streams_drain(struct duda_worker_ctx *worker_ctx);

#endif
