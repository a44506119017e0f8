/* SPDX-License-Identifier: Apache-2.0 */
/* weighttp. Versions up to 0.4 and lwan's copy print text; version 0.5 prints JSON. All versions count a
 * broken connection as a failed request, and some do not sum the errors of their threads, so the status codes
 * tell how many of the failed requests got a response. */
#include "wr/clients/clients.h"
#include "wr/json.h"
#include "wr/text.h"

struct counts {
    bool has_time, has_requests, has_status;
    double succeeded, failed, errored, bad; /* bad: status 400 and above */
};

static void set_counts(struct wr_result *r, const struct counts *c)
{
    double broken = c->failed > c->bad ? c->failed - c->bad : 0;
    r->requests = (int64_t)(c->succeeded + (c->failed < c->bad ? c->failed : c->bad));
    r->errors.status = (int64_t)c->bad;
    r->errors.other = (int64_t)(c->errored > broken ? c->errored : broken);
}

static void parse_line(struct wr_result *r, struct counts *c, mk_str line)
{
    double v[6];
    if (wr_text_scan(line, "finished in %d sec, %d millisec and %d microsec, ", v)) {
        c->has_time = true;
        r->seconds = v[0] + v[1] / 1e3 + v[2] / 1e6;
    } else if (wr_text_scan(line, "finished in %f sec, ", v)) {
        c->has_time = true;
        r->seconds = v[0];
    } else if (wr_text_scan(
                   line, "requests: %d total, %d started, %d done, %d succeeded, %d failed, %d errored", v)) {
        c->has_requests = true;
        c->succeeded = v[3];
        c->failed = v[4];
        c->errored = v[5];
    } else if (wr_text_scan(line, "responses: %d success, %d fail, %d error", v)) {
        c->has_requests = true;
        c->succeeded = v[0];
        c->failed = v[1];
        c->errored = v[2];
    } else if (wr_text_scan(line, "status codes: %d 2xx, %d 3xx, %d 4xx, %d 5xx", v)) {
        c->has_status = true;
        c->bad = v[2] + v[3];
    } else if (wr_text_scan(line, "spawning thread #%d: %d concurrent requests", v)) {
        r->connections = (r->connections < 0 ? 0 : r->connections) + (int64_t)v[1];
    } else if (wr_text_scan(line, "traffic: %d bytes total", v)) {
        r->bytes = (int64_t)v[0];
    }
}

static bool parse_text(mk_str output, struct wr_result *out, const char **why)
{
    struct counts c = {0};
    for (mk_str line; wr_text_next_line(&output, &line);)
        parse_line(out, &c, line);
    if (c.has_time && c.has_requests && c.has_status) {
        set_counts(out, &c);
        return wr_result_fill_in(out, why);
    }
    wr_result_init(out);
    *why = !c.has_time       ? "it has neither JSON nor a line that begins with \"finished in\""
           : !c.has_requests ? "it has no line such as \"requests: 1000 total, ..., 0 errored\""
                             : "it has no line \"status codes\"";
    return false;
}

static void parse_latency(mk_str json, struct wr_latency *l)
{
    mk_str unit, times;
    if (!wr_json_member(json, MK_STR("response_times"), &times) ||
        !wr_json_member(times, MK_STR("unit"), &unit) || !mk_str_eq(unit, MK_STR("\"us\"")))
        return;
    (void)wr_json_number(times, "avg", &l->mean);
    (void)wr_json_number(times, "50%", &l->p50);
    (void)wr_json_number(times, "75%", &l->p75);
    (void)wr_json_number(times, "90%", &l->p90);
    (void)wr_json_number(times, "95%", &l->p95);
    (void)wr_json_number(times, "99%", &l->p99);
    (void)wr_json_number(times, "100%", &l->max);
}

static bool parse_json(mk_str json, struct wr_result *out, const char **why)
{
    struct counts c = {0};
    double v[2], bytes;
    if (!wr_json_number(json, "response_counts/pass", &c.succeeded) ||
        !wr_json_number(json, "response_counts/fail", &c.failed) ||
        !wr_json_number(json, "status_codes/4xx", &v[0]) ||
        !wr_json_number(json, "status_codes/5xx", &v[1]) ||
        !(wr_json_number(json, "secs_elapsed", &out->seconds) ||
          wr_json_number(json, "secs", &out->seconds))) {
        wr_result_init(out);
        *why = "its JSON lacks secs_elapsed, response_counts or status_codes";
        return false;
    }
    (void)wr_json_number(json, "response_counts/errs", &c.errored);
    c.bad = v[0] + v[1];
    set_counts(out, &c);
    if (wr_json_number(json, "traffic/bytes_total", &bytes))
        out->bytes = (int64_t)bytes;
    parse_latency(json, &out->latency_us);
    return wr_result_fill_in(out, why);
}

bool wr_weighttp_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    mk_str json;
    wr_result_init(out);
    return wr_json_find_object(output, &json) ? parse_json(json, out, why) : parse_text(output, out, why);
}
