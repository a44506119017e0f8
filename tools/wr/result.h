/* SPDX-License-Identifier: Apache-2.0 */
/* The results that a load client reported for one shot, in the same terms for all clients. Every number may
 * be WR_UNKNOWN: wr guesses nothing that a client does not report. */
#ifndef WR_RESULT_H
#define WR_RESULT_H

#include "base/compiler.h"

#define WR_UNKNOWN (-1)

/* Returns whether a number of a result is known. Known numbers are finite and not negative. */
static inline bool wr_is_known(double value)
{
    return value >= 0;
}

struct wr_errors {
    int64_t connect; /* failed connects */
    int64_t read;    /* connection errors while waiting for or reading a response */
    int64_t write;
    int64_t timeout;
    int64_t status; /* responses with status 400 and above, or a status that the client counts as failed */
    int64_t other;  /* failures that the client does not classify */
};

struct wr_latency { /* in microseconds */
    double mean, p50, p75, p90, p95, p99, p999, max;
};

struct wr_result {
    int64_t requests; /* complete responses of any status */
    int64_t served; /* requests the server handled in the client's lifetime; WR_UNKNOWN: same as `requests` */
    int64_t connections; /* concurrent connections according to the client */
    double seconds;
    double rate;   /* `requests` per second */
    int64_t bytes; /* received; includes headers if the client counts them */
    struct wr_errors errors;
    struct wr_latency latency_us;
    double busy;       /* share of time that the client worked; busy-waiting does not count */
    const char *doubt; /* constant text: why the client itself doubts its latencies; NULL if it does not */
    unsigned doubtful; /* bit mask of the doubtful quantiles; if 0 with a `doubt`, all are doubtful */
};

enum { WR_QUANTILES = 7 };

extern const char *const wr_result_quantiles[WR_QUANTILES];

/* Sets all numbers to WR_UNKNOWN. */
void wr_result_init(struct wr_result *r);
/* Returns the requests in the client's whole lifetime: the divisor of the server's CPU time. */
int64_t wr_result_requests_served(const struct wr_result *r);
/* Returns the sum of the reported errors; WR_UNKNOWN if none is reported. */
int64_t wr_result_errors(const struct wr_result *r);
/* The last step of each parser: computes the rate or the seconds if one of them is missing, and drops the
 * latencies if there were no requests. If the number of requests is missing, or both the rate and the
 * seconds, sets all numbers to WR_UNKNOWN, stores the reason in `why`, and returns false. */
bool wr_result_fill_in(struct wr_result *r, const char **why);

#endif
