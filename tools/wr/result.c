/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/result.h"

#include <math.h>

void wr_result_init(struct wr_result *r)
{
    *r = (struct wr_result){
        .requests = WR_NOT_TOLD,
        .seconds = WR_NOT_TOLD,
        .rate = WR_NOT_TOLD,
        .bytes = WR_NOT_TOLD,
        .errors = {WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD},
        .latency_us = {WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD, WR_NOT_TOLD,
                       WR_NOT_TOLD, WR_NOT_TOLD},
    };
}

int64_t wr_result_errors(const struct wr_result *r)
{
    const int64_t all[] = {r->errors.connect, r->errors.read,   r->errors.write,
                           r->errors.timeout, r->errors.status, r->errors.other};
    int64_t sum = WR_NOT_TOLD;
    for (size_t i = 0; i < MK_LEN(all); i++) {
        if (all[i] < 0)
            continue;
        if (__builtin_add_overflow(sum < 0 ? 0 : sum, all[i], &sum))
            return INT64_MAX;
    }
    return sum;
}

static bool give_up(struct wr_result *r, const char **why, const char *text)
{
    wr_result_init(r);
    *why = text;
    return false;
}

bool wr_result_finish(struct wr_result *r, const char **why)
{
    if (r->requests < 0)
        return give_up(r, why, "it does not say how many requests were answered");
    if (!(r->seconds > 0))
        r->seconds = r->rate > 0 && r->requests > 0 ? (double)r->requests / r->rate : WR_NOT_TOLD;
    if (!(r->rate > 0))
        r->rate = r->seconds > 0 ? (double)r->requests / r->seconds : WR_NOT_TOLD;
    if (!wr_is_told(r->seconds) || !wr_is_told(r->rate) || !isfinite(r->seconds) || !isfinite(r->rate))
        return give_up(r, why, "it does not say how long the requests took");
    return true;
}
