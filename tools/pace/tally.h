/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the requests: every one that was due ends as right, or as one error of one class. */
#ifndef PACE_TALLY_H
#define PACE_TALLY_H

#include "base/def.h"
#include "pace/histogram.h"

enum pace_class {
    PACE_CONNECT, /* no connection */
    PACE_READ,    /* no answer, or none that is HTTP */
    PACE_WRITE,   /* the request could not be sent */
    PACE_TIMEOUT, /* no answer in time, counted from when it was due */
    PACE_STATUS,  /* an answer with another status */
    PACE_CONTENT, /* an answer with another content */
    PACE_CLASSES,
};

extern const char *const pace_class_names[PACE_CLASSES];

/* Nanoseconds. The scheduler of a busy machine may well take so long; what is beyond it spoils percentiles.
 */
enum { PACE_TALLY_WHY = 256, PACE_TALLY_LATE = 1000000 };

struct pace_tally {
    uint64_t asked, right, errors[PACE_CLASSES];
    char first[PACE_CLASSES][PACE_TALLY_WHY]; /* what the first error of each class was */
    uint64_t unsent;                          /* of the errors: never got as far as a connection */
    uint64_t queued;                          /* of those asked: waited for a connection to be free */
    uint64_t retried;  /* sent again, since the server had closed a connection between two requests */
    uint64_t opened;   /* connections */
    uint64_t stray;    /* connections on which bytes came that no request had asked for */
    uint64_t too_late; /* of those asked: left more than PACE_TALLY_LATE after they could have */
    uint64_t bytes;    /* received, heads included */
    uint64_t starved;  /* nanoseconds for which it wanted a processor and had none */
    uint64_t start, end, waited; /* nanoseconds; `waited`: the client had nothing to do */
    struct pace_histogram latency, late;
};

void pace_tally_init(struct pace_tally *t);
void pace_tally_fail(struct pace_tally *t, enum pace_class class, const char *fmt, ...) MK_PRINTF(3, 4);
/* How long after it could have a request left: nanoseconds for which the client itself is to blame. */
void pace_tally_send(struct pace_tally *t, uint64_t late);
uint64_t pace_tally_errors(const struct pace_tally *t);
/* The share of its time that the client was busy, 0 to 1. */
double pace_tally_busy(const struct pace_tally *t);
/* NULL: the client kept its own pace; else in what it failed, static. */
const char *pace_tally_judge(const struct pace_tally *t);

#endif
