/* SPDX-License-Identifier: Apache-2.0 */
/* Viewers of the live page: each gets the history, then one event a second, the same for all viewers of a
 * worker. Also measures the worker itself while it is busy. */
#ifndef METRICS_LIVE_H
#define METRICS_LIVE_H

#include "sampler.h"

struct event;
struct live_viewer;

/* One per worker. */
struct live {
    struct mk_worker *worker;
    const struct metrics *metrics;
    struct meter meter;
    struct counters *counters;
    struct mk_timer settle; /* runs for a second after the first request of a busy period */
    bool is_settling, was_busy;
    struct sampler *sampler; /* in the first worker; else NULL */
    struct mk_timer tick;    /* runs while the page has viewers */
    struct event *latest;
    uint64_t latest_ms, n_events;
    struct live_viewer *watchers;
    uint32_t n_watchers;
};

/* NULL: out of memory. */
struct live *metrics_live_new(struct mk_worker *w, const struct metrics *metrics);
void metrics_live_free(struct live *l);
/* After each request: measures the worker within a second. */
void metrics_live_schedule_measure(struct live *l);

/* Turns the response into an event stream. 0, -EBUSY: `max` viewers already, or -ENOMEM. */
int metrics_live_add_viewer(struct live *l, struct mk_request *request, struct mk_response *response,
                            uint32_t max);

#endif
