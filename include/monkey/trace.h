/* SPDX-License-Identifier: Apache-2.0 */
/* Distributed traces of requests (W3C Trace Context), and the spans that this server adds to them. */
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
    unsigned char trace_id[16]; /**< the same in all participating programs */
    unsigned char span_id[8];   /**< the parent of the spans in backends */
    bool is_sampled;            /**< the participating programs should record the trace */
    mk_str state;               /**< the value of `tracestate`; absent: none */
    bool is_random;             /**< the program that started the trace has set the random flag */
    bool is_recorded; /**< mk_config_record_traces() was called and the trace is sampled; `span_id` is then a
                          span of this server */
    bool has_parent;  /**< a trusted proxy has sent `parent_id` */
    unsigned char parent_id[8]; /**< the span of the trusted proxy */
    struct mk_span *spans;      /**< spans that mk_request_add_span() has added, in order */
    unsigned n_spans_lost;      /**< number of spans dropped because of MK_SPANS_MAX or lack of memory */
};

/**
 * Only in host(): makes each request to this virtual host part of a trace. A request from a trusted proxy
 * (mk_request_trust_proxy()) with a valid `traceparent` header continues that trace and its `tracestate`; all
 * other requests start a new trace, of which `sampled_per_million` in a million are sampled.
 */
MK_API void mk_config_start_traces(struct mk_config *config, unsigned sampled_per_million);
/** Returns the trace of the request, which lives as long as the request; the first call starts or continues
 * it. NULL if the virtual host has no tracing, or if out of memory. */
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

/** An operation within a request. Its strings and attributes must live as long as the request
 * (mk_request_alloc()). Times are readings of mk_clock_us(). */
struct mk_span {
    unsigned char span_id[8], parent_id[8];
    enum mk_span_kind kind;
    mk_str name;
    uint64_t began_us;
    uint64_t ended_us; /**< 0: the span ends with the request */
    mk_str error;      /**< error message; absent: the operation has not failed */
    const struct mk_span_attribute *attributes;
    struct mk_span *parent; /**< NULL: the span of the request */
    struct mk_span *next;
    uint64_t reserved[4];
};

/**
 * Only in host(): records the spans of all sampled traces of this virtual host, for a plugin that exports
 * them in on_done(). Each request has its own span, and so does each attempt to obtain a response from a
 * backend (monkey/attempt.h).
 */
MK_API void mk_config_record_traces(struct mk_config *config);
/** Does the configuration of the worker record the traces of any virtual host? */
MK_API bool mk_worker_records_traces(const struct mk_worker *worker);
/**
 * Starts a span as a child of `parent`, or of the request's own span if `parent` is NULL. Returns NULL if the
 * trace of the request is not recorded, if the request already has MK_SPANS_MAX spans, or if out of memory.
 * The caller sets `name` at once and other members later, except the IDs and the pointers to spans.
 */
MK_API struct mk_span *mk_request_add_span(struct mk_request *request, enum mk_span_kind kind,
                                           struct mk_span *parent);

/** Length of a `traceparent`. */
enum { MK_TRACEPARENT_SIZE = 55 };
/**
 * Writes the `traceparent` header for a request that you send to another program on behalf of this request.
 * `span_id` is the parent of the spans there; NULL: the span of this request. The text is not NUL-terminated.
 * Returns false if this request has no trace.
 */
MK_API bool mk_request_format_traceparent(const struct mk_request *request, const unsigned char span_id[8],
                                          char out[MK_TRACEPARENT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
