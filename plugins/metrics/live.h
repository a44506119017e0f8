/* SPDX-License-Identifier: Apache-2.0 */
/* Serves viewers of the live page. Each viewer gets the history, then one event a second, which is the same
 * for all viewers of a worker. Also measures the worker itself while it is busy. */
#ifndef METRICS_LIVE_H
#define METRICS_LIVE_H

#include "sampler.h"

struct event;
struct live_viewer;

/* Per-worker data. */
struct live {
    struct mk_worker *worker;
    const struct metrics *metrics;
    struct process_reporter reporter;
    struct counters *counters;
    struct mk_timer settle; /* fires a second after the first request of a busy period */
    bool is_settling, was_busy;
    struct sampler *sampler; /* NULL except in the first worker */
    struct mk_timer tick;    /* active while the page has viewers */
    struct event *latest;
    uint64_t latest_ms, n_events;
    struct live_viewer *viewers;
    uint32_t n_viewers;
};

/* Returns NULL if out of memory. */
struct live *metrics_live_new(struct mk_worker *w, const struct metrics *metrics);
void metrics_live_free(struct live *l);
/* Called after each request. Measures the worker within a second. */
void metrics_live_schedule_measure(struct live *l);

/* Turns the response into an event stream. Returns 0, -EBUSY if there are already `max` viewers, or
 * -ENOMEM. */
int metrics_live_add_viewer(struct live *l, struct mk_request *request, struct mk_response *response,
                            uint32_t max);

#endif
