/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the JSON document of --json; docs/guide/wr.md describes it. */
#include "base/codec.h"
#include "wr/metric.h"
#include "wr/report.h"

static void append_string(struct mk_buf *out, const char *text)
{
    mk_json_quote(out, mk_str_from_c(text));
}

static void append_number(struct mk_buf *out, double value, int decimals)
{
    if (wr_is_known(value))
        mk_buf_addf(out, "%.*f", decimals, value);
    else
        mk_buf_add(out, MK_STR("null"));
}

static void append_number_member(struct mk_buf *out, const char *before, double value, int decimals)
{
    mk_buf_add(out, mk_str_from_c(before));
    append_number(out, value, decimals);
}

static void append_server(const struct wr_sweep *s, struct mk_buf *out)
{
    const struct wr_options *o = s->options;
    mk_buf_addf(out, "\"server\":{\"name\":");
    append_string(out, s->server_name);
    mk_buf_addf(out, ",\"pids\":[");
    for (size_t i = 0; i < s->server.n; i++)
        mk_buf_addf(out, "%s%d", i ? "," : "", (int)s->server.all[i].pid);
    mk_buf_addf(out, "],\"found_by\":\"%s\"}", o->names_server ? wr_find_by_name(o->server.by) : "port");
}

static void append_client(const struct wr_sweep *s, struct mk_buf *out)
{
    mk_buf_addf(out, "\"client\":{\"kind\":");
    append_string(out, s->command.kind->name);
    mk_buf_addf(out, ",\"command\":[");
    for (size_t i = 0; s->command.words[i]; i++) {
        if (i)
            mk_buf_add_char(out, ',');
        append_string(out, s->command.words[i]);
    }
    mk_buf_addf(out, "]},\"url\":");
    if (s->url.p)
        mk_json_quote(out, s->url);
    else
        mk_buf_addf(out, "null");
}

static void append_check(const struct wr_sweep *s, struct mk_buf *out)
{
    mk_buf_addf(out, "\"check\":");
    if (!s->was_checked) {
        mk_buf_addf(out, "null");
        return;
    }
    mk_buf_addf(out, "{\"status\":%u,\"length\":%llu,\"sha1\":\"", s->checked.status,
                (unsigned long long)s->checked.length);
    mk_hex_encode(out, mk_str_of((const char *)s->checked.sha1, MK_SHA1_LEN));
    mk_buf_addf(out, "\"}");
}

static void append_client_result(const struct wr_result *r, struct mk_buf *out)
{
    const struct wr_errors *e = &r->errors;
    const struct wr_latency *l = &r->latency_us;
    append_number_member(out, "\"seconds\":", r->seconds, 6);
    append_number_member(out, ",\"requests\":", (double)r->requests, 0);
    append_number_member(out, ",\"served\":", (double)wr_result_served(r), 0);
    append_number_member(out, ",\"rate\":", r->rate, 3);
    append_number_member(out, ",\"bytes\":", (double)r->bytes, 0);
    append_number_member(out, ",\"errors\":{\"connect\":", (double)e->connect, 0);
    append_number_member(out, ",\"read\":", (double)e->read, 0);
    append_number_member(out, ",\"write\":", (double)e->write, 0);
    append_number_member(out, ",\"timeout\":", (double)e->timeout, 0);
    append_number_member(out, ",\"status\":", (double)e->status, 0);
    append_number_member(out, ",\"other\":", (double)e->other, 0);
    append_number_member(out, "},\"latency_us\":{\"mean\":", l->mean, 3);
    append_number_member(out, ",\"p50\":", l->p50, 3);
    append_number_member(out, ",\"p75\":", l->p75, 3);
    append_number_member(out, ",\"p90\":", l->p90, 3);
    append_number_member(out, ",\"p95\":", l->p95, 3);
    append_number_member(out, ",\"p99\":", l->p99, 3);
    append_number_member(out, ",\"p999\":", l->p999, 3);
    append_number_member(out, ",\"max\":", l->max, 3);
    mk_buf_add_char(out, '}');
}

static void append_samples(const struct wr_measurement *s, struct mk_buf *out)
{
    mk_buf_addf(out, ",\"samples\":[");
    for (size_t i = 0; i < s->n_samples; i++) {
        mk_buf_addf(out, "%s[%.3f,%.4f,", i ? "," : "", s->samples[i].at_s, s->samples[i].cores);
        append_number(out, s->samples[i].pss_kb, 0);
        mk_buf_add_char(out, ']');
    }
    mk_buf_add_char(out, ']');
}

