/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_tunnel.h"

#include "proto/h1_output.h"
#include "proto/h1_state.h"

void mk_h1_tunnel_begin(struct mk_h1 *h)
{
    struct mk_driver *d = &h->d;
    mk_h1_state_close_after(h);
    if (d->reply.is == MK_REPLY_BUFFERED)
        mk_driver_move_reply(
            d,
            MK_REPLY_CONTENT); /* from here on, a source that fails cannot be replaced by an error response */
    if (d->state.is == MK_DRIVER_HALF_CLOSED_REMOTE)
        mk_driver_move(d, MK_DRIVER_OPEN);
    h->body = MK_BODY_TUNNEL;
    d->content_max = UINT64_MAX;
    mk_driver_resume(d);
}

/* Sends the rest of earlier output, then, if the handler may be called, what it has for the client. */
static enum mk_h1_progress send_ours(struct mk_h1 *h, bool may_call)
{
    enum mk_h1_progress p = mk_send_queue_is_empty(&h->d.conn->out) ? MK_H1_COMPLETE : mk_h1_output_flush(h);
    if (p == MK_H1_COMPLETE && may_call && !mk_driver_is_written(&h->d))
        p = mk_h1_output_tunnel(h);
    if (p == MK_H1_COMPLETE)
        p = mk_h1_output_flush(h);
    if (p == MK_H1_WAITS_ROOM)
        mk_driver_resume(&h->d); /* the handler was not called, or has more to send */
    return p;
}

/* Tells the client that nothing more will follow; its own direction stays open. */
static void shut_down(struct mk_h1 *h)
{
    struct mk_stream *stream = &h->d.conn->stream;
    if (h->persistence != MK_H1_SHUT)
        stream->ops->shutdown(stream);
    h->persistence = MK_H1_SHUT;
}

/* Runs both directions. Each sets what it awaits, and what the client's direction awaits must not be lost. */
static enum mk_h1_progress run(struct mk_h1 *h)
{
    struct mk_driver *d = &h->d;
    bool may_call = mk_h1_state_may_call(h);
    if (may_call) {
        mk_driver_call(d);
        mk_driver_feed_tunnel(d);
    }
    uint8_t awaits = d->awaits;
    if (may_call)
        mk_driver_resume(d);
    enum mk_h1_progress p = send_ours(h, may_call);
    if (p == MK_H1_WAITS_ROOM)
        return p;
    if (mk_driver_is_written(d) || (awaits == MK_AWAITS_CONTENT && d->awaits == MK_AWAITS_RESUME))
        d->awaits = awaits;
    return p;
}

enum mk_h1_tunnel_turn mk_h1_tunnel_run(struct mk_h1 *h)
{
    struct mk_driver *d = &h->d;
    struct mk_conn *c = d->conn;
    uint64_t before = c->progress;
    enum mk_h1_progress p = run(h);
    if (p == MK_H1_BROKEN || d->x->read_error || d->x->aborted) {
        if (!d->ending)
            d->ending = MK_OUTCOME_CLIENT_ABORTED;
        return MK_H1_TUNNEL_BROKEN;
    }
    if (mk_driver_is_written(d) && p == MK_H1_COMPLETE) {
        shut_down(h);
        if (mk_driver_is_tunnel_input_over(d, false))
            return MK_H1_TUNNEL_OVER;
    }
    if (c->progress != before && d->x->limits)
        mk_conn_stop_clock(c); /* a plugin may have changed them since */
    if (c->progress != before || c->clock != MK_CLOCK_TUNNEL)
        mk_conn_set_clock(c, MK_CLOCK_TUNNEL);
    return MK_H1_TUNNEL_OPEN;
}
