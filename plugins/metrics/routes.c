/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include <monkey/text.h>

#include "exposition.h"

/* ---- Prometheus ---- */

static uint64_t failures_of(const struct mk_route_info *r)
{
    return r->failures;
}

static uint64_t cancelled_of(const struct mk_route_info *r)
{
    return r->cancelled;
}

static uint64_t crashes_of(const struct mk_route_info *r)
{
    return r->crashes;
}

struct family {
    const char *name, *help;
    uint64_t (*value)(const struct mk_route_info *r);
};

static const struct family families[] = {
    {"monkey_route_requests_total", "Requests that handlers of a service have answered.", mk_route_requests},
    {"monkey_route_failures_total", "Of these, answers with a status of 500 and above.", failures_of},
    {"monkey_route_cancelled_total", "Requests whose client has left before the handler was done.",
     cancelled_of},
    {"monkey_route_crashes_total", "Crashes of the handler, each of which has ended a worker.", crashes_of},
};

/* Up to where further labels may follow. */
static void add_route(struct mk_buf *out, const char *name, const struct mk_route_info *r)
{
    mk_buf_add(out, mk_str_from_c(name));
    metrics_exposition_add_label(out, true, "service", mk_str_from_c(r->service));
    metrics_exposition_add_label(out, false, "method", mk_str_from_c(r->method));
    metrics_exposition_add_label(out, false, "route", mk_str_from_c(r->pattern));
}

static void print_family(const struct mk_routes_board *board, const struct family *f, struct mk_buf *out)
{
    struct mk_route_info r;
    metrics_exposition_begin(out, f->name, "counter", f->help);
    for (size_t i = 0; mk_route_info_at(board, i, &r); i++) {
        add_route(out, f->name, &r);
        mk_buf_add_char(out, '}');
        metrics_exposition_add_value(out, f->value(&r));
    }
}

#define DURATION "monkey_route_duration_seconds"

static void print_bound(struct mk_buf *out, const struct mk_route_info *r, uint64_t us, uint64_t n)
{
    add_route(out, DURATION "_bucket", r);
    mk_buf_add(out, MK_STR(",le=\""));
    if (us)
        metrics_exposition_add_seconds(out, us);
    else
        mk_buf_add(out, MK_STR("+Inf"));
    mk_buf_add(out, MK_STR("\"}"));
    metrics_exposition_add_value(out, n);
}

static void print_histogram(struct mk_buf *out, const struct mk_route_info *r)
{
    uint64_t below = 0;
    for (unsigned i = 0; i < MK_ROUTES_BUCKETS; i++) {
        below += r->buckets[i];
        print_bound(out, r, mk_route_bucket_end(i), below);
    }
    add_route(out, DURATION "_sum", r);
    mk_buf_add(out, MK_STR("} "));
    metrics_exposition_add_seconds(out, r->micros);
    mk_buf_add_char(out, '\n');
    add_route(out, DURATION "_count", r);
    mk_buf_add_char(out, '}');
    metrics_exposition_add_value(out, below);
}

void metrics_routes_print(const struct mk_routes_board *board, struct mk_buf *out)
{
    struct mk_route_info r;
    if (!mk_route_info_at(board, 0, &r))
        return;
    for (size_t i = 0; i < MK_LEN(families); i++)
        print_family(board, &families[i], out);
    metrics_exposition_begin(
        out, DURATION, "histogram",
        "From the start of a handler to the end of its request, or of a WebSocket's handler.");
    for (size_t i = 0; mk_route_info_at(board, i, &r); i++)
        print_histogram(out, &r);
}

/* ---- JSON ---- */

static void text(struct mk_buf *out, const char *name, const char *value)
{
    mk_buf_addf(out, "\"%s\":", name);
    mk_json_string(out, mk_str_from_c(value));
    mk_buf_add_char(out, ',');
}

static void number(struct mk_buf *out, const char *name, uint64_t n)
{
    mk_buf_addf(out, "\"%s\":%llu,", name, (unsigned long long)n);
}

void metrics_routes_print_json(const struct mk_routes_board *board, struct mk_buf *out)
{
    struct mk_route_info r;
    mk_buf_add_char(out, '[');
    for (size_t i = 0; mk_route_info_at(board, i, &r); i++) {
        mk_buf_add(out, i ? MK_STR(",{") : MK_STR("{"));
        text(out, "service", r.service);
        text(out, "method", r.method);
        text(out, "route", r.pattern);
        number(out, "requests", mk_route_requests(&r));
        number(out, "failures", r.failures);
        number(out, "cancelled", r.cancelled);
        number(out, "crashes", r.crashes);
        number(out, "duration_us", r.micros);
        number(out, "p50_us", mk_route_quantile(&r, 500));
        mk_buf_addf(out, "\"p99_us\":%llu}", (unsigned long long)mk_route_quantile(&r, 990));
    }
    mk_buf_add_char(out, ']');
}
