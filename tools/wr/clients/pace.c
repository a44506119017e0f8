/* SPDX-License-Identifier: Apache-2.0 */
/* pace, Monkey's own client: one JSON document with null for unknown values. Its "requests" are only the
 * correct responses. */
#include <stdio.h>
#include <string.h>

#include "wr/clients/clients.h"
#include "wr/json.h"

struct count {
    const char *path;
    int64_t *target;
};

struct quantity {
    const char *path;
    double *target;
};

static void parse_counts(mk_str json, struct wr_result *out)
{
    const struct count counts[] = {
        {"requests", &out->requests},
        {"bytes", &out->bytes},
        {"connections", &out->connections},
        {"errors/connect", &out->errors.connect},
        {"errors/read", &out->errors.read},
        {"errors/write", &out->errors.write},
        {"errors/timeout", &out->errors.timeout},
        {"errors/status", &out->errors.status},
        {"errors/content", &out->errors.other},
    };
    for (size_t i = 0; i < MK_LEN(counts); i++) {
        double value;
        if (wr_json_number(json, counts[i].path, &value))
            *counts[i].target = (int64_t)value;
    }
}

/* Sets the number of requests that the server handled while wr measured it: all that were sent, including
 * those with wrong responses, plus the probe request and one request per connection before the start. */
static void parse_requests_served(mk_str json, struct wr_result *out)
{
    double asked, unsent, before;
    if (wr_json_number(json, "asked", &asked) && wr_json_number(json, "unsent", &unsent) &&
        wr_json_number(json, "before/requests", &before) && asked >= unsent)
        out->served = (int64_t)(asked - unsent + before);
}

static void parse_quantities(mk_str json, struct wr_result *out)
{
    struct wr_latency *l = &out->latency_us;
    const struct quantity quantities[] = {
        {"seconds", &out->seconds},    {"rate", &out->rate},        {"busy", &out->busy},
        {"latency_us/mean", &l->mean}, {"latency_us/p50", &l->p50}, {"latency_us/p75", &l->p75},
        {"latency_us/p90", &l->p90},   {"latency_us/p95", &l->p95}, {"latency_us/p99", &l->p99},
        {"latency_us/p999", &l->p999}, {"latency_us/max", &l->max},
    };
    for (size_t i = 0; i < MK_LEN(quantities); i++)
        (void)wr_json_number(json, quantities[i].path, quantities[i].target);
}

static void parse_doubtful_latencies(mk_str json, struct wr_result *out)
{
    mk_str list;
    char name[16];
    out->doubt = "it did not keep its own pace, so its latency is not the server's alone";
    if (!wr_json_member(json, MK_STR("doubtful"), &list))
        return;
    for (unsigned i = 0; i < WR_QUANTILES; i++) {
        int n = snprintf(name, sizeof name, "\"%s\"", wr_result_quantiles[i]);
        if (memmem(list.p, list.len, name, (size_t)n))
            out->doubtful |= 1u << i;
    }
}

bool wr_pace_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    mk_str json, kept;
    wr_result_init(out);
    if (!wr_json_find_object(output, &json)) {
        *why = "it has no JSON object at the beginning of a line";
        return false;
    }
    parse_counts(json, out);
    parse_requests_served(json, out);
    parse_quantities(json, out);
    if (wr_json_member(json, MK_STR("kept_pace"), &kept) && mk_str_eq(kept, MK_STR("false")))
        parse_doubtful_latencies(json, out);
    return wr_result_fill_in(out, why);
}
