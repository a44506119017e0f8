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
    uint64_t second;                     /* the second in which a request was last counted */
    uint32_t requests[MK_RETRY_SECONDS]; /* requests in each recent second, at index second %
                                          * MK_RETRY_SECONDS */
    uint32_t retries[MK_RETRY_SECONDS];
};

/* Counts a new request. */
void mk_retry_budget_count_request(struct mk_retry_budget *r, uint64_t now_ms);
/* May one more request be retried? If so, counts it. */
bool mk_retry_budget_try_spend(struct mk_retry_budget *r, uint64_t now_ms, unsigned percent);

#endif
