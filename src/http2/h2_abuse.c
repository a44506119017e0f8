/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_abuse.h"

#include "http2/h2_write.h"

void mk_h2_abuse_init(struct mk_h2 *h2)
{
    h2->abuse_budget = h2->conn->manager->limits->h2.abuse_budget;
    h2->abuse_refilled_ms = h2->conn->manager->loop->now_ms;
}

/* Restores a tenth of the budget each second. */
static void refill_budget(struct mk_h2 *h2)
{
    uint32_t most = h2->conn->manager->limits->h2.abuse_budget;
    uint64_t passed_ms = h2->conn->manager->loop->now_ms - h2->abuse_refilled_ms;
    uint64_t by = passed_ms * most / 10000;
    if (!by)
        return; /* the next call counts the elapsed time */
    h2->abuse_budget = by < most - h2->abuse_budget ? h2->abuse_budget + (uint32_t)by : most;
    h2->abuse_refilled_ms = h2->conn->manager->loop->now_ms;
}

bool mk_h2_abuse_charge(struct mk_h2 *h2, uint32_t cost, enum mk_h2_reason reason)
{
    if (h2->abuse_budget < cost)
        refill_budget(h2);
    if (h2->abuse_budget < cost) {
        mk_h2_write_goaway_error(h2, MK_H2_ENHANCE_YOUR_CALM, reason);
        return false;
    }
    h2->abuse_budget -= cost;
    return true;
}
