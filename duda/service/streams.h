/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers whose responses are streams of events: they would last as long as their clients, so the worker ends
 * them when it drains. */
#ifndef DUDA_SERVICE_STREAMS_H
#define DUDA_SERVICE_STREAMS_H

#include "service/task.h"

/* The response of this handler is a stream of events. */
void duda_streams_add(struct duda *d);
/* It is over. Harmless for other handlers. */
DUDA_COLD void duda_streams_leave(struct duda *d);
/* The worker is to end. */
void duda_streams_drain(struct duda_home *home);

#endif
