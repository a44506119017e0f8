/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2_flow.h"

#include "proto/h2_output.h"
#include "proto/h2_tunnel.h"
#include "web/filter.h"

/* A source that answers with success will want content: behind the head it would be too late to say so. */
MK_COLD static void let_continue(struct mk_h2_stream *s)
{
    const struct mk_response *r = &s->x->response;
    if (r->status < 300 && mk_filter_origin(&s->x->response.content)->source)
        mk_h2_stream_send_continue(s);
}

/* The response is there. */
static void begin_response(struct mk_h2_stream *s)
{
    s->go = true;
    if (mk_content_is_tunnel(&s->x->response.content)) {
        mk_h2_tunnel_begin(s);
        return;
    }
    if (s->clock)
        mk_h2_stream_set_clock(s, MK_CLOCK_NONE);
    if (MK_UNLIKELY(s->expects_continue))
        let_continue(s);
    if (!mk_h2_output_at_once(s))
        mk_h2_stream_make_ready(s);
}

void mk_h2_flow_refuse(struct mk_h2_stream *s, unsigned status)
{
    if (!s->ending)
        s->ending = status == 408 ? MK_ENDING_TIMEOUT : MK_ENDING_REFUSED;
    mk_list_remove(&s->turn);
    mk_h2_stream_drop_input(s);
    mk_flow_refuse(s->x, status);
    begin_response(s);
}

MK_COLD static void time_out(struct mk_h2_stream *s)
{
    enum mk_clock clock = s->due;
    s->due = MK_CLOCK_NONE;
    s->ending = MK_ENDING_TIMEOUT;
    if (s->complete)
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_ENDING_DONE);
    else if (s->x->response.sealed || s->tunnel)
        mk_h2_stream_reset(s, clock == MK_CLOCK_HANDLER ? MK_H2_INTERNAL_ERROR : MK_H2_CANCEL,
                           MK_ENDING_TIMEOUT);
    else
        mk_h2_flow_refuse(s, clock == MK_CLOCK_HANDLER ? 504 : 408);
}

void mk_h2_flow_run(struct mk_h2_stream *s)
{
    if (MK_UNLIKELY(s->left)) {
        mk_h2_stream_end(s, MK_ENDING_GONE);
        return;
    }
    if (MK_UNLIKELY(s->due)) {
        time_out(s);
        return;
    }
    if (MK_UNLIKELY(s->tunnel)) {
        mk_h2_tunnel_take_turn(s);
        return;
    }
    if (s->x->step == MK_FLOW_READY) { /* its source gave others their turn */
        mk_h2_stream_make_ready(s);
        return;
    }
    if (!s->go) {
        mk_h2_stream_wait(s);
        return;
    }
    s->go = s->wants_input = false;
    if (s->clock == MK_CLOCK_HANDLER)
        s->clock = MK_CLOCK_NONE; /* the next wait has all of its time */
    if (mk_flow_run(s->x))
        begin_response(s);
    else if (!s->go)
        mk_h2_stream_wait(s);
}
