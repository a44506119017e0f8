/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_tunnel.h"

#include "proto/h1_input.h"
#include "proto/h1_output.h"

static struct mk_content *content_of(struct mk_h1 *h)
{
    return &h->x->response.content;
}

void mk_h1_tunnel_begin(struct mk_h1 *h)
{
    h->keep = h->unsent = false; /* a source that fails at once can't become another answer */
    h->body = MK_BODY_TUNNEL;
    h->content_max = UINT64_MAX;
    h->hears = h->go = true;
}

/* Has the peer ended its direction, or does nobody want to know? */
static bool has_heard_all(struct mk_h1 *h)
{
    bool by_source = !content_of(h)->tunnel->on_input;
    return h->body == MK_BODY_NONE || !h->hears || (by_source && h->complete);
}

static void throw_away(struct mk_h1 *h)
{
    char waste[4096];
    while (mk_h1_input_read(h, waste, sizeof waste) > 0)
        continue;
}

static void listen_in(struct mk_h1 *h)
{
    struct mk_content *content = content_of(h);
    if (h->hears && content->tunnel->on_input)
        h->hears = content->tunnel->on_input(content->source_ctx);
    if (!h->hears)
        throw_away(h);
}

static enum mk_h1_progress speak(struct mk_h1 *h, bool go)
{
    struct mk_conn *c = h->conn;
    enum mk_h1_progress p = mk_outq_empty(&c->out) ? MK_H1_COMPLETE : mk_h1_output_flush(h);
    if (p == MK_H1_COMPLETE && go && !h->complete)
        p = mk_h1_output_tunnel(h);
    if (p == MK_H1_COMPLETE)
        p = mk_h1_output_flush(h);
    if (p == MK_H1_WAITS_ROOM)
        h->go = true; /* nobody was asked, or not to the end */
    return p;
}

/* The peer is told that nothing more will come, and may go on by itself. */
static void end_ours(struct mk_h1 *h)
{
    if (!h->shut)
        h->conn->stream.ops->shutdown(&h->conn->stream);
    h->shut = true;
}

static enum mk_h1_tunnel_turn break_off(struct mk_h1 *h)
{
    if (!h->ending)
        h->ending = MK_ENDING_GONE;
    return MK_H1_TUNNEL_BROKEN;
}

enum mk_h1_tunnel_turn mk_h1_tunnel_take_turn(struct mk_h1 *h)
{
    struct mk_conn *c = h->conn;
    uint64_t before = c->progress;
    bool go = mk_h1_take_turn(h);
    if (go)
        listen_in(h);
    enum mk_h1_progress p = speak(h, go);
    if (p == MK_H1_BROKEN || h->broken)
        return break_off(h);
    if (h->complete && p == MK_H1_COMPLETE) {
        end_ours(h);
        if (has_heard_all(h))
            return MK_H1_TUNNEL_OVER;
    }
    if (c->progress != before || c->clock != MK_CLOCK_TUNNEL)
        mk_conn_set_clock(c, MK_CLOCK_TUNNEL);
    return MK_H1_TUNNEL_OPEN;
}
