/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/result.h"

static const struct wr_latency NO_LATENCY = {
    WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN,
};

const char *const wr_result_quantiles[WR_QUANTILES] = {"mean", "p50", "p75", "p90", "p95", "p99", "p999"};

void wr_result_init(struct wr_result *r)
{
    *r = (struct wr_result){
        .requests = WR_UNKNOWN,
        .served = WR_UNKNOWN,
        .connections = WR_UNKNOWN,
        .seconds = WR_UNKNOWN,
        .rate = WR_UNKNOWN,
        .bytes = WR_UNKNOWN,
        .busy = WR_UNKNOWN,
        .errors = {WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN},
        .latency_us = NO_LATENCY,
    };
}

int64_t wr_result_requests_served(const struct wr_result *r)
{
    return r->served < 0 ? r->requests : r->served;
}

int64_t wr_result_errors(const struct wr_result *r)
{
    const int64_t all[] = {r->errors.connect, r->errors.read,   r->errors.write,
                           r->errors.timeout, r->errors.status, r->errors.other};
    int64_t sum = WR_UNKNOWN;
    for (size_t i = 0; i < MK_LEN(all); i++) {
        if (all[i] < 0)
            continue;
        if (__builtin_add_overflow(sum < 0 ? 0 : sum, all[i], &sum))
            return INT64_MAX;
    }
    return sum;
}

static bool fail_result(struct wr_result *r, const char **why, const char *text)
{
    wr_result_init(r);
    *why = text;
    return false;
}

bool wr_result_fill_in(struct wr_result *r, const char **why)
{
    double requests = (double)r->requests;
    if (r->requests < 0)
        return fail_result(r, why, "it does not report the number of responses");
    if (r->requests == 0) { /* without responses there is no latency, whatever the client prints */
        r->latency_us = NO_LATENCY;
        r->rate = r->seconds > 0 ? 0 : WR_UNKNOWN;
    }
    if (!(r->seconds > 0))
        r->seconds = r->rate > 0 ? requests / r->rate : WR_UNKNOWN;
    if (!wr_is_known(r->seconds))
        return fail_result(r, why, "it does not report how long the requests took");
    if (!wr_is_known(r->rate))
        r->rate = requests / r->seconds;
    return true;
}
