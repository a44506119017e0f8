/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2_tunnel.h"

static struct mk_content *content_of(struct mk_h2_stream *s)
{
    return &s->x->response.content;
}

void mk_h2_tunnel_begin(struct mk_h2_stream *s)
{
    s->tunnel = s->hears = s->go = true;
    s->content_max = UINT64_MAX;
    mk_h2_stream_set_clock(s, MK_CLOCK_TUNNEL);
    mk_h2_stream_wake(s);
    mk_conn_resume(s->h2->conn);
}

/* Has the client ended its direction, or does nobody want to know? */
static bool has_heard_all(struct mk_h2_stream *s)
{
    bool by_source = !content_of(s)->tunnel->on_input;
    return (s->input_ended && !s->first) || !s->hears || (by_source && s->complete);
}

static void listen_in(struct mk_h2_stream *s)
{
    struct mk_content *content = content_of(s);
    char waste[4096];
    if (s->hears && content->tunnel->on_input)
        s->hears = content->tunnel->on_input(content->source_ctx);
    if (!s->hears)
        while (s->x->request.ops->read(s, waste, sizeof waste) > 0)
            ;
}

void mk_h2_tunnel_take_turn(struct mk_h2_stream *s)
{
    bool go = s->go;
    s->go = s->wants_input = false;
    if (go)
        listen_in(s);
    if (s->broken) {
        mk_h2_stream_reset(s, MK_H2_CANCEL, MK_ENDING_GONE);
        return;
    }
    if (s->complete && has_heard_all(s)) {
        if (s->input_ended)
            mk_h2_stream_end(s, MK_ENDING_DONE);
        else
            mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_ENDING_DONE);
        return;
    }
    if (s->rate.progressed != s->progress) {
        s->rate.progressed = s->progress;
        mk_h2_stream_set_clock(s, MK_CLOCK_TUNNEL);
    }
    s->go = !s->complete;
    if (s->go)
        mk_h2_stream_make_ready(s);
}
