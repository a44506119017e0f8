/* SPDX-License-Identifier: Apache-2.0 */
/* What a load client reported about one shot, in the same terms for all clients. Every number may be
 * WR_UNKNOWN: nothing is guessed for a client that does not report it. */
#ifndef WR_RESULT_H
#define WR_RESULT_H

#include "base/compiler.h"

#define WR_UNKNOWN (-1)

/* For all numbers of a result; reported ones are finite and not negative. */
static inline bool wr_is_known(double value)
{
    return value >= 0;
}

struct wr_errors {
    int64_t connect; /* connections that could not be opened */
    int64_t read;    /* broken while the answer was awaited or read */
    int64_t write;
    int64_t timeout;
    int64_t status; /* answers of 400 and above, or what the client takes for a failure by its status */
    int64_t other;  /* what the client counts as failed without saying why */
};

struct wr_latency { /* microseconds */
    double mean, p50, p75, p90, p95, p99, p999, max;
};

struct wr_result {
    int64_t requests;    /* answers that came back whole, of whatever status */
    int64_t served;      /* what the server had to do in the client's whole life; WR_UNKNOWN: as `requests` */
    int64_t connections; /* that the client says it has used at the same time */
    double seconds;
    double rate;   /* `requests` per second */
    int64_t bytes; /* received; with heads where the client counts them */
    struct wr_errors errors;
    struct wr_latency latency_us;
    double busy;       /* the share of its time for which the client worked; a loop that waits is no work */
    const char *doubt; /* why the client itself does not trust its times, in fixed words; NULL if it does */
    unsigned doubtful; /* a bit for each of wr_result_quantiles that it means; with a doubt and without a bit:
                          all */
};

enum { WR_QUANTILES = 7 };

extern const char *const wr_result_quantiles[WR_QUANTILES];

/* All numbers become WR_UNKNOWN. */
void wr_result_init(struct wr_result *r);
/* The requests that the server's time is divided by: those of the client's whole life, as that time is. */
int64_t wr_result_served(const struct wr_result *r);
/* The sum of the reported errors; WR_UNKNOWN without any. */
int64_t wr_result_errors(const struct wr_result *r);
/* Readers end with it: computes the rate or the seconds from the others, and drops the latency without
 * requests. False when the requests or both of the others are missing: then all numbers are WR_UNKNOWN, and
 * `why` says what is missing. */
bool wr_result_validate(struct wr_result *r, const char **why);

#endif
