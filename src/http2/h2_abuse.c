/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_abuse.h"

#include "http2/h2_write.h"

void mk_h2_abuse_init(struct mk_h2 *h2)
{
    h2->patience = h2->conn->service->limits->h2.patience;
    h2->patience_ms = h2->conn->service->loop->now_ms;
}

/* Restores a tenth of the budget each second. */
static void refill_budget(struct mk_h2 *h2)
{
    uint32_t most = h2->conn->service->limits->h2.patience;
    uint64_t passed_ms = h2->conn->service->loop->now_ms - h2->patience_ms;
    uint64_t by = passed_ms * most / 10000;
    if (!by)
        return; /* keeps the time that has passed for the next call */
    h2->patience = by < most - h2->patience ? h2->patience + (uint32_t)by : most;
    h2->patience_ms = h2->conn->service->loop->now_ms;
}

bool mk_h2_abuse_charge(struct mk_h2 *h2, uint32_t cost, enum mk_h2_reason error)
{
    if (h2->patience < cost)
        refill_budget(h2);
    if (h2->patience < cost) {
        mk_h2_write_goaway_error(h2, MK_H2_ENHANCE_YOUR_CALM, error);
        return false;
    }
    h2->patience -= cost;
    return true;
}
