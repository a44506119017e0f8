/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_tunnel.h"

#include "http2/h2_stream.h"

void mk_h2_tunnel_begin(struct mk_h2_stream *s)
{
    mk_driver_resume(&s->d);
    s->d.content_max = UINT64_MAX;
    mk_h2_stream_set_clock(s, MK_CLOCK_TUNNEL);
    mk_h2_stream_wake(s);
    mk_conn_resume(s->h2->conn);
}

static void close_stream(struct mk_h2_stream *s)
{
    if (mk_driver_is_received(&s->d))
        mk_h2_stream_close(s, MK_OUTCOME_OK);
    else
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
}

void mk_h2_tunnel_run(struct mk_h2_stream *s)
{
    struct mk_driver *d = &s->d;
    bool may_call = d->awaits == MK_AWAITS_NOTHING;
    mk_driver_call(d);
    if (may_call)
        mk_driver_feed_tunnel(d);
    if (d->x->read_error || d->x->aborted) {
        mk_h2_stream_reset(s, MK_H2_CANCEL, MK_OUTCOME_CLIENT_ABORTED);
        return;
    }
    if (mk_driver_is_written(d) && mk_driver_is_tunnel_input_over(d, s->first != NULL)) {
        close_stream(s);
        return;
    }
    if (s->rate.progressed != s->progress) {
        s->rate.progressed = s->progress;
        mk_h2_stream_set_clock(s, MK_CLOCK_TUNNEL);
    }
    if (mk_driver_is_written(d))
        return;
    mk_driver_resume(d);
    mk_h2_stream_queue_output(s);
}
