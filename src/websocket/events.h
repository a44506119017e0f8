/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events. */
#ifndef MK_WEBSOCKET_EVENTS_H
#define MK_WEBSOCKET_EVENTS_H

#include <monkey/events.h>
#include <monkey/timer.h>

#include "base/list.h"

/* State of all event streams of a worker. */
struct mk_events_worker {
    struct mk_worker *worker;
    struct mk_list open; /* streams */
};

void mk_events_worker_init(struct mk_events_worker *w, struct mk_worker *worker);
/* Closes all streams after their queued data is sent: the worker is shutting down. */
void mk_events_worker_drain(struct mk_events_worker *w);

/* Implements mk_events_open(). */
int mk_events_worker_open(struct mk_events_worker *w, struct mk_request *request, struct mk_response *r,
                          const struct mk_events_options *options, void *ctx, struct mk_events **out);

#endif
