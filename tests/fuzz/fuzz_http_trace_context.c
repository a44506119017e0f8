/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed traceparent of version 00 is written as it was read, and a tracestate that is passed on is valid and
 * no longer than allowed. The input is text, whose lines are lines of tracestate. */
#include "base/assert.h"
#include "http/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_traceparent(mk_str text)
{
    struct mk_traceparent parent, again;
    char out[MK_TRACEPARENT_LEN];
    if (!mk_traceparent_parse(text, &parent))
        return;
    mk_traceparent_format(&parent, out);
    MK_ASSERT(mk_str_eq(mk_str_of(out + 3, sizeof out - 3), mk_str_of(text.p + 3, sizeof out - 3)));
    MK_ASSERT(mk_traceparent_parse(mk_str_of(out, sizeof out), &again) && again.flags == parent.flags);
}

static void check_tracestate(mk_str text)
{
    struct mk_tracestate state = {.n = 0}, again = {.n = 0};
    char buf[MK_TRACESTATE_LEN_MAX];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    while (text.p)
        if (!mk_tracestate_add_line(&state, mk_str_cut(&text, '\n')))
            return;
    mk_tracestate_format(&state, &out);
    MK_ASSERT(!out.failed && mk_tracestate_add_line(&again, mk_buf_str(&out)) && again.n <= state.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_traceparent(text);
    check_tracestate(text);
    return 0;
}
