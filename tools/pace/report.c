/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/report.h"

#include <inttypes.h>
#include <math.h>
#include <monkey/json.h>
#include <monkey/text.h>

#include "pace/now.h"

static const char *const SPACINGS[] = {
    [PACE_CONSTANT] = "constant", [PACE_POISSON] = "poisson", [PACE_CLOSED_LOOP] = "closed"};

static double elapsed_seconds(const struct pace_tally *t)
{
    return (double)(t->end - t->start) / (double)PACE_SECOND;
}

static double success_rate(const struct pace_tally *t)
{
    return t->end > t->start ? (double)t->right / elapsed_seconds(t) : 0;
}

/* ---- Text ---- */

static void append_duration(struct mk_buf *out, double nanoseconds)
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {{1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {0, 1e3, "us"}};
    size_t i = 0;
    while (nanoseconds < units[i].from)
        i++;
    double n = nanoseconds / units[i].unit;
    mk_buf_addf(out, "%.*f %s", n < 10 ? 2 : n < 100 ? 1 : 0, n, units[i].name);
}

/* `all` may exceed h->n: failed requests count as slower than any response. */
static void append_latencies(struct mk_buf *out, const char *name, const struct pace_histogram *h,
                             uint64_t all)
{
    mk_buf_addf(out, "%-9s", name);
    for (size_t i = 0; i < PACE_QUANTILES; i++) {
        uint64_t value;
        if (!pace_histogram_quantile(h, all, pace_quantiles[i].share, &value))
            continue;
        mk_buf_addf(out, "%s ", pace_quantiles[i].name);
        if (value == PACE_HISTOGRAM_BEYOND)
            mk_buf_add(out, MK_STR("> timeout"));
        else
            append_duration(out, (double)value);
        mk_buf_add(out, MK_STR(", "));
    }
    mk_buf_add(out, MK_STR("mean "));
    append_duration(out, pace_histogram_mean(h));
    mk_buf_add(out, MK_STR(", max "));
    append_duration(out, (double)h->greatest);
    mk_buf_add_char(out, '\n');
}

static void append_errors(struct mk_buf *out, const struct pace_tally *t)
{
    mk_buf_addf(out, "errors   %" PRIu64 "\n", pace_tally_errors(t));
    for (size_t i = 0; i < PACE_CLASSES; i++)
        if (t->errors[i])
            mk_buf_addf(out, "  %-8s %" PRIu64 ", the first: %s\n", pace_error_class_names[i], t->errors[i],
                        t->first[i]);
}

static void append_doubtful_metrics(struct mk_buf *out, const struct pace_tally *t)
{
    const char *between = "";
    for (size_t i = 0; i < PACE_QUANTILES; i++) {
        if (!pace_tally_is_quantile_doubtful(t, &pace_quantiles[i]))
            continue;
        mk_buf_addf(out, "%s%s", between, pace_quantiles[i].name);
        between = ", ";
    }
    if (pace_tally_is_mean_doubtful(t))
        mk_buf_addf(out, "%smean", between);
}

static void append_warnings(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t)
{
    const char *wrong = pace_tally_doubt_reason(t);
    if (pace_tally_errors(opening))
        mk_buf_addf(out, "%" PRIu64 " of %" PRIu64 " connections could not be opened before the start.\n",
                    pace_tally_errors(opening), opening->asked);
    if (t->queued)
        mk_buf_addf(out, "%" PRIu64 " requests waited because all %u connections were busy: %s.\n", t->queued,
                    o->connections,
                    wrong ? "the server is slower than the rate, -c is too small, or pace was late"
                          : "the server is slower than the rate, or -c is too small");
    if (t->stray)
        mk_buf_addf(out, "On %" PRIu64 " connections the server sent more than its responses.\n", t->stray);
    if (!wrong)
        return;
    mk_buf_addf(out, "pace did not keep its own pace: %s. Do not trust these latencies: ", wrong);
    append_doubtful_metrics(out, t);
    mk_buf_add(out, MK_STR(".\n"));
}

void pace_report_write_text(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t)
{
    mk_buf_addf(out, "%s, %s", o->url_text, SPACINGS[o->spacing]);
    if (o->spacing != PACE_CLOSED_LOOP)
        mk_buf_addf(out, " rate of %g a second", o->rate);
    else
        mk_buf_add(out, MK_STR(" loop"));
    mk_buf_addf(out, ", %u connections%s\n", o->connections, o->closes ? ", one request on each" : "");
    mk_buf_addf(out, "asked    %" PRIu64 " in %.2f s\n", t->asked, elapsed_seconds(t));
    mk_buf_addf(out, "right    %" PRIu64 ", %.1f a second, %.2f MB/s\n", t->right, success_rate(t),
                t->end > t->start ? (double)t->bytes / elapsed_seconds(t) / 1e6 : 0);
    append_errors(out, t);
    if (t->latency.n)
        append_latencies(out, "latency", &t->latency, t->asked);
    if (t->late.n)
        append_latencies(out, "late", &t->late, t->late.n);
    if (t->least.n)
        append_latencies(out, "at least", &t->least, t->asked);
    append_warnings(out, o, opening, t);
}

/* ---- JSON ---- */

