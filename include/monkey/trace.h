/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of requests through several programs: W3C Trace Context. */
#ifndef MONKEY_TRACE_H
#define MONKEY_TRACE_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_request;

/** The trace that a request belongs to. */
struct mk_trace {
    unsigned char trace_id[16]; /**< the same in all programs that take part */
    unsigned char span_id[8];   /**< the span that is the parent of the spans in backends */
    bool is_sampled;            /**< the programs should record the trace */
    mk_str state;               /**< the value of `tracestate`; absent: none */
};

/** The trace of the request; NULL if there is none, because the host does not take part in traces. */
MK_API const struct mk_trace *mk_request_trace(const struct mk_request *request);
/**
 * Makes the request part of a trace: that of the `traceparent` and `tracestate` that a trusted proxy has sent
 * (mk_request_trust_proxy()), or else a new one. `sampled_of_million` is the share of new traces that are
 * sampled. Later calls return the same trace. Returns NULL if out of memory.
 */
MK_API const struct mk_trace *mk_request_start_trace(struct mk_request *request, unsigned sampled_of_million);

#ifdef __cplusplus
}
#endif

#endif
