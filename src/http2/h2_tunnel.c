/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_tunnel.h"

#include "http2/h2_stream.h"

void mk_h2_tunnel_begin(struct mk_h2_stream *s)
{
    mk_http_stream_allow_call(&s->d);
    s->d.content_max = UINT64_MAX;
    mk_h2_stream_set_timeout(s, MK_TIMEOUT_TUNNEL);
    mk_h2_stream_wake(s);
    mk_conn_resume(s->h2->conn);
}

static void close_stream(struct mk_h2_stream *s)
{
    if (mk_http_stream_request_received(&s->d))
        mk_h2_stream_close(s, MK_OUTCOME_OK);
    else
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
}

void mk_h2_tunnel_run(struct mk_h2_stream *s)
{
    struct mk_http_stream *d = &s->d;
    bool may_call = d->awaits == MK_AWAITS_NOTHING;
    mk_http_stream_begin_call(d);
    if (may_call)
        mk_http_stream_deliver_tunnel(d, s->first != NULL);
    if (d->x->read_error || d->x->aborted) {
        mk_h2_stream_reset(s, MK_H2_CANCEL, MK_OUTCOME_CLIENT_ABORTED);
        return;
    }
    if (mk_http_stream_response_written(d) && mk_http_stream_is_tunnel_input_over(d, s->first != NULL)) {
        close_stream(s);
        return;
    }
    if (s->rate.progressed != s->progress) {
        s->rate.progressed = s->progress;
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_TUNNEL);
    }
    if (mk_http_stream_response_written(d))
        return;
    mk_http_stream_allow_call(d);
    mk_h2_stream_queue_output(s);
}
