/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the requests: every one that was due ends as right, or as one error of one class. */
#ifndef PACE_TALLY_H
#define PACE_TALLY_H

#include "base/compiler.h"
#include "pace/histogram.h"

enum pace_error_class {
    PACE_CONNECT, /* no connection */
    PACE_READ,    /* no answer, or none that is HTTP */
    PACE_WRITE,   /* the request could not be sent */
    PACE_TIMEOUT, /* no answer in time, counted from when it was due */
    PACE_STATUS,  /* an answer with another status */
    PACE_CONTENT, /* an answer with another content */
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
    char first[PACE_CLASSES][PACE_TALLY_WHY]; /* what the first error of each class was */
    uint64_t unsent;                          /* of the errors: never got as far as a connection */
    uint64_t missed;  /* of the timeouts: a good part of the time had passed while the client did not run */
    uint64_t queued;  /* of those asked: waited for a connection to be free */
    uint64_t retried; /* sent again, since the server had closed a connection between two requests */
    uint64_t opened;  /* connections */
    uint64_t stray;   /* connections on which bytes came that no request had asked for */
    uint64_t bytes;   /* received, heads included */
    uint64_t starved; /* nanoseconds for which it wanted a processor and had none */
    uint64_t start, end, waited; /* nanoseconds; `waited`: the client had nothing to do */
    /* `least_conn`: the latency without all that the client itself may have added, so the truth is between both.
     */
    struct pace_histogram latency, late, least;
};

void pace_tally_init(struct pace_tally *t);
void pace_tally_add_error(struct pace_tally *t, enum pace_error_class class, const char *fmt, ...)
    MK_PRINTF(3, 4);
/* A right answer; `own` nanoseconds of its latency may be the client's. */
void pace_tally_add_response(struct pace_tally *t, uint64_t latency, uint64_t own);
/* A request of which no more can come in time, of which so much may be the client's. */
void pace_tally_add_timeout(struct pace_tally *t, uint64_t timeout, uint64_t own);
uint64_t pace_tally_errors(const struct pace_tally *t);
/* The share of its time that the client was busy, 0 to 1. */
double pace_tally_busy_share(const struct pace_tally *t);
/* May too much of it be the client's own time? False for quantiles that the histogram cannot give. */
bool pace_tally_is_quantile_doubtful(const struct pace_tally *t, const struct pace_quantile *q);
bool pace_tally_is_mean_doubtful(const struct pace_tally *t);
/* NULL: the client kept its own pace; else in what it failed, static. Then some of the above are in doubt. */
const char *pace_tally_client_problem(const struct pace_tally *t);

#endif
