/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests may be tried at another server: a part of those of the last seconds, so that servers in
 * trouble do not get several times their load. */
#ifndef MK_UPSTREAM_RETRY_BUDGET_H
#define MK_UPSTREAM_RETRY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MK_RETRY_SECONDS = 10,
    MK_RETRY_FREE = 3, /* a second, however few requests there are */
};

/* Of one upstream, in one worker; zero at first. */
struct mk_retry_budget {
    uint64_t second;                     /* of the last count */
    uint32_t requests[MK_RETRY_SECONDS]; /* in each of the last seconds, by second % MK_RETRY_SECONDS */
    uint32_t retries[MK_RETRY_SECONDS];
};

/* A request begins. */
void mk_retry_budget_count_request(struct mk_retry_budget *r, uint64_t now_ms);
/* May one more be tried again? Then it counts as such. */
bool mk_retry_budget_try_spend(struct mk_retry_budget *r, uint64_t now_ms, unsigned percent);

#endif
