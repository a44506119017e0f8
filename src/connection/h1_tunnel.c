/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1_tunnel.h"

#include "connection/h1_output.h"
#include "connection/h1_state.h"

void mk_h1_tunnel_start(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    mk_h1_state_close_after_response(h);
    if (d->reply.current == MK_RESPONSE_BUFFERED)
        mk_http_stream_set_response_state(
            d, MK_RESPONSE_HEAD_SENT); /* from here on, no error response can replace the response of a
                                        * failing source */
    if (d->state.current == MK_HTTP_STREAM_HALF_CLOSED_REMOTE)
        mk_http_stream_set_state(d, MK_HTTP_STREAM_OPEN);
    h->body = MK_BODY_TUNNEL;
    d->content_max = UINT64_MAX;
    mk_http_stream_allow_call(d);
}

/* Sends the rest of earlier output, then new data from the handler if the handler may be called. */
static enum mk_h1_progress send_to_client(struct mk_h1 *h, bool may_call)
{
    enum mk_h1_progress p = mk_send_queue_is_empty(&h->d.conn->out) ? MK_H1_COMPLETE : mk_h1_output_flush(h);
    if (p == MK_H1_COMPLETE && may_call && !mk_http_stream_response_written(&h->d))
        p = mk_h1_output_tunnel(h);
    if (p == MK_H1_COMPLETE)
        p = mk_h1_output_flush(h);
    if (p == MK_H1_SOCKET_FULL)
        mk_http_stream_allow_call(&h->d); /* the handler was not called, or has more to send */
    return p;
}

/* Signals EOF to the client; the client's direction stays open. */
static void shutdown_write(struct mk_h1 *h)
{
    struct mk_stream *stream = &h->d.conn->stream;
    if (h->persistence != MK_H1_WRITE_SHUTDOWN)
        stream->ops->shutdown(stream);
    h->persistence = MK_H1_WRITE_SHUTDOWN;
}

/* Runs both directions. Both set d->awaits; the condition that the client's direction has set must be
 * kept. */
static enum mk_h1_progress run_both_directions(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    bool may_call = mk_h1_state_may_call_handler(h);
    if (may_call) {
        mk_http_stream_begin_call(d);
        mk_http_stream_deliver_tunnel(d, mk_h1_state_has_input(d->conn));
    }
    uint8_t awaits = d->awaits;
    if (may_call)
        mk_http_stream_allow_call(d);
    enum mk_h1_progress p = send_to_client(h, may_call);
    if (p == MK_H1_SOCKET_FULL)
        return p;
    if (mk_http_stream_response_written(d) || (awaits == MK_AWAITS_BODY && d->awaits == MK_AWAITS_RESUME))
        d->awaits = awaits;
    return p;
}

enum mk_h1_tunnel_result mk_h1_tunnel_run(struct mk_h1 *h)
{
    struct mk_http_stream *d = &h->d;
    struct mk_conn *c = d->conn;
    uint64_t before = c->progress;
    enum mk_h1_progress p = run_both_directions(h);
    if (p == MK_H1_BROKEN || d->x->read_error || d->x->aborted) {
        if (!d->outcome)
            d->outcome = MK_OUTCOME_CLIENT_ABORTED;
        return MK_H1_TUNNEL_BROKEN;
    }
    if (mk_http_stream_response_written(d) && p == MK_H1_COMPLETE) {
        shutdown_write(h);
        if (mk_http_stream_is_tunnel_input_over(d, false))
            return MK_H1_TUNNEL_OVER;
    }
    if (c->progress != before && d->x->limits)
        mk_conn_stop_timeout(c); /* so that the timeout is looked up again: a plugin may have changed the
                                  * limits */
    if (c->progress != before || c->timeout != MK_TIMEOUT_TUNNEL)
        mk_conn_set_timeout(c, MK_TIMEOUT_TUNNEL);
    return MK_H1_TUNNEL_OPEN;
}
