/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/retry_budget.h"

/* Drops counts that are too old. */
static unsigned advance_to_second(struct mk_retry_budget *r, uint64_t now_ms)
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

void mk_retry_budget_count_request(struct mk_retry_budget *r, uint64_t now_ms)
{
    r->requests[advance_to_second(r, now_ms)]++;
}

bool mk_retry_budget_try_spend(struct mk_retry_budget *r, uint64_t now_ms, unsigned percent)
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
