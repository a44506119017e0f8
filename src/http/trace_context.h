/* SPDX-License-Identifier: Apache-2.0 */
/* The headers traceparent and tracestate (W3C Trace Context). */
#ifndef MK_HTTP_TRACE_CONTEXT_H
#define MK_HTTP_TRACE_CONTEXT_H

#include <monkey/buf.h>
#include <monkey/trace.h>

#include "base/compiler.h"

enum {
    MK_TRACEPARENT_LEN = 55,
    MK_TRACESTATE_MEMBERS_MAX = 32, /* a list with more members is invalid */
    MK_TRACESTATE_LEN_MAX = 512,    /* bytes that are passed on; further members are dropped */
};

/* Flags of traceparent. All others are undefined, and are sent as zero. */
enum {
    MK_TRACE_SAMPLED = 1,
    MK_TRACE_RANDOM = 2, /* the last 7 bytes of the trace ID are random */
};

struct mk_traceparent {
    unsigned char trace_id[16], span_id[8];
    unsigned flags;
};

static inline unsigned mk_traceparent_flags(const struct mk_trace *t)
{
    return (t->is_sampled ? MK_TRACE_SAMPLED : 0u) | (t->is_random ? MK_TRACE_RANDOM : 0u);
}

/* Parses a traceparent of version 00, or the part of a later version that version 00 defines. False: it is
 * invalid, and must be ignored. */
bool mk_traceparent_parse(mk_str text, struct mk_traceparent *out) MK_MUST_USE;
/* Writes a traceparent of version 00, without a NUL. */
void mk_traceparent_format(const struct mk_traceparent *parent, char out[MK_TRACEPARENT_LEN]);

/* The members of all lines of tracestate, in order. */
struct mk_tracestate {
    mk_str members[MK_TRACESTATE_MEMBERS_MAX];
    unsigned n;
};

/* Adds the members of a line, which must outlive *state. False: the list is invalid, and must be ignored. */
bool mk_tracestate_add_line(struct mk_tracestate *state, mk_str line) MK_MUST_USE;
/* Appends the list, at most MK_TRACESTATE_LEN_MAX bytes: if it is longer, members of more than 128 bytes are
 * dropped first, then the last members. */
void mk_tracestate_format(const struct mk_tracestate *state, struct mk_buf *out);

#endif
