/* SPDX-License-Identifier: Apache-2.0 */
/* wrk 4, and wrk2, with percentiles that are relative to the due times of requests. */
#include "wr/clients/clients.h"
#include "wr/text.h"

/* wrk prints error counts only if there are errors, between the lines with the requests and the rate. If the
 * output ends before the rate, the errors are unknown. */
struct wrk {
    struct wr_result *r;
    bool has_requests, has_rate;
    enum { BEFORE, INSIDE, AFTER } table;
};

static void set_percentile(struct wr_latency *l, const double v[2])
{
    double percent = v[0];
    double *target = percent == 50     ? &l->p50
                     : percent == 75   ? &l->p75
                     : percent == 90   ? &l->p90
                     : percent == 99   ? &l->p99
                     : percent == 99.9 ? &l->p999
                     : percent == 100  ? &l->max
                                       : NULL;
    if (target)
        *target = v[1];
}

/* Parses only the first table: wrk2 can print a second one with uncorrected latencies. */
static void parse_latency_table(struct wrk *w, mk_str line)
{
    double v[2];
    if (w->table == BEFORE && wr_text_scan(line, " Latency Distribution", v))
        w->table = INSIDE;
    else if (w->table == INSIDE && wr_text_scan(line, " %f%% %t", v))
        set_percentile(&w->r->latency_us, v);
    else if (w->table == INSIDE)
        w->table = AFTER;
}

static void parse_line(struct wrk *w, mk_str line)
{
    double v[4];
    struct wr_result *r = w->r;
    if (wr_text_scan(line, " Latency %t %t %t ", v)) {
        r->latency_us.mean = v[0];
        r->latency_us.max = v[2];
    } else if (wr_text_scan(line, " %d requests in %t, %b read", v)) {
        w->has_requests = true;
        r->requests = (int64_t)v[0];
        r->seconds = v[1] / 1e6;
        r->bytes = (int64_t)v[2];
        r->errors = (struct wr_errors){.other = WR_UNKNOWN};
    } else if (wr_text_scan(line, " %d threads and %d connections", v)) {
        r->connections = (int64_t)v[1];
    } else if (wr_text_scan(line, " Socket errors: connect %d, read %d, write %d, timeout %d", v)) {
        r->errors.connect = (int64_t)v[0];
        r->errors.read = (int64_t)v[1];
        r->errors.write = (int64_t)v[2];
        r->errors.timeout = (int64_t)v[3];
    } else if (wr_text_scan(line, " Non-2xx or 3xx responses: %d", v)) {
        r->errors.status = (int64_t)v[0];
    } else if (w->has_requests && wr_text_scan(line, "Requests/sec: %f", v)) {
        w->has_rate = true;
        r->rate = v[0];
    }
}

bool wr_wrk_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    struct wrk w = {.r = out};
    wr_result_init(out);
    for (mk_str line; wr_text_next_line(&output, &line);) {
        parse_latency_table(&w, line);
        parse_line(&w, line);
    }
    if (!w.has_requests || !w.has_rate) {
        wr_result_init(out);
        *why = w.has_requests ? "it ends before the line \"Requests/sec\""
                              : "it has no line such as \"1000 requests in 1.00s, 1.00MB read\"";
        return false;
    }
    return wr_result_fill_in(out, why);
}
