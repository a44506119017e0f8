/* SPDX-License-Identifier: Apache-2.0 */
/* h2load of nghttp2. The columns differ between versions, so their titles identify them. */
#include "wr/clients/clients.h"
#include "wr/text.h"

enum { COLUMNS_MAX = 12 };

struct h2load {
    struct wr_result *r;
    bool has_time, has_requests, has_status;
    size_t n_columns;
    double *columns[COLUMNS_MAX]; /* destination of each column; NULL to skip it */
};

static double *find_column(struct wr_latency *l, mk_str name)
{
    if (mk_str_eq(name, MK_STR("mean")))
        return &l->mean;
    if (mk_str_eq(name, MK_STR("max")))
        return &l->max;
    if (mk_str_eq(name, MK_STR("median")) || mk_str_eq(name, MK_STR("p50")))
        return &l->p50;
    if (mk_str_eq(name, MK_STR("p75")))
        return &l->p75;
    if (mk_str_eq(name, MK_STR("p90")))
        return &l->p90;
    if (mk_str_eq(name, MK_STR("p95")))
        return &l->p95;
    if (mk_str_eq(name, MK_STR("p99")))
        return &l->p99;
    return NULL;
}

/* Parses the columns before the standard deviation, which has a title with a space. */
static void parse_latency_header(struct h2load *h, mk_str line)
{
    h->n_columns = 0;
    for (mk_str name = mk_str_word(&line); name.len && h->n_columns < COLUMNS_MAX;
         name = mk_str_word(&line)) {
        if (mk_str_eq(name, MK_STR("sd")) || mk_str_eq(name, MK_STR("+/-")))
            return;
        h->columns[h->n_columns++] = find_column(&h->r->latency_us, name);
    }
}

static void parse_latency_row(struct h2load *h, mk_str line)
{
    size_t colon = mk_str_find(line, ':');
    if (colon == MK_STR_NONE)
        return;
    mk_str name = mk_str_trim(mk_str_first(line, colon));
    if (!mk_str_eq(name, MK_STR("time for request")) && !mk_str_eq(name, MK_STR("request")))
        return;
    line = mk_str_skip(line, colon + 1);
    for (size_t i = 0; i < h->n_columns; i++) {
        double us;
        if (!wr_text_scan(mk_str_word(&line), "%t", &us))
            return;
        if (h->columns[i])
            *h->columns[i] = us;
    }
}

/* "errored" requests got no response and include the timeouts; the rate counts complete responses. */
static void set_request_counts(struct wr_result *r, const double v[7])
{
    r->requests = v[5] > v[0] ? WR_UNKNOWN : (int64_t)(v[0] - v[5]);
    r->errors.timeout = (int64_t)v[6];
    r->errors.other = v[5] > v[6] ? (int64_t)(v[5] - v[6]) : 0;
}

static void parse_line(struct h2load *h, mk_str line)
{
    double v[7];
    struct wr_result *r = h->r;
    if (wr_text_scan(line, "finished in %t, %f req/s", v)) {
        h->has_time = true;
        r->seconds = v[0] / 1e6;
        r->rate = v[1];
    } else if (wr_text_scan(line,
                            "requests: %d total, %d started, %d done, %d succeeded, %d failed, %d errored,"
                            " %d timeout",
                            v)) {
        h->has_requests = true;
        set_request_counts(r, v);
    } else if (wr_text_scan(line, "status codes: %d 2xx, %d 3xx, %d 4xx, %d 5xx", v)) {
        h->has_status = true;
        r->errors.status = (int64_t)(v[2] + v[3]);
    } else if (wr_text_scan(line, "spawning thread #%d: %d total client", v)) {
        r->connections = (r->connections < 0 ? 0 : r->connections) + (int64_t)v[1];
    } else if (wr_text_scan(line, "traffic: %b (%d) total", v)) {
        r->bytes = (int64_t)v[1];
    } else if (wr_text_scan(line, " min ", v)) {
        parse_latency_header(h, line);
    } else {
        parse_latency_row(h, line);
    }
}

bool wr_h2load_parse_output(mk_str output, struct wr_result *out, const char **why)
{
    struct h2load h = {.r = out};
    wr_result_init(out);
    for (mk_str line; wr_text_next_line(&output, &line);)
        parse_line(&h, line);
    if (h.has_time && h.has_requests && h.has_status)
        return wr_result_fill_in(out, why);
    wr_result_init(out);
    *why = !h.has_time       ? "it has no line such as \"finished in 1.00s, 1000.00 req/s\""
           : !h.has_requests ? "it has no line such as \"requests: 1000 total, ..., 0 timeout\""
                             : "it has no line \"status codes\"";
    return false;
}
