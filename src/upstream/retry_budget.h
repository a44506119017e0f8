/* SPDX-License-Identifier: Apache-2.0 */
/* Retry budget: limits retries to a share of recent requests, so that failing servers do not receive a
 * multiple of their load. */
#ifndef MK_UPSTREAM_RETRY_BUDGET_H
#define MK_UPSTREAM_RETRY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MK_RETRY_SECONDS = 10,
    MK_RETRY_FREE = 3, /* retries per second that are always allowed */
};

/* State of one upstream in one worker; initially zero. */
struct mk_retry_budget {
    uint64_t second;                     /* the second of the last update */
    uint32_t requests[MK_RETRY_SECONDS]; /* requests in each recent second, at index second %
                                          * MK_RETRY_SECONDS */
    uint32_t retries[MK_RETRY_SECONDS];
};

/* Clears the counts of expired seconds. Returns the index of the current second. */
static inline unsigned advance_to_second(struct mk_retry_budget *r, uint64_t now_ms)
{
    uint64_t now = now_ms / 1000;
    if (now > r->second + MK_RETRY_SECONDS)
        r->second = now - MK_RETRY_SECONDS;
    while (r->second < now) {
        unsigned i = (unsigned)(++r->second % MK_RETRY_SECONDS);
        r->requests[i] = r->retries[i] = 0;
    }
    return (unsigned)(r->second % MK_RETRY_SECONDS);
}

/* Counts a new request. */
static inline void mk_retry_budget_count_request(struct mk_retry_budget *r, uint64_t now_ms)
{
    r->requests[advance_to_second(r, now_ms)]++;
}

/* May one more request be retried? If so, counts the retry. */
static inline bool mk_retry_budget_try_spend(struct mk_retry_budget *r, uint64_t now_ms, unsigned percent)
{
    unsigned now = advance_to_second(r, now_ms);
    uint64_t requests = 0, retries = 0;
    for (unsigned i = 0; i < MK_RETRY_SECONDS; i++) {
        requests += r->requests[i];
        retries += r->retries[i];
    }
    bool may = percent && (r->retries[now] < MK_RETRY_FREE || (retries + 1) * 100 <= requests * percent);
    r->retries[now] += may;
    return may;
}

#endif
