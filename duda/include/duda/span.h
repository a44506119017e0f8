/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: operations of a handler in the trace of its request. */
#ifndef DUDA_SPAN_H
#define DUDA_SPAN_H

#include <duda/service.h>
#include <monkey/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of attributes of a span. */
enum { DUDA_SPAN_ATTRIBUTES_MAX = 32 };

/**
 * Starts a span of the handler's request, and returns it. The plugin `otlp` exports the span when the request
 * ends. Duda itself adds a span for each handler and for each exchange of the HTTP client (duda/http.h). The
 * parent of a new span is the innermost open span of the handler, or else the handler's own span. Returns
 * NULL if the trace of the request is not recorded, which is the usual case, if the request has too many
 * spans, or if memory is exhausted; all functions below ignore NULL.
 *
 *     struct mk_span *span = duda_span_begin(d, "price order");
 *     duda_span_add_int(d, span, "shop.items", 3);
 *     duda_span_add_text(d, span, "shop.country", MK_STR("NL"));
 *     int e = price_order(d, order);
 *     if (e)
 *         duda_span_fail(d, span, MK_STR("no price"));
 *     duda_span_end(d, span);
 *
 * Do not include secrets in names and attributes. A request has at most MK_SPANS_MAX spans.
 */
MK_API struct mk_span *duda_span_begin(struct duda_ctx *d, const char *name);
/** Adds an attribute; all strings are copied. Names follow the semantic conventions of OpenTelemetry, such as
 * "db.query.summary". A second attribute with the same name does not replace the first. A span has at most
 * DUDA_SPAN_ATTRIBUTES_MAX attributes; further ones are dropped. */
MK_API void duda_span_add_text(struct duda_ctx *d, struct mk_span *span, const char *name, mk_str value);
MK_API void duda_span_add_int(struct duda_ctx *d, struct mk_span *span, const char *name, int64_t value);
/** Marks the operation as failed. The text is copied. */
MK_API void duda_span_fail(struct duda_ctx *d, struct mk_span *span, mk_str error);
/** Ends the span, and all open spans below it. When the handler returns, Duda ends its open spans. */
MK_API void duda_span_end(struct duda_ctx *d, struct mk_span *span);

/** The innermost open span of the handler; NULL if the trace is not recorded. For operations that overlap,
 * use mk_request_add_span() with this span as the parent. */
MK_API struct mk_span *duda_span_current(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
