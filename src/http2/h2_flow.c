/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_flow.h"

#include "http2/h2_output.h"
#include "http2/h2_stream.h"
#include "http2/h2_tunnel.h"

/* The flow has a response. */
static void begin_response(struct mk_h2_stream *s)
{
    mk_driver_resume(&s->d);
    if (mk_driver_is_tunnel(&s->d)) {
        mk_h2_tunnel_begin(s);
        return;
    }
    if (s->clock)
        mk_h2_stream_set_clock(s, MK_CLOCK_NONE);
    if (MK_UNLIKELY(mk_driver_wants_continue(&s->d)))
        mk_h2_stream_send_continue(s);
    if (!mk_h2_output_at_once(s))
        mk_h2_stream_make_ready(s);
}

void mk_h2_flow_refuse(struct mk_h2_stream *s, unsigned status)
{
    if (!s->d.ending)
        s->d.ending = status == 408 ? MK_ENDING_TIMEOUT : MK_ENDING_REFUSED;
    mk_list_remove(&s->turn);
    mk_h2_stream_discard_input(s);
    mk_flow_refuse(s->d.x, status);
    begin_response(s);
}

/* The clock in s->due has run out. */
MK_COLD static void time_out(struct mk_h2_stream *s)
{
    bool by_handler = s->due == MK_CLOCK_HANDLER;
    s->due = MK_CLOCK_NONE;
    s->d.ending = MK_ENDING_TIMEOUT;
    if (mk_driver_is_written(&s->d))
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_ENDING_DONE);
    else if (s->d.x->response.sealed || mk_driver_is_tunnel(&s->d))
        mk_h2_stream_reset(s, by_handler ? MK_H2_INTERNAL_ERROR : MK_H2_CANCEL, MK_ENDING_TIMEOUT);
    else
        mk_h2_flow_refuse(s, by_handler ? 504 : 408);
}

/* Calls the handler, unless it still waits for something. */
static void run(struct mk_h2_stream *s)
{
    if (s->d.awaits != MK_AWAITS_NOTHING) {
        mk_h2_stream_wait(s);
        return;
    }
    mk_driver_call(&s->d);
    if (s->clock == MK_CLOCK_HANDLER)
        mk_h2_stream_stop_clock(s); /* the next wait gets its full time */
    if (mk_flow_run(s->d.x))
        begin_response(s);
    else if (s->d.awaits != MK_AWAITS_NOTHING)
        mk_h2_stream_wait(s);
}

void mk_h2_flow_run(struct mk_h2_stream *s)
{
    if (MK_UNLIKELY(s->due))
        time_out(s);
    else if (MK_UNLIKELY(mk_driver_is_tunnel(&s->d)))
        mk_h2_tunnel_run(s);
    else if (s->d.x->step == MK_FLOW_READY) /* its source has yielded to other streams */
        mk_h2_stream_make_ready(s);
    else
        run(s);
}
