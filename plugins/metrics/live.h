/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches the live page: each gets an event a second, all of a worker the same one. And the worker's own
 * part: it measures itself while it has something to do. */
#ifndef METRICS_LIVE_H
#define METRICS_LIVE_H

#include "settings.h"

struct event;
struct watcher;

/* One for each worker. */
struct live {
    struct mk_worker *worker;
    const struct metrics *metrics;
    struct meter meter;
    struct mk_alarm *settle; /* runs for a second from the first request after a rest */
    bool is_settling, was_busy;
    struct mk_alarm *tick; /* runs while somebody watches */
    struct event *latest;
    uint64_t latest_ms, n_events;
    struct watcher *watchers;
    uint32_t n_watchers;
};

/* NULL when memory is out. */
struct live *metrics_live_new(struct mk_worker *w, const struct metrics *metrics);
void metrics_live_free(struct live *l);
/* A request is over: what it changed will be measured soon. */
void metrics_live_touch(struct live *l);
/* Is the worker told to end? */
bool metrics_live_is_leaving(const struct live *l);

/* Makes the response a stream of events. 0, -EBUSY when `max` watch already, or -ENOMEM. */
int metrics_live_watch(struct live *l, struct mk_request *request, struct mk_response *response,
                       uint32_t max);

#endif
