/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/warnings.h"

#include "wr/measure.h"
#include "wr/message.h"

bool wr_warnings_format_bottleneck(const struct wr_step *step, struct mk_buf *out)
{
    const struct wr_measurement *worst = NULL;
    size_t n = 0;
    for (size_t i = 0; i < step->n; i++)
        if (step->shots[i].bottleneck != WR_BOTTLENECK_NEITHER &&
            (!worst || step->shots[i].bottleneck >= worst->bottleneck)) {
            n = worst && step->shots[i].bottleneck == worst->bottleneck ? n + 1 : 1;
            worst = &step->shots[i];
        }
    if (!worst)
        return false;
    bool client = worst->bottleneck == WR_BOTTLENECK_CLIENT;
    const struct wr_load *full = client ? &worst->client : &worst->server,
                         *other = client ? &worst->server : &worst->client;
    mk_buf_addf(
        out,
        "%u connections: the %s is the bottleneck in %zu of %zu shots (it uses %.0f %% of %u core%s, the "
        "%s %.0f %% of %u)%s",
        step->concurrency, client ? "client" : "server", n, step->n, full->busy * 100, full->cores,
        full->cores == 1 ? "" : "s", client ? "server" : "client", other->busy * 100, other->cores,
        client ? ": this measures the client; give it more cores or threads, or use a faster one" : "");
    return true;
}

static void warn_of_bottleneck(const struct wr_step *step)
{
    char text_buf[512] = "";
    struct mk_buf text = mk_buf_fixed(text_buf, sizeof text_buf - 1);
    if (wr_warnings_format_bottleneck(step, &text))
        wr_message("%s", text_buf);
}

/* Returns whether the program wanted the CPU nearly all the time, but other programs had it. */
static bool was_cpu_starved(const struct wr_load *l)
{
    return l->busy < 0.90 && l->busy + l->waited >= 0.95;
}

static void warn_of_cpu_contention(const struct wr_step *step)
{
    static bool warned;
    for (size_t i = 0; i < step->n && !warned; i++) {
        const struct wr_measurement *shot = &step->shots[i];
        bool client = was_cpu_starved(&shot->client);
        const struct wr_load *l = client ? &shot->client : &shot->server;
        warned = was_cpu_starved(l);
        if (warned)
            wr_message(
                "the %s got %.0f %% of its cores and waited for them for %.0f %% of the time: other programs "
                "run there, perhaps the other side (--client-cores keeps them apart); these numbers are too "
                "low",
                client ? "client" : "server", l->busy * 100, l->waited * 100);
    }
}

static void warn_of_bad_responses(struct wr_sweep *s, const struct wr_step *step)
{
    enum { BAD = 400 };
    double bad = 0, all = 0;
    if (s->options->expected.status >= BAD)
        return;
    for (size_t i = 0; i < step->n; i++) {
        const struct wr_result *r = &step->shots[i].reported;
        bad += r->errors.status > 0 ? (double)r->errors.status : 0;
        all += (double)wr_result_requests_served(r);
    }
    if (bad <= 0)
        return;
    wr_message(
        "%u connections: %.0f of %.0f responses were errors, so the rate includes error responses; if you "
        "expect them, use --status",
        step->concurrency, bad, all > bad ? all : bad);
    s->had_error_responses |= bad * 100 > all; /* over 1 % */
}

static void warn_of_missing_memory(const struct wr_sweep *s, const struct wr_step *step)
{
    static bool warned;
    for (size_t i = 0; i < step->n && !warned; i++) {
        const struct wr_measurement *shot = &step->shots[i];
        warned = !wr_is_known(shot->pss_kb);
        if (warned && shot->n_samples)
            wr_message(
                "the server's memory is unknown: run wr as root, or as its user, to inspect all of its "
                "processes");
        else if (warned)
            wr_message(
                "the server's memory is unknown: the client ended before the first sample, after %.1f ms; "
                "let it run longer, or use a shorter --interval",
                (double)wr_measure_first_sample_delay_us(s->options->interval_us) / 1000);
    }
}

static void warn_of_client_doubt(const struct wr_step *step)
{
    const char *doubt = NULL;
    size_t n = 0;
    for (size_t i = 0; i < step->n; i++)
        if (step->shots[i].reported.doubt) {
            doubt = step->shots[i].reported.doubt;
            n++;
        }
    if (doubt)
        wr_message("%u connections: the client doubts itself in %zu of %zu shots: %s", step->concurrency, n,
                   step->n, doubt);
}

/* Warns if there are fewer bytes than responses times the checked length: the client received other
 * responses. */
static void warn_of_missing_bytes(const struct wr_sweep *s, const struct wr_step *step)
{
    for (size_t i = 0; i < step->n; i++) {
        const struct wr_result *r = &step->shots[i].reported;
        double should = (double)r->requests * (double)s->checked.length;
        if (!s->was_checked || r->bytes < 0 ||
            (double)r->bytes + s->command.kind->bytes_step >= should * 0.98)
            continue;
        wr_message(
            "%u connections: the client received %lld bytes, less than %lld responses of %llu bytes: these "
            "are not the responses that wr checked",
            step->concurrency, (long long)r->bytes, (long long)r->requests,
            (unsigned long long)s->checked.length);
        return;
    }
}

void wr_warnings_print(struct wr_sweep *s, const struct wr_step *step)
{
    warn_of_bottleneck(step);
    warn_of_cpu_contention(step);
    warn_of_client_doubt(step);
    warn_of_bad_responses(s, step);
    warn_of_missing_memory(s, step);
    warn_of_missing_bytes(s, step);
}
