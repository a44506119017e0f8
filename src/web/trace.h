/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a trace (monkey/trace.h) in requests to backends. */
#ifndef MK_WEB_TRACE_H
#define MK_WEB_TRACE_H

#include <monkey/trace.h>

/* Sets traceparent and tracestate of a request that has a trace. Returns 0 or a negated errno value. */
int mk_trace_add_headers(struct mk_request *r);

#endif