static void write_latencies(struct mk_json_writer *w, const struct pace_histogram *h, uint64_t all)
{
    mk_json_begin_object(w);
    mk_json_fixed(mk_json_key(w, "mean"), h->n ? pace_histogram_mean(h) / 1e3 : (double)NAN, 3);
    for (size_t i = 0; i < PACE_QUANTILES; i++) {
        uint64_t value;
        bool is_known = pace_histogram_quantile(h, all, pace_quantiles[i].share, &value) &&
                        value != PACE_HISTOGRAM_BEYOND;
        mk_json_fixed(mk_json_key(w, pace_quantiles[i].name), is_known ? (double)value / 1e3 : (double)NAN,
                      3);
    }
    mk_json_fixed(mk_json_key(w, "max"), h->n ? (double)h->greatest / 1e3 : (double)NAN, 3);
    mk_json_end_object(w);
}

static void write_check(struct mk_json_writer *w, const struct pace_response_check *r)
{
    mk_json_begin_object(mk_json_key(w, "check"));
    mk_json_uint(mk_json_key(w, "status"), r->expected.status);
    mk_json_key(w, "length");
    if (r->varies && !r->expected.has_length)
        mk_json_null(w);
    else
        mk_json_uint(w, r->expected.has_length ? r->expected.length : r->body_length);
    mk_json_key(w, "sha1");
    if (r->varies) {
        mk_json_null(w);
    } else {
        mk_json_begin_string(w);
        mk_hex_encode(w->out, mk_str_of((const char *)r->body_sha1, MK_SHA1_LEN));
        mk_json_end_string(w);
    }
    mk_json_end_object(w);
}

static void write_settings(struct mk_json_writer *w, const struct pace_options *o)
{
    mk_json_cstr(mk_json_key(w, "pace"), MK_VERSION);
    mk_json_cstr(mk_json_key(w, "url"), o->url_text);
    mk_json_cstr(mk_json_key(w, "schedule"), SPACINGS[o->spacing]);
    mk_json_key(w, "asked_rate");
    if (o->spacing == PACE_CLOSED_LOOP)
        mk_json_null(w);
    else
        mk_json_double(w, o->rate);
    mk_json_uint(mk_json_key(w, "connections"), o->connections);
    mk_json_double(mk_json_key(w, "duration"), (double)o->duration / (double)PACE_SECOND);
    mk_json_double(mk_json_key(w, "timeout"), (double)o->timeout / (double)PACE_SECOND);
    mk_json_bool(mk_json_key(w, "close"), o->closes);
    write_check(w, &o->reference);
}

static void write_errors(struct mk_json_writer *w, const struct pace_tally *t)
{
    mk_json_begin_object(mk_json_key(w, "errors"));
    for (size_t i = 0; i < PACE_CLASSES; i++)
        mk_json_uint(mk_json_key(w, pace_error_class_names[i]), t->errors[i]);
    mk_json_end_object(w);
    mk_json_begin_object(mk_json_key(w, "first_errors"));
    for (size_t i = 0; i < PACE_CLASSES; i++)
        if (t->errors[i])
            mk_json_cstr(mk_json_key(w, pace_error_class_names[i]), t->first[i]);
    mk_json_end_object(w);
}

static void write_doubtful_metrics(struct mk_json_writer *w, const struct pace_tally *t)
{
    mk_json_begin_array(mk_json_key(w, "doubtful"));
    for (size_t i = 0; i < PACE_QUANTILES; i++)
        if (pace_tally_is_quantile_doubtful(t, &pace_quantiles[i]))
            mk_json_cstr(w, pace_quantiles[i].name);
    if (pace_tally_is_mean_doubtful(t))
        mk_json_cstr(w, "mean");
    mk_json_end_array(w);
}

static void write_results(struct mk_json_writer *w, const struct pace_tally *t)
{
    const char *wrong = pace_tally_doubt_reason(t);
    mk_json_uint(mk_json_key(w, "asked"), t->asked);
    mk_json_uint(mk_json_key(w, "requests"), t->right);
    mk_json_fixed(mk_json_key(w, "rate"), success_rate(t), 3);
    mk_json_uint(mk_json_key(w, "bytes"), t->bytes);
    write_errors(w, t);
    write_latencies(mk_json_key(w, "latency_us"), &t->latency, t->asked);
    write_latencies(mk_json_key(w, "late_us"), &t->late, t->late.n);
    write_latencies(mk_json_key(w, "least_us"), &t->least, t->asked);
    write_doubtful_metrics(w, t);
    mk_json_bool(mk_json_key(w, "kept_pace"), !wrong);
    mk_json_cstr(mk_json_key(w, "why_not"), wrong);
    mk_json_fixed(mk_json_key(w, "starved"),
                  t->end > t->start ? (double)t->starved / (double)(t->end - t->start) : 0, 4);
    mk_json_fixed(mk_json_key(w, "busy"), pace_tally_busy_share(t), 4);
    mk_json_uint(mk_json_key(w, "unsent"), t->unsent);
    mk_json_uint(mk_json_key(w, "queued"), t->queued);
    mk_json_uint(mk_json_key(w, "retried"), t->retried);
    mk_json_uint(mk_json_key(w, "opened"), t->opened);
    mk_json_uint(mk_json_key(w, "stray"), t->stray);
}

void pace_report_write_json(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    write_settings(&w, o);
    mk_json_fixed(mk_json_key(&w, "seconds"), elapsed_seconds(t), 6);
    write_results(&w, t);
    mk_json_begin_object(mk_json_key(&w, "before"));
    mk_json_uint(mk_json_key(&w, "requests"), opening->asked + 1);
    mk_json_uint(mk_json_key(&w, "errors"), pace_tally_errors(opening));
    mk_json_end_object(&w);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}
