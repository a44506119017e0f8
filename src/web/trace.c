/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that requests belong to. */
#include "web/trace.h"

#include <endian.h>

#include "http/trace_context.h"
#include "web/exchange.h"
#include "web/vhost.h"

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

static bool find_traceparent(struct mk_request *r, struct mk_traceparent *out)
{
    mk_str value = mk_request_single_received_header(r, MK_STR("traceparent"));
    return value.p && mk_traceparent_parse(value, out);
}

/* False: there is no valid traceparent. A function of its own, because it needs much more stack than the usual case. */
MK_NOINLINE static bool continue_trace(struct mk_request *r, struct mk_trace *t)
{
    struct mk_traceparent parent;
    if (!find_traceparent(r, &parent))
        return false;
    memcpy(t->trace_id, parent.trace_id, sizeof t->trace_id);
    memcpy(t->span_id, parent.span_id, sizeof t->span_id);
    t->is_sampled = parent.flags & MK_TRACE_SAMPLED;
    t->is_random = parent.flags & MK_TRACE_RANDOM;
    t->has_parent = true;
    t->state = copy_tracestate(r);
    return true;
}

/* ---- A new trace ---- */

void mk_trace_generate_span_id(struct mk_request *r, unsigned char id[8])
{
    uint64_t random;
    do
        memcpy(&random, mk_random_pool_get(&r->web->random, sizeof random), sizeof random);
    while (MK_UNLIKELY(random == 0));
    memcpy(id, &random, sizeof random);
}

/* Decides by the last 56 bits of the trace ID, as OpenTelemetry does, so that programs with the same share
 * choose the same traces. */
static bool is_in_sample(uint64_t end_of_id, unsigned of_million)
{
    uint64_t random = be64toh(end_of_id) & ((UINT64_C(1) << RANDOM_BITS) - 1);
    return random >= (UINT64_C(1) << RANDOM_BITS) / MILLION * (MILLION - of_million);
}

static void begin_trace(struct mk_request *r, struct mk_trace *t, unsigned of_million)
{
    uint64_t id[3];
    do
        memcpy(id, mk_random_pool_get(&r->web->random, sizeof id), sizeof id);
    while (MK_UNLIKELY((id[0] | id[1]) == 0 || id[2] == 0));
    memcpy(t->trace_id, id, sizeof t->trace_id);
    memcpy(t->span_id, &id[2], sizeof t->span_id);
    t->is_sampled = of_million >= MILLION || (of_million && is_in_sample(id[1], of_million));
}

/* Gives the request a span of its own. */
MK_COLD static void record_trace(struct mk_request *r, struct mk_trace *t)
{
    t->is_recorded = true;
    if (!t->has_parent) /* the ID that was generated for backends is ours */
        return;
    memcpy(t->parent_id, t->span_id, sizeof t->parent_id);
    mk_trace_generate_span_id(r, t->span_id);
}

MK_NOINLINE static const struct mk_trace *start_trace(struct mk_request *r)
{
    struct mk_request_extras *extras =
        r->arena ? mk_request_get_extras(r) : NULL; /* a copy for the log has no arena */
    struct mk_trace *t = extras ? mk_arena_alloc(r->arena, sizeof *t) : NULL;
    if (!t)
        return NULL;
    *t = (struct mk_trace){.is_sampled = false};
    if (!r->trusts_proxy || !continue_trace(r, t))
        begin_trace(r, t, r->site->sampled_per_million);
    if (MK_UNLIKELY(t->is_sampled && r->site->records & MK_VHOST_RECORDS_TRACES))
        record_trace(r, t);
    extras->trace = t;
    return t;
}

/* ---- Headers for other programs ---- */

bool mk_request_format_traceparent(const struct mk_request *r, const unsigned char span_id[8],
                                   char out[MK_TRACEPARENT_SIZE])
{
    _Static_assert((int)MK_TRACEPARENT_SIZE == (int)MK_TRACEPARENT_LEN,
                   "the public constant is that of the codec");
    const struct mk_trace *t = mk_request_trace(r);
    if (!t)
        return false;
    struct mk_traceparent parent = {.flags = mk_traceparent_flags(t)};
    memcpy(parent.trace_id, t->trace_id, sizeof parent.trace_id);
    memcpy(parent.span_id, span_id ? span_id : t->span_id, sizeof parent.span_id);
    mk_traceparent_format(&parent, out);
    return true;
}

static int add_trace_headers(struct mk_request *r)
{
    char text[MK_TRACEPARENT_LEN];
    if (!mk_request_format_traceparent(r, NULL, text))
        return 0;
    int e = mk_request_set_context_header(r, MK_STR("traceparent"), mk_str_of(text, sizeof text));
    return e ? e : mk_request_set_context_header(r, MK_STR("tracestate"), mk_request_trace(r)->state);
}

const struct mk_vhost_tracing mk_trace_of_vhost = {.start = start_trace, .add_headers = add_trace_headers};
