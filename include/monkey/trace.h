/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of requests through several programs (W3C Trace Context), and the spans that this server adds to them. */
#ifndef MONKEY_TRACE_H
#define MONKEY_TRACE_H

#include <monkey/str.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mk_config;
struct mk_request;
struct mk_worker;
struct mk_span;

/** The trace that a request belongs to. */
struct mk_trace {
    unsigned char trace_id[16]; /**< the same in all programs that take part */
    unsigned char span_id[8];   /**< the span that is the parent of the spans in backends */
    bool is_sampled;            /**< the programs should record the trace */
    mk_str state;               /**< the value of `tracestate`; absent: none */
    bool is_random;             /**< the program that began the trace has set the random flag */
    bool
        is_recorded; /**< mk_config_record_traces() was called, and the trace is sampled: `span_id` is a span of this server */
    bool has_parent;            /**< a trusted proxy has sent `parent_id` */
    unsigned char parent_id[8]; /**< the span of the trusted proxy */
    struct mk_span *spans;      /**< spans that mk_request_add_span() has added, in order */
    unsigned n_spans_lost;      /**< spans that exceeded MK_SPANS_MAX, or for which there was no memory */
};

/**
 * Makes each request for the virtual host that is being configured part of a trace: that of the `traceparent` and
 * `tracestate` that a trusted proxy has sent (mk_request_trust_proxy()), or else a new one. `sampled_of_million` is the
 * share of new traces that are sampled. Call it in host().
 */
MK_API void mk_config_start_traces(struct mk_config *config, unsigned sampled_of_million);
/** The trace of the request, which the first call starts. NULL: the host does not take part in traces, or out of
 * memory. */
MK_API const struct mk_trace *mk_request_trace(const struct mk_request *request);

/* ---- Spans ---- */

/** Maximum number of spans of a request. */
enum { MK_SPANS_MAX = 128 };

/** The kind of a span, with the numbers of OpenTelemetry. */
enum mk_span_kind { MK_SPAN_INTERNAL = 1, MK_SPAN_SERVER = 2, MK_SPAN_CLIENT = 3 };

/** An attribute of a span: `text`, or `number` if `text` is absent. Names follow the semantic conventions of
 * OpenTelemetry, such as "db.query.summary". */
struct mk_span_attribute {
    mk_str name, text;
    int64_t number;
    const struct mk_span_attribute *next;
    uint64_t reserved[2];
};

/** An operation within a request. Its memory and texts must live as long as the request (mk_request_alloc()). Times
 * are in microseconds, of mk_clock_us(). */
struct mk_span {
    unsigned char span_id[8], parent_id[8];
    enum mk_span_kind kind;
    mk_str name;
    uint64_t began_us;
    uint64_t ended_us; /**< 0: it ends with the request */
    mk_str error;      /**< why the operation failed; absent: it did not fail */
    const struct mk_span_attribute *attributes;
    struct mk_span *parent; /**< NULL: the span of the request */
    struct mk_span *next;
    uint64_t reserved[4];
};

/**
 * Records the spans of all sampled traces of the virtual host that is being configured, for a plugin that exports them
 * in on_done(): each request gets a span of its own, and each attempt to obtain a response from a backend
 * (monkey/attempt.h) gets another one. Call it in host().
 */
MK_API void mk_config_record_traces(struct mk_config *config);
/** Does the configuration of the worker record traces of any host? */
MK_API bool mk_worker_records_traces(const struct mk_worker *worker);
/**
 * Begins a span of the request, below `parent`, or below the span of the request if `parent` is NULL. Returns NULL if
 * the trace of the request is not recorded, or if the request has MK_SPANS_MAX spans. Otherwise, the caller sets
 * `name`, and later other members except IDs and pointers to spans.
 */
MK_API struct mk_span *mk_request_add_span(struct mk_request *request, enum mk_span_kind kind,
                                           struct mk_span *parent);

/** Length of a `traceparent`. */
enum { MK_TRACEPARENT_SIZE = 55 };
/**
 * Writes the `traceparent` for a request to another program on behalf of this one. `span_id` becomes its parent; NULL:
 * the span of the request. Not terminated by NUL. Returns false if the request has no trace.
 */
MK_API bool mk_request_format_traceparent(const struct mk_request *request, const unsigned char span_id[8],
                                          char out[MK_TRACEPARENT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
