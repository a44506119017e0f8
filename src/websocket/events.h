/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, which share the worker's clocks with sockets. */
#ifndef MK_WEBSOCKET_EVENTS_H
#define MK_WEBSOCKET_EVENTS_H

#include <monkey/events.h>

#include "websocket/ws_clock.h"

/* False when memory is out. */
/* What a worker keeps for all streams. */
struct mk_events_worker {
    struct mk_ws_clock clock;
    struct mk_list open; /* streams */
};

bool mk_events_start(struct mk_events_worker *w, struct mk_worker *worker) MK_MUST_USE;
void mk_events_stop(struct mk_events_worker *w);
/* Ends all streams when what they have queued is sent: the worker is to end. */
void mk_events_drain(struct mk_events_worker *w);

/* As mk_events_open(). */
int mk_events_open_in(struct mk_events_worker *w, struct mk_request *request, struct mk_response *r,
                      const struct mk_events_options *options, void *ctx, struct mk_events **out);

#endif
