/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"
#include "wr/metric.h"
#include "wr/report.h"

/* Which value of a step's range a column shows. */
enum statistic { MEDIAN, MIN, MAX };

struct column {
    const char *title, *unit;
    int width;
    double (*of)(const struct wr_measurement *s);
    enum statistic statistic;
    double scale;
    int decimals;
    bool only_many; /* hidden if there is one shot per step */
};

static const struct column COLUMNS[] = {
    {"requests/s", "min", 10, wr_metric_rate, MIN, 1, 0, true},
    {"requests/s", "median", 11, wr_metric_rate, MEDIAN, 1, 0, false},
    {"requests/s", "max", 11, wr_metric_rate, MAX, 1, 0, true},
    {"user", "ms", 8, wr_metric_user_cpu_us, MEDIAN, 1e-3, 0, false},
    {"system", "ms", 8, wr_metric_system_cpu_us, MEDIAN, 1e-3, 0, false},
    {"CPU", "us/req.", 9, wr_metric_cpu_us_per_request, MEDIAN, 1, 2, false},
    {"memory", "KB", 9, wr_metric_pss_kb, MEDIAN, 1, 0, false},
    {"peak", "KB", 9, wr_metric_peak_memory_kb, MAX, 1, 0, false},
    {"p50", "us", 9, wr_metric_latency_p50_us, MEDIAN, 1, 0, false},
    {"p99", "us", 9, wr_metric_latency_p99_us, MEDIAN, 1, 0, false},
    {"longest", "us", 9, wr_metric_latency_max_us, MAX, 1, 0, false},
    {"errors", "", 8, wr_metric_errors, MAX, 1, 0, false},
    {"switches", "volunt.", 9, wr_metric_voluntary_switches, MEDIAN, 1, 0, false},
    {"switches", "forced", 9, wr_metric_involuntary_switches, MEDIAN, 1, 0, false},
    {"server", "busy %", 7, wr_metric_server_busy, MEDIAN, 100, 0, false},
    {"client", "busy %", 7, wr_metric_client_busy, MEDIAN, 100, 0, false},
};

static bool is_column_shown(const struct wr_sweep *s, const struct column *c)
{
    return !c->only_many || s->options->shots > 1;
}

static void write_concurrency_range(const struct wr_sweep *s, struct mk_buf *out)
{
    const struct wr_options *o = s->options;
    unsigned first = o->n_steps ? o->steps[0] : wr_command_concurrency(&s->command);
    mk_buf_addf(out, "Range        ");
    if (o->n_steps > 1) {
        bool even = true;
        for (size_t i = 2; i < o->n_steps; i++)
            even = even && o->steps[i] - o->steps[i - 1] == o->steps[1] - o->steps[0];
        if (even)
            mk_buf_addf(out, "%u to %u by %u connections", first, o->steps[o->n_steps - 1],
                        o->steps[1] - first);
        for (size_t i = 0; !even && i < o->n_steps; i++)
            mk_buf_addf(out, "%s%u%s", i ? ", " : "", o->steps[i], i + 1 == o->n_steps ? " connections" : "");
    } else if (first) {
        mk_buf_addf(out, "%u connections", first);
    } else {
        mk_buf_addf(out, "as in the command");
    }
    mk_buf_addf(out, ", %u shot%s each\n", o->shots, o->shots == 1 ? "" : "s");
}

static void write_response_check(const struct wr_sweep *s, struct mk_buf *out)
{
    if (!s->was_checked) {
        mk_buf_addf(out, "Responses    not checked\n");
        return;
    }
    mk_buf_addf(out, "Responses    GET %.*s: status %u, %llu bytes, SHA-1 ", MK_STR_ARG(s->url),
                s->checked.status, (unsigned long long)s->checked.length);
    mk_hex_encode(out, mk_str_of((const char *)s->checked.sha1, MK_SHA1_LEN));
    mk_buf_add_char(out, '\n');
}

