/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events, which share the worker's clocks with sockets. */
#ifndef MK_WEBSOCKET_EVENTS_H
#define MK_WEBSOCKET_EVENTS_H

#include <monkey/events.h>

#include "websocket/ws_clock.h"

/* False when memory is out. */
bool mk_events_start(struct mk_ws_clock *c, struct mk_worker *w) MK_MUST_USE;
void mk_events_stop(struct mk_ws_clock *c);

/* As mk_events_open(). */
int mk_events_open_in(struct mk_ws_clock *c, struct mk_request *request, struct mk_response *r,
                      const struct mk_events_options *options, void *ctx, struct mk_events **out);

#endif
