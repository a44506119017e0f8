/* SPDX-License-Identifier: Apache-2.0 */
/* The span of a handler, below which its own spans are. */
#ifndef DUDA_SERVICE_SPAN_H
#define DUDA_SERVICE_SPAN_H

#include <duda/span.h>

#include "service/duda_ctx.h"

/* Begins the span of the handler, if the trace of its request is recorded. */
void duda_span_begin_handler(struct duda_ctx *d) DUDA_COLD;
/* Ends the span of the handler, and all spans within it. */
void duda_span_end_handler(struct duda_ctx *d) DUDA_COLD;

#endif