static void append_doubtful(const struct wr_result *r, struct mk_buf *out)
{
    const char *comma = "";
    mk_buf_addf(out, ",\"doubtful\":[");
    for (unsigned i = 0; i < WR_QUANTILES; i++) {
        if (!r->doubt || (r->doubtful && !(r->doubtful & 1u << i)))
            continue;
        mk_buf_addf(out, "%s\"%s\"", comma, wr_result_quantiles[i]);
        comma = ",";
    }
    mk_buf_add_char(out, ']');
}

static void append_shot(const struct wr_measurement *s, struct mk_buf *out)
{
    mk_buf_add_char(out, '{');
    append_client_result(&s->reported, out);
    append_number_member(out, ",\"wall_seconds\":", s->wall_s, 6);
    append_number_member(out, ",\"user_us\":", s->server.user_us, 0);
    append_number_member(out, ",\"system_us\":", s->server.system_us, 0);
    append_number_member(out, ",\"us_per_request\":", s->us_per_request, 3);
    append_number_member(out, ",\"pss_kb\":", s->pss_kb, 0);
    append_number_member(out, ",\"peak_kb\":", s->peak_kb, 0);
    append_number_member(out, ",\"hwm_kb\":", s->hwm_kb, 0);
    append_number_member(out, ",\"switches\":{\"voluntary\":", s->voluntary, 0);
    append_number_member(out, ",\"involuntary\":", s->involuntary, 0);
    append_number_member(out, "},\"syscalls\":", s->syscalls, 3);
    append_number_member(out, ",\"client\":{\"user_us\":", s->client.user_us, 0);
    append_number_member(out, ",\"system_us\":", s->client.system_us, 0);
    mk_buf_addf(out, ",\"cores\":%u", s->client.cores);
    append_number_member(out, ",\"busy\":", s->client.busy, 4);
    append_number_member(out, ",\"waited\":", s->client.waited, 4);
    mk_buf_addf(out, "},\"server_cores\":%u", s->server.cores);
    append_number_member(out, ",\"server_busy\":", s->server.busy, 4);
    append_number_member(out, ",\"server_busiest_thread\":", s->server.busiest, 4);
    append_number_member(out, ",\"server_waited\":", s->server.waited, 4);
    mk_buf_addf(out, ",\"bottleneck\":\"%s\",\"doubt\":", wr_bottleneck_word(s->bottleneck));
    if (s->reported.doubt)
        append_string(out, s->reported.doubt);
    else
        mk_buf_addf(out, "null");
    append_doubtful(&s->reported, out);
    append_samples(s, out);
    mk_buf_add_char(out, '}');
}

static void append_range(struct mk_buf *out, const char *name, struct wr_range r, int decimals)
{
    mk_buf_addf(out, ",\"%s\":", name);
    if (!wr_is_known(r.median)) {
        mk_buf_addf(out, "null");
        return;
    }
    mk_buf_addf(out, "{\"min\":%.*f,\"median\":%.*f,\"max\":%.*f}", decimals, r.min, decimals, r.median,
                decimals, r.max);
}

static void append_step(const struct wr_step *step, struct mk_buf *out)
{
    append_number_member(out, "{\"concurrency\":", step->concurrency ? (double)step->concurrency : WR_UNKNOWN,
                         0);
    mk_buf_addf(out, ",\"shots\":[");
    for (size_t i = 0; i < step->n; i++) {
        mk_buf_add(out, i ? MK_STR(",\n ") : MK_STR("\n "));
        append_shot(&step->shots[i], out);
    }
    mk_buf_add_char(out, ']');
    for (const struct wr_metric *f = wr_metric_all(); f->name; f++)
        append_range(out, f->name, wr_step_range(step, f->of), f->decimals);
    mk_buf_add_char(out, '}');
}

void wr_json_write(const struct wr_sweep *s, bool complete, struct mk_buf *out)
{
    mk_buf_addf(out, "{\"wr\":\"%s\",\"complete\":%s,\n", MK_VERSION, complete ? "true" : "false");
    append_server(s, out);
    mk_buf_addf(out, ",\n");
    append_client(s, out);
    mk_buf_addf(out, ",\n");
    append_check(s, out);
    mk_buf_addf(out, ",\n\"cpu_counted_by\":\"%s\",\n\"steps\":[", s->server.cgroup ? "cgroup" : "processes");
    for (size_t i = 0; i < s->n_steps; i++) {
        mk_buf_add(out, i ? MK_STR(",\n") : MK_STR("\n"));
        append_step(&s->steps[i], out);
    }
    mk_buf_addf(out, "]}\n");
}
