/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts of a request, for logs and traces. */
#include <monkey/attempt.h>

#include "base/clock.h"
#include "web/exchange.h"
#include "web/trace.h"
#include "web/vhost.h"

MK_COLD static struct mk_attempt *append_attempt(struct mk_request *r)
{
    const struct mk_trace *trace = r->site->records & MK_VHOST_RECORDS_TRACES ? mk_request_trace(r) : NULL;
    bool has_span = trace && trace->is_recorded;
    if (!has_span && !(r->site->records & MK_VHOST_RECORDS_ATTEMPTS))
        return NULL;
    struct mk_request_extras *extras = mk_request_get_extras(r);
    struct mk_attempt *a = extras ? mk_arena_alloc(r->arena, sizeof *a) : NULL;
    if (!a)
        return NULL;
    *a = (struct mk_attempt){.began_us = mk_clock_us()};
    if (has_span)
        mk_trace_generate_span_id(r, a->span_id);
    struct mk_attempt **end = &extras->attempts;
    while (*end)
        end = &(*end)->next;
    *end = a;
    return a;
}

struct mk_attempt *mk_request_add_attempt(struct mk_request *r)
{
    return MK_UNLIKELY(r->site && r->site->records) ? append_attempt(r) : NULL;
}

const struct mk_attempt *mk_request_attempts(const struct mk_request *r)
{
    return r->extras ? r->extras->attempts : NULL;
}
