/* SPDX-License-Identifier: Apache-2.0 */
/* ApacheBench 2. Its table rounds to whole milliseconds, so 0 is unknown. The CSV output of -e, which wr
 * merges into the same text, is finer and has precedence. */
#include "wr/clients/clients.h"
#include "wr/text.h"

struct ab {
    struct wr_result *r;
    struct wr_latency table, csv; /* csv: from -e */
    double complete, rate, unanswered;
    bool has_complete, has_rate, in_csv;
};

static void set_percentile(struct wr_latency *l, double percent, double ms)
{
    double *target = percent == 50    ? &l->p50
                     : percent == 75  ? &l->p75
                     : percent == 90  ? &l->p90
                     : percent == 95  ? &l->p95
                     : percent == 99  ? &l->p99
                     : percent == 100 ? &l->max
                                      : NULL;
    if (target && ms > 0)
        *target = ms * 1e3;
}

/* ab also counts a connection without a response as a length error, so length errors say nothing about the
 * status. */
static void set_failure_counts(struct ab *a, const double v[4])
{
    a->r->errors.connect = (int64_t)v[0];
    a->r->errors.read = (int64_t)v[1];
    a->r->errors.other = (int64_t)(v[2] + v[3]);
    a->unanswered = v[0] + v[1] + v[3];
}

static bool parse_request_count_line(struct ab *a, mk_str line)
{
    double v[4];
    struct wr_errors *e = &a->r->errors;
    if (wr_text_scan(line, "Complete requests: %d", v)) {
        a->has_complete = true;
        a->complete = v[0];
        *e = (struct wr_errors){.timeout = WR_UNKNOWN};
    } else if (wr_text_scan(line, " (Connect: %d, Receive: %d, Length: %d, Exceptions: %d)", v)) {
        set_failure_counts(a, v);
    } else if (wr_text_scan(line, "Write errors: %d", v)) {
        e->write = (int64_t)v[0];
    } else if (wr_text_scan(line, "Non-2xx responses: %d", v)) {
        e->status = (int64_t)v[0];
    } else {
        return false;
    }
    return true;
}

static void parse_line(struct ab *a, mk_str line)
{
    double v[2];
    if (parse_request_count_line(a, line))
        return;
    bool in_csv = a->in_csv;
    a->in_csv = false;
    if (wr_text_scan(line, "Percentage served,Time in ms", v)) {
        a->in_csv = true;
    } else if (in_csv && wr_text_scan(line, "%d,%f", v)) {
        a->in_csv = true;
        set_percentile(&a->csv, v[0], v[1]);
    } else if (wr_text_scan(line, "Time taken for tests: %f seconds", v)) {
        a->r->seconds = v[0];
    } else if (wr_text_scan(line, "Concurrency Level: %d", v)) {
        a->r->connections = (int64_t)v[0];
    } else if (wr_text_scan(line, "Total transferred: %d bytes", v)) {
        a->r->bytes = (int64_t)v[0];
    } else if (wr_text_scan(line, "Requests per second: %f [", v)) {
        a->has_rate = true;
        a->rate = v[0];
    } else if (wr_text_scan(line, "Time per request: %f [ms] (mean)", v)) {
        a->r->latency_us.mean = v[0] > 0 ? v[0] * 1e3 : WR_UNKNOWN;
    } else if (wr_text_scan(line, " %d%% %d", v)) {
        set_percentile(&a->table, v[0], v[1]);
    }
}

static double choose_known_value(double csv, double fallback)
{
    return wr_is_known(csv) ? csv : fallback;
}

static void merge_latency(struct wr_latency *l, const struct wr_latency *csv, const struct wr_latency *table)
{
    l->p50 = choose_known_value(csv->p50, table->p50);
    l->p75 = choose_known_value(csv->p75, table->p75);
    l->p90 = choose_known_value(csv->p90, table->p90);
    l->p95 = choose_known_value(csv->p95, table->p95);
    l->p99 = choose_known_value(csv->p99, table->p99);
    l->max = choose_known_value(csv->max, table->max);
}

bool wr_ab_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    wr_result_init(out);
    struct ab a = {.r = out, .table = out->latency_us, .csv = out->latency_us};
    for (mk_str line; wr_text_next_line(&output, &line);)
        parse_line(&a, line);
    if (!a.has_complete || !a.has_rate) {
        wr_result_init(out);
        *why = a.has_complete
                   ? "it ends before the line \"Requests per second\""
                   : "it has no line \"Complete requests\"; without -r, ab stops at the first error";
        return false;
    }
    /* The rate has more digits than the seconds; "Complete" includes unanswered requests. */
    out->requests = a.complete > a.unanswered ? (int64_t)(a.complete - a.unanswered) : 0;
    if (a.rate > 0)
        out->seconds = a.complete / a.rate;
    merge_latency(&out->latency_us, &a.csv, &a.table);
    return wr_result_fill_in(out, why);
}
