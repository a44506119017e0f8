/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/report.h"

#include <inttypes.h>
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

/* Names the latencies in doubt, each between `quote`. */
static void append_doubtful_names(struct mk_buf *out, const struct pace_tally *t, const char *quote,
                                  const char *comma)
{
    const char *between = "";
    for (size_t i = 0; i < PACE_QUANTILES; i++) {
        if (!pace_tally_is_quantile_doubtful(t, &pace_quantiles[i]))
            continue;
        mk_buf_addf(out, "%s%s%s%s", between, quote, pace_quantiles[i].name, quote);
        between = comma;
    }
    if (pace_tally_is_mean_doubtful(t))
        mk_buf_addf(out, "%s%smean%s", between, quote, quote);
}

static void append_warnings(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t)
{
    const char *wrong = pace_tally_client_problem(t);
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
    append_doubtful_names(out, t, "", ", ");
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

static void append_json_latencies(struct mk_buf *out, const struct pace_histogram *h, uint64_t all)
{
    if (h->n)
        mk_buf_addf(out, "{\"mean\":%.3f", pace_histogram_mean(h) / 1e3);
    else
        mk_buf_add(out, MK_STR("{\"mean\":null"));
    for (size_t i = 0; i < PACE_QUANTILES; i++) {
        uint64_t value;
        mk_buf_addf(out, ",\"%s\":", pace_quantiles[i].name);
        if (pace_histogram_quantile(h, all, pace_quantiles[i].share, &value) &&
            value != PACE_HISTOGRAM_BEYOND)
            mk_buf_addf(out, "%.3f", (double)value / 1e3);
        else
            mk_buf_add(out, MK_STR("null"));
    }
    if (h->n)
        mk_buf_addf(out, ",\"max\":%.3f}", (double)h->greatest / 1e3);
    else
        mk_buf_add(out, MK_STR(",\"max\":null}"));
}

static void append_json_string(struct mk_buf *out, const char *text)
{
    if (text)
        mk_json_quote(out, mk_str_from_c(text));
    else
        mk_buf_add(out, MK_STR("null"));
}

static void append_json_check(struct mk_buf *out, const struct pace_response_check *r)
{
    mk_buf_addf(out, ",\"check\":{\"status\":%u,\"length\":", r->expected.status);
    if (r->varies && !r->expected.has_length)
        mk_buf_add(out, MK_STR("null"));
    else
        mk_buf_add_num(out, r->expected.has_length ? r->expected.length : r->body_length);
    mk_buf_add(out, MK_STR(",\"sha1\":"));
    if (r->varies) {
        mk_buf_add(out, MK_STR("null}"));
        return;
    }
    mk_buf_add_char(out, '"');
    mk_hex_encode(out, mk_str_of((const char *)r->body_sha1, MK_SHA1_LEN));
    mk_buf_add(out, MK_STR("\"}"));
}

static void append_json_settings(struct mk_buf *out, const struct pace_options *o)
{
    mk_buf_add(out, MK_STR("{\"pace\":\"" MK_VERSION "\",\"url\":"));
    append_json_string(out, o->url_text);
    mk_buf_addf(out, ",\"schedule\":\"%s\",\"asked_rate\":", SPACINGS[o->spacing]);
    if (o->spacing == PACE_CLOSED_LOOP)
        mk_buf_add(out, MK_STR("null"));
    else
        mk_buf_addf(out, "%.10g", o->rate);
    mk_buf_addf(out, ",\"connections\":%u,\"duration\":%g,\"timeout\":%g,\"close\":%s", o->connections,
                (double)o->duration / (double)PACE_SECOND, (double)o->timeout / (double)PACE_SECOND,
                o->closes ? "true" : "false");
    append_json_check(out, &o->reference);
}

static void append_json_errors(struct mk_buf *out, const struct pace_tally *t)
{
    const char *comma = "";
    mk_buf_add(out, MK_STR(",\"errors\":{"));
    for (size_t i = 0; i < PACE_CLASSES; i++, comma = ",")
        mk_buf_addf(out, "%s\"%s\":%" PRIu64, comma, pace_error_class_names[i], t->errors[i]);
    mk_buf_add(out, MK_STR("},\"first_errors\":{"));
    comma = "";
    for (size_t i = 0; i < PACE_CLASSES; i++) {
        if (!t->errors[i])
            continue;
        mk_buf_addf(out, "%s\"%s\":", comma, pace_error_class_names[i]);
        append_json_string(out, t->first[i]);
        comma = ",";
    }
    mk_buf_add_char(out, '}');
}

void pace_report_write_json(struct mk_buf *out, const struct pace_options *o,
                            const struct pace_tally *opening, const struct pace_tally *t)
{
    const char *wrong = pace_tally_client_problem(t);
    append_json_settings(out, o);
    mk_buf_addf(out,
                ",\"seconds\":%.6f,\"asked\":%" PRIu64 ",\"requests\":%" PRIu64
                ",\"rate\":%.3f,\"bytes\":%" PRIu64,
                elapsed_seconds(t), t->asked, t->right, success_rate(t), t->bytes);
    append_json_errors(out, t);
    mk_buf_add(out, MK_STR(",\"latency_us\":"));
    append_json_latencies(out, &t->latency, t->asked);
    mk_buf_add(out, MK_STR(",\"late_us\":"));
    append_json_latencies(out, &t->late, t->late.n);
    mk_buf_add(out, MK_STR(",\"least_us\":"));
    append_json_latencies(out, &t->least, t->asked);
    mk_buf_add(out, MK_STR(",\"doubtful\":["));
    append_doubtful_names(out, t, "\"", ",");
    mk_buf_addf(out, "],\"kept_pace\":%s,\"why_not\":", wrong ? "false" : "true");
    append_json_string(out, wrong);
    mk_buf_addf(out, ",\"starved\":%.4f",
                t->end > t->start ? (double)t->starved / (double)(t->end - t->start) : 0);
    mk_buf_addf(out, ",\"busy\":%.4f,\"unsent\":%" PRIu64 ",\"queued\":%" PRIu64 ",\"retried\":%" PRIu64,
                pace_tally_busy_share(t), t->unsent, t->queued, t->retried);
    mk_buf_addf(out, ",\"opened\":%" PRIu64 ",\"stray\":%" PRIu64, t->opened, t->stray);
    mk_buf_addf(out, ",\"before\":{\"requests\":%" PRIu64 ",\"errors\":%" PRIu64 "}}\n", opening->asked + 1,
                pace_tally_errors(opening));
}