static void write_titles(const struct wr_sweep *s, struct mk_buf *out, bool units)
{
    mk_buf_addf(out, "%11s", units ? "" : "connections");
    for (size_t i = 0; i < MK_LEN(COLUMNS); i++)
        if (is_column_shown(s, &COLUMNS[i]))
            mk_buf_addf(out, " %*s", COLUMNS[i].width, units ? COLUMNS[i].unit : COLUMNS[i].title);
    if (s->options->counts_syscalls)
        mk_buf_addf(out, " %9s", units ? "per req." : "sys.calls");
    mk_buf_addf(out, "%s\n", units ? "" : " bottleneck");
}

void wr_table_write_header(const struct wr_sweep *s, struct mk_buf *out)
{
    size_t others = s->server.n - 1;
    mk_buf_addf(out, "Server       %s, process %d", s->server_name, (int)s->server.all[0].pid);
    if (others)
        mk_buf_addf(out, " and %zu more", others);
    mk_buf_addf(out, "; processor time from %s\n", s->server.cgroup ? "its cgroup" : "its processes");
    write_concurrency_range(s, out);
    mk_buf_addf(out, "Command      ");
    wr_command_format(s->command.words, out);
    mk_buf_add_char(out, '\n');
    write_response_check(s, out);
    mk_buf_add_char(out, '\n');
    write_titles(s, out, false);
    write_titles(s, out, true);
}

static void write_padded_number(struct mk_buf *out, int width, double value, int decimals)
{
    if (wr_is_known(value))
        mk_buf_addf(out, " %*.*f", width, decimals, value);
    else
        mk_buf_addf(out, " %*s", width, "-");
}

/* One shot limited by the client makes the whole step doubtful. */
static enum wr_bottleneck worst_bottleneck(const struct wr_step *step)
{
    enum wr_bottleneck b = WR_BOTTLENECK_NEITHER;
    for (size_t i = 0; i < step->n; i++)
        if (step->shots[i].bottleneck > b)
            b = step->shots[i].bottleneck;
    return b;
}

static bool has_doubtful_shot(const struct wr_step *step)
{
    for (size_t i = 0; i < step->n; i++)
        if (step->shots[i].reported.doubt)
            return true;
    return false;
}

void wr_table_write_row(const struct wr_sweep *s, const struct wr_step *step, struct mk_buf *out)
{
    if (step->concurrency)
        mk_buf_addf(out, "%11u", step->concurrency);
    else
        mk_buf_addf(out, "%11s", "-");
    for (size_t i = 0; i < MK_LEN(COLUMNS); i++) {
        const struct column *c = &COLUMNS[i];
        struct wr_range r = wr_step_metric_range(step, c->of);
        double value = c->statistic == MIN ? r.min : c->statistic == MAX ? r.max : r.median;
        if (is_column_shown(s, c))
            write_padded_number(out, c->width, wr_is_known(value) ? value * c->scale : value, c->decimals);
    }
    if (s->options->counts_syscalls)
        write_padded_number(out, 9, step->syscalls, 2);
    mk_buf_addf(out, " %s%s\n", wr_bottleneck_to_text(worst_bottleneck(step)),
                has_doubtful_shot(step) ? ", in doubt" : "");
}

static void write_time_unit(struct mk_buf *out, uint64_t n, const char *word, const char *end)
{
    mk_buf_addf(out, "%llu %s%s%s", (unsigned long long)n, word, n == 1 ? "" : "s", end);
}

void wr_table_write_footer(const struct wr_sweep *s, struct mk_buf *out)
{
    enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };
    uint64_t seconds = (s->ended_us - s->started_us) / 1000000;
    mk_buf_addf(out, "\nElapsed      ");
    write_time_unit(out, seconds / DAY, "day", ", ");
    write_time_unit(out, seconds % DAY / HOUR, "hour", ", ");
    write_time_unit(out, seconds % HOUR / MINUTE, "minute", ", ");
    write_time_unit(out, seconds % MINUTE, "second", "\n");
}
