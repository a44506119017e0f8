/* SPDX-License-Identifier: Apache-2.0 */
/* ApacheBench 2. Its table has whole milliseconds, in which a fast answer takes none: a zero is unknown.
 * What it writes for -e, in the same text, is finer and goes before. */
#include "wr/clients/clients.h"
#include "wr/text.h"

struct ab {
    struct wr_result *r;
    struct wr_latency table, fine; /* fine: from -e */
    double complete, rate, unanswered;
    bool has_complete, has_rate, in_fine;
};

static void set_percentile(struct wr_latency *l, double percent, double ms)
{
    double *place = percent == 50    ? &l->p50
                    : percent == 75  ? &l->p75
                    : percent == 90  ? &l->p90
                    : percent == 95  ? &l->p95
                    : percent == 99  ? &l->p99
                    : percent == 100 ? &l->max
                                     : NULL;
    if (place && ms > 0)
        *place = ms * 1e3;
}

/* A connection that ends without an answer is one of a wrong length, so the length says nothing about the
 * status. */
static void read_failures(struct ab *a, const double v[4])
{
    a->r->errors.connect = (int64_t)v[0];
    a->r->errors.read = (int64_t)v[1];
    a->r->errors.other = (int64_t)(v[2] + v[3]);
    a->unanswered = v[0] + v[1] + v[3];
}

static bool read_counts(struct ab *a, mk_str line)
{
    double v[4];
    struct wr_errors *e = &a->r->errors;
    if (wr_text_scan(line, "Complete requests: %d", v)) {
        a->has_complete = true;
        a->complete = v[0];
        *e = (struct wr_errors){.timeout = WR_UNKNOWN};
    } else if (wr_text_scan(line, " (Connect: %d, Receive: %d, Length: %d, Exceptions: %d)", v)) {
        read_failures(a, v);
    } else if (wr_text_scan(line, "Write errors: %d", v)) {
        e->write = (int64_t)v[0];
    } else if (wr_text_scan(line, "Non-2xx responses: %d", v)) {
        e->status = (int64_t)v[0];
    } else {
        return false;
    }
    return true;
}

static void read_line(struct ab *a, mk_str line)
{
    double v[2];
    if (read_counts(a, line))
        return;
    bool in_fine = a->in_fine;
    a->in_fine = false;
    if (wr_text_scan(line, "Percentage served,Time in ms", v)) {
        a->in_fine = true;
    } else if (in_fine && wr_text_scan(line, "%d,%f", v)) {
        a->in_fine = true;
        set_percentile(&a->fine, v[0], v[1]);
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

static double choose_known(double fine, double coarse)
{
    return wr_is_known(fine) ? fine : coarse;
}

static void read_latency(struct wr_latency *l, const struct wr_latency *fine, const struct wr_latency *table)
{
    l->p50 = choose_known(fine->p50, table->p50);
    l->p75 = choose_known(fine->p75, table->p75);
    l->p90 = choose_known(fine->p90, table->p90);
    l->p95 = choose_known(fine->p95, table->p95);
    l->p99 = choose_known(fine->p99, table->p99);
    l->max = choose_known(fine->max, table->max);
}

bool wr_ab_read(mk_str output, struct wr_result *out, const char **why)
{
    wr_result_init(out);
    struct ab a = {.r = out, .table = out->latency_us, .fine = out->latency_us};
    for (mk_str line; wr_text_next_line(&output, &line);)
        read_line(&a, line);
    if (!a.has_complete || !a.has_rate) {
        wr_result_init(out);
        *why = a.has_complete
                   ? "it ends before the line \"Requests per second\""
                   : "it has no line \"Complete requests\"; without -r, ab stops at the first error";
        return false;
    }
    /* Its seconds have three digits, its rate has more; it counts all that ended. */
    out->requests = a.complete > a.unanswered ? (int64_t)(a.complete - a.unanswered) : 0;
    if (a.rate > 0)
        out->seconds = a.complete / a.rate;
    read_latency(&out->latency_us, &a.fine, &a.table);
    return wr_result_validate(out, why);
}
