/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that requests belong to. */
#include "web/trace.h"

#include "http/trace_context.h"
#include "web/exchange.h"

enum { MILLION = 1000000, RANDOM_BITS = 56 };

/* ---- A trace that a trusted proxy has begun ---- */

static mk_str copy_tracestate(struct mk_request *r)
{
    const struct mk_headers *fields = mk_request_received_headers(r);
    struct mk_tracestate state = {.n = 0};
    for (unsigned i = 0; i < fields->n; i++)
        if (mk_str_eq_nocase(fields->at[i].name, MK_STR("tracestate")) &&
            !mk_tracestate_add_line(&state, fields->at[i].value))
            return MK_STR_NULL;
    if (!state.n)
        return MK_STR_NULL;
    char *text = mk_arena_alloc(r->arena, MK_TRACESTATE_LEN_MAX);
    struct mk_buf out = mk_buf_fixed(text, text ? MK_TRACESTATE_LEN_MAX : 0);
    mk_tracestate_format(&state, &out);
    return out.len ? mk_buf_str(&out) : MK_STR_NULL;
}

/* Several headers are invalid, because it is unknown which one counts. */
static bool find_traceparent(struct mk_request *r, struct mk_traceparent *out)
{
    const struct mk_headers *fields = mk_request_received_headers(r);
    mk_str value = MK_STR_NULL;
    for (unsigned i = 0; i < fields->n; i++) {
        if (!mk_str_eq_nocase(fields->at[i].name, MK_STR("traceparent")))
            continue;
        if (value.p)
            return false;
        value = fields->at[i].value;
    }
    return value.p && mk_traceparent_parse(value, out);
}

static void continue_trace(struct mk_request *r, struct mk_trace *t, const struct mk_traceparent *parent)
{
    memcpy(t->trace_id, parent->trace_id, sizeof t->trace_id);
    memcpy(t->span_id, parent->span_id, sizeof t->span_id);
    t->is_sampled = parent->flags & MK_TRACE_SAMPLED;
    t->state = copy_tracestate(r);
}

/* ---- A new trace ---- */

static bool is_zero(const unsigned char *id, size_t n)
{
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= id[i];
    return !bits;
}

static void generate_span_id(struct mk_request *r, unsigned char id[8])
{
    do
        memcpy(id, mk_random_pool_get(&r->web->random, 8), 8);
    while (MK_UNLIKELY(is_zero(id, 8)));
}

/* Decides by the last 56 bits of the trace ID, as OpenTelemetry does, so that programs with the same share
 * choose the same traces. */
static bool is_in_sample(const unsigned char trace_id[16], unsigned of_million)
{
    uint64_t random = 0;
    for (size_t i = 9; i < 16; i++)
        random = random << 8 | trace_id[i];
    return random >= (UINT64_C(1) << RANDOM_BITS) / MILLION * (MILLION - of_million);
}

static void begin_trace(struct mk_request *r, struct mk_trace *t, unsigned of_million)
{
    do
        memcpy(t->trace_id, mk_random_pool_get(&r->web->random, sizeof t->trace_id), sizeof t->trace_id);
    while (MK_UNLIKELY(is_zero(t->trace_id, sizeof t->trace_id)));
    generate_span_id(r, t->span_id);
    t->is_sampled = of_million >= MILLION || (of_million && is_in_sample(t->trace_id, of_million));
}

const struct mk_trace *mk_request_start_trace(struct mk_request *r, unsigned sampled_of_million)
{
    struct mk_traceparent parent;
    struct mk_request_extras *extras = mk_request_get_extras(r);
    if (!extras || extras->trace)
        return extras ? extras->trace : NULL;
    struct mk_trace *t = mk_arena_alloc(r->arena, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct mk_trace){.is_sampled = false};
    if (r->trusts_proxy && find_traceparent(r, &parent))
        continue_trace(r, t, &parent);
    else
        begin_trace(r, t, sampled_of_million);
    extras->trace = t;
    return t;
}

const struct mk_trace *mk_request_trace(const struct mk_request *r)
{
    return r->extras ? r->extras->trace : NULL;
}

/* ---- Headers for other programs ---- */

int mk_trace_add_headers(struct mk_request *r)
{
    const struct mk_trace *t = r->extras->trace;
    char text[MK_TRACEPARENT_LEN];
    struct mk_traceparent parent = {.flags = t->is_sampled ? MK_TRACE_SAMPLED : 0};
    memcpy(parent.trace_id, t->trace_id, sizeof t->trace_id);
    memcpy(parent.span_id, t->span_id, sizeof t->span_id);
    mk_traceparent_format(&parent, text);
    int e = mk_request_set_context_header(r, MK_STR("traceparent"), mk_str_of(text, sizeof text));
    return e ? e : mk_request_set_context_header(r, MK_STR("tracestate"), t->state);
}
