/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: operations within a request, for plugins that export traces. */
#include "base/clock.h"
#include "web/exchange.h"
#include "web/trace.h"

struct mk_span *mk_request_add_span(struct mk_request *r, enum mk_span_kind kind, struct mk_span *parent)
{
    const struct mk_trace *trace = mk_request_trace(r);
    struct mk_trace *t = trace ? r->extras->trace : NULL;
    if (!t || !t->is_recorded)
        return NULL;
    struct mk_span **end = &t->spans;
    unsigned n = 0;
    for (; *end; n++)
        end = &(*end)->next;
    struct mk_span *s = n < MK_SPANS_MAX ? mk_arena_alloc(r->arena, sizeof *s) : NULL;
    if (!s) {
        t->n_spans_lost++;
        return NULL;
    }
    *s = (struct mk_span){.kind = kind, .began_us = mk_clock_us(), .parent = parent};
    mk_trace_generate_span_id(r, s->span_id);
    memcpy(s->parent_id, parent ? parent->span_id : t->span_id, sizeof s->parent_id);
    *end = s;
    return s;
}
