/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the results: every due request ends as a correct response or as one error of one class. */
#ifndef PACE_TALLY_H
#define PACE_TALLY_H

#include "base/compiler.h"
#include "pace/histogram.h"

enum pace_error_class {
    PACE_CONNECT, /* no connection */
    PACE_READ,    /* no response, or invalid HTTP */
    PACE_WRITE,   /* the request could not be sent */
    PACE_TIMEOUT, /* no response in time, counted from the due time */
    PACE_STATUS,  /* a response with an unexpected status */
    PACE_CONTENT, /* a response with an unexpected body */
    PACE_CLASSES,
};

extern const char *const pace_error_class_names[PACE_CLASSES];

enum { PACE_TALLY_WHY = 256, PACE_QUANTILES = 6 };

extern const struct pace_quantile {
    const char *name;
    double share;
} pace_quantiles[PACE_QUANTILES];

struct pace_tally {
    uint64_t asked, right, errors[PACE_CLASSES];
    char first[PACE_CLASSES][PACE_TALLY_WHY]; /* text of the first error of each class */
    uint64_t unsent;                          /* errors of requests that had no connection */
    uint64_t missed;                          /* timeouts that pace itself may have caused */
    uint64_t queued;                          /* requests that waited for a free connection */
    uint64_t retried;            /* sent again because the server had closed an idle connection */
    uint64_t opened;             /* connections */
    uint64_t stray;              /* connections with unexpected data after a response */
    uint64_t bytes;              /* received, including headers */
    uint64_t starved;            /* run-queue wait in ns: runnable, but without a CPU */
    uint64_t start, end, waited; /* ns; `waited`: total time without work */
    /* `least` is the latency minus all delay that may be pace's own: the true latency is between `least`
     * and `latency`. */

    struct pace_histogram latency, late, least;
};

void pace_tally_init(struct pace_tally *t);
void pace_tally_add_error(struct pace_tally *t, enum pace_error_class class, const char *fmt, ...)
    MK_PRINTF(3, 4);
/* Counts a correct response; up to `own` ns of its latency may be pace's own delay. */
void pace_tally_add_response(struct pace_tally *t, uint64_t latency, uint64_t own);
/* Counts a request that missed its timeout; up to `own` ns of the wait may be pace's own delay. */
void pace_tally_add_timeout(struct pace_tally *t, uint64_t timeout, uint64_t own);
uint64_t pace_tally_errors(const struct pace_tally *t);
/* Returns the share of the time during which pace was busy, from 0 to 1. */
double pace_tally_busy_share(const struct pace_tally *t);
/* Returns whether too much of the latency may be pace's own delay; false for quantiles that the histogram
 * cannot compute. */
bool pace_tally_is_quantile_doubtful(const struct pace_tally *t, const struct pace_quantile *q);
bool pace_tally_is_mean_doubtful(const struct pace_tally *t);
/* Returns a static string with the reason if pace could not keep up, so that some latencies are unreliable;
 * otherwise NULL. */
const char *pace_tally_doubt_reason(const struct pace_tally *t);

#endif
