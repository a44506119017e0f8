/* SPDX-License-Identifier: Apache-2.0 */
/* siege 4, text or JSON. siege rounds times to hundredths of a second, so 0 means unknown. */
#include "wr/clients/clients.h"
#include "wr/json.h"
#include "wr/text.h"

struct siege {
    double users, hits, seconds, megabytes, concurrency, successful, failed, longest;
    bool has_hits, has_seconds, has_successful, has_failed, is_capped;
};

static void parse_line(struct siege *s, mk_str line)
{
    double v;
    if (wr_text_scan(line, "Transactions: %d hits", &v)) {
        s->has_hits = true;
        s->hits = v;
    } else if (wr_text_scan(line, "** Preparing %d concurrent users", &v)) {
        s->users = v;
    } else if (wr_text_scan(line, "Elapsed time: %f secs", &v)) {
        s->has_seconds = true;
        s->seconds = v;
    } else if (wr_text_scan(line, "Data transferred: %f MB", &v)) {
        s->megabytes = v;
    } else if (wr_text_scan(line, "Concurrency: %f", &v)) {
        s->concurrency = v;
    } else if (wr_text_scan(line, "Successful transactions: %d", &v)) {
        s->has_successful = true;
        s->successful = v;
    } else if (wr_text_scan(line, "Failed transactions: %d", &v)) {
        s->has_failed = true;
        s->failed = v;
    } else if (wr_text_scan(line, "Longest transaction: %f", &v)) {
        s->longest = v;
    } else if (wr_text_scan(line, "WARNING: The number of users is capped at", &v)) {
        s->is_capped = true;
    }
}

static void parse_json(struct siege *s, mk_str json)
{
    s->has_hits = wr_json_number(json, "transactions", &s->hits);
    s->has_seconds = wr_json_number(json, "elapsed_time", &s->seconds);
    s->has_successful = wr_json_number(json, "successful_transactions", &s->successful);
    s->has_failed = wr_json_number(json, "failed_transactions", &s->failed);
    (void)wr_json_number(json, "data_transferred", &s->megabytes);
    (void)wr_json_number(json, "concurrency", &s->concurrency);
    (void)wr_json_number(json, "longest_transaction", &s->longest);
}

/* "failed" counts missing responses and those with a status of 500 and above. Other error responses are hits
 * that are not "successful". */
static bool fill_result(const struct siege *s, struct wr_result *out, const char **why)
{
    out->requests = (int64_t)s->hits;
    if (s->users > 0)
        out->connections = (int64_t)s->users;
    out->seconds = s->seconds;
    out->bytes = s->megabytes > 0 ? (int64_t)(s->megabytes * 0x1p20) : WR_UNKNOWN;
    out->errors.status = s->hits > s->successful ? (int64_t)(s->hits - s->successful) : 0;
    out->errors.other = (int64_t)s->failed;
    if (s->longest > 0)
        out->latency_us.max = s->longest * 1e6;
    /* siege's concurrency is the sum of all response times divided by the elapsed time: finer than its
     * mean. */
    if (s->concurrency > 0 && s->hits + s->failed > 0)
        out->latency_us.mean = s->concurrency * s->seconds / (s->hits + s->failed) * 1e6;
    return wr_result_fill_in(out, why);
}

bool wr_siege_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    struct siege s = {0};
    mk_str json, rest = output;
    wr_result_init(out);
    for (mk_str line; wr_text_next_line(&rest, &line);)
        parse_line(&s, line);
    if (!s.has_hits && wr_json_find_object(output, &json))
        parse_json(&s, json);
    if (s.is_capped)
        *why = "siege ran fewer clients than requested; raise `limit` in siege.conf (siege -C shows where it "
               "is)";
    else if (!s.has_hits)
        *why = "it has neither JSON nor a line \"Transactions\"; siege -q prints nothing without -j";
    else if (!s.has_seconds || !s.has_successful || !s.has_failed)
        *why = "it lacks the elapsed time or the successful or failed transactions";
    else
        return fill_result(&s, out, why);
    return false;
}
