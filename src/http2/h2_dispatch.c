/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_dispatch.h"

#include "http2/h2_output.h"
#include "http2/h2_stream.h"
#include "http2/h2_tunnel.h"

/* Called when dispatch has produced a response. */
static void start_response(struct mk_h2_stream *s)
{
    mk_http_stream_allow_call(&s->d);
    if (mk_http_stream_is_tunnel(&s->d)) {
        mk_h2_tunnel_begin(s);
        return;
    }
    if (s->timeout)
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_NONE);
    if (MK_UNLIKELY(mk_http_stream_needs_100_continue(&s->d)))
        mk_h2_stream_send_continue(s);
    if (!mk_h2_output_try_send_now(s))
        mk_h2_stream_queue_output(s);
}

void mk_h2_dispatch_error(struct mk_h2_stream *s, unsigned status)
{
    if (!s->d.outcome)
        s->d.outcome = status == 408 ? MK_OUTCOME_TIMEOUT : MK_OUTCOME_REJECTED;
    mk_list_remove(&s->queue_link);
    mk_h2_stream_discard_input(s);
    mk_dispatch_error(s->d.x, status);
    start_response(s);
}

/* Handles the expired timeout in s->due. */
MK_COLD static void handle_timeout(struct mk_h2_stream *s)
{
    bool by_handler = s->due == MK_TIMEOUT_HANDLER;
    s->due = MK_TIMEOUT_NONE;
    s->d.outcome = MK_OUTCOME_TIMEOUT;
    if (mk_http_stream_response_written(&s->d))
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
    else if (s->d.x->response.sealed || mk_http_stream_is_tunnel(&s->d))
        mk_h2_stream_reset(s, by_handler ? MK_H2_INTERNAL_ERROR : MK_H2_CANCEL, MK_OUTCOME_TIMEOUT);
    else
        mk_h2_dispatch_error(s, by_handler ? 504 : 408);
}

/* Calls the handler, unless it is still waiting for something. */
static void call_handler(struct mk_h2_stream *s)
{
    if (s->d.awaits != MK_AWAITS_NOTHING) {
        mk_h2_stream_set_wait_timeout(s);
        return;
    }
    mk_http_stream_begin_call(&s->d);
    if (s->timeout == MK_TIMEOUT_HANDLER)
        mk_h2_stream_stop_timeout(s); /* the next wait gets the full timeout */
    if (mk_dispatch_run(s->d.x))
        start_response(s);
    else if (s->d.awaits != MK_AWAITS_NOTHING)
        mk_h2_stream_set_wait_timeout(s);
}

void mk_h2_dispatch_run(struct mk_h2_stream *s)
{
    if (MK_UNLIKELY(s->due))
        handle_timeout(s);
    else if (MK_UNLIKELY(mk_http_stream_is_tunnel(&s->d)))
        mk_h2_tunnel_run(s);
    else if (s->d.x->step == MK_DISPATCH_READY) /* the body source has yielded to other streams */
        mk_h2_stream_queue_output(s);
    else
        call_handler(s);
}
