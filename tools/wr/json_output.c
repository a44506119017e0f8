/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the JSON document of --json; docs/guide/wr.md describes it. */
#include <math.h>

#include "base/codec.h"
#include "base/json.h"
#include "wr/metric.h"
#include "wr/report.h"

/* Writes the number; null if it is not known. */
static void write_number(struct mk_json_writer *w, double value, unsigned decimals)
{
    mk_json_fixed(w, wr_is_known(value) ? value : (double)NAN, decimals);
}

static void write_server(struct mk_json_writer *w, const struct wr_sweep *s)
{
    const struct wr_options *o = s->options;
    mk_json_begin_object(mk_json_key(w, "server"));
    mk_json_cstr(mk_json_key(w, "name"), s->server_name);
    mk_json_begin_array(mk_json_key(w, "pids"));
    for (size_t i = 0; i < s->server.n; i++)
        mk_json_int(w, s->server.all[i].pid);
    mk_json_end_array(w);
    mk_json_cstr(mk_json_key(w, "found_by"), o->names_server ? wr_find_by_to_text(o->server.by) : "port");
    mk_json_end_object(w);
}

static void write_client(struct mk_json_writer *w, const struct wr_sweep *s)
{
    mk_json_begin_object(mk_json_key(w, "client"));
    mk_json_cstr(mk_json_key(w, "kind"), s->command.kind->name);
    mk_json_begin_array(mk_json_key(w, "command"));
    for (size_t i = 0; s->command.words[i]; i++)
        mk_json_cstr(w, s->command.words[i]);
    mk_json_end_array(w);
    mk_json_end_object(w);
    mk_json_key(w, "url");
    if (s->url.p)
        mk_json_string(w, s->url);
    else
        mk_json_null(w);
}

static void write_check(struct mk_json_writer *w, const struct wr_sweep *s)
{
    mk_json_key(w, "check");
    if (!s->was_checked) {
        mk_json_null(w);
        return;
    }
    mk_json_begin_object(w);
    mk_json_uint(mk_json_key(w, "status"), s->checked.status);
    mk_json_uint(mk_json_key(w, "length"), s->checked.length);
    mk_json_begin_string(mk_json_key(w, "sha1"));
    mk_hex_encode(w->out, mk_str_of((const char *)s->checked.sha1, MK_SHA1_LEN));
    mk_json_end_string(w);
    mk_json_end_object(w);
}

static void write_client_result(struct mk_json_writer *w, const struct wr_result *r)
{
    const struct wr_errors *e = &r->errors;
    const struct wr_latency *l = &r->latency_us;
    write_number(mk_json_key(w, "seconds"), r->seconds, 6);
    write_number(mk_json_key(w, "requests"), (double)r->requests, 0);
    write_number(mk_json_key(w, "served"), (double)wr_result_requests_served(r), 0);
    write_number(mk_json_key(w, "rate"), r->rate, 3);
    write_number(mk_json_key(w, "bytes"), (double)r->bytes, 0);
    mk_json_begin_object(mk_json_key(w, "errors"));
    write_number(mk_json_key(w, "connect"), (double)e->connect, 0);
    write_number(mk_json_key(w, "read"), (double)e->read, 0);
    write_number(mk_json_key(w, "write"), (double)e->write, 0);
    write_number(mk_json_key(w, "timeout"), (double)e->timeout, 0);
    write_number(mk_json_key(w, "status"), (double)e->status, 0);
    write_number(mk_json_key(w, "other"), (double)e->other, 0);
    mk_json_end_object(w);
    mk_json_begin_object(mk_json_key(w, "latency_us"));
    write_number(mk_json_key(w, "mean"), l->mean, 3);
    write_number(mk_json_key(w, "p50"), l->p50, 3);
    write_number(mk_json_key(w, "p75"), l->p75, 3);
    write_number(mk_json_key(w, "p90"), l->p90, 3);
    write_number(mk_json_key(w, "p95"), l->p95, 3);
    write_number(mk_json_key(w, "p99"), l->p99, 3);
    write_number(mk_json_key(w, "p999"), l->p999, 3);
    write_number(mk_json_key(w, "max"), l->max, 3);
    mk_json_end_object(w);
}

static void write_samples(struct mk_json_writer *w, const struct wr_measurement *s)
{
    mk_json_begin_array(mk_json_key(w, "samples"));
    for (size_t i = 0; i < s->n_samples; i++) {
        mk_json_begin_array(w);
        write_number(w, s->samples[i].at_s, 3);
        write_number(w, s->samples[i].cores, 4);
        write_number(w, s->samples[i].pss_kb, 0);
        mk_json_end_array(w);
    }
    mk_json_end_array(w);
}

static void write_doubtful_latencies(struct mk_json_writer *w, const struct wr_result *r)
{
    mk_json_begin_array(mk_json_key(w, "doubtful"));
    for (unsigned i = 0; r->doubt && i < WR_QUANTILES; i++)
        if (!r->doubtful || (r->doubtful & 1u << i))
            mk_json_cstr(w, wr_result_quantiles[i]);
    mk_json_end_array(w);
}

static void write_measurement(struct mk_json_writer *w, const struct wr_measurement *s)
{
    mk_json_begin_object(w);
    write_client_result(w, &s->reported);
    write_number(mk_json_key(w, "wall_seconds"), s->wall_s, 6);
    write_number(mk_json_key(w, "user_us"), s->server.user_us, 0);
    write_number(mk_json_key(w, "system_us"), s->server.system_us, 0);
    write_number(mk_json_key(w, "us_per_request"), s->us_per_request, 3);
    write_number(mk_json_key(w, "pss_kb"), s->pss_kb, 0);
    write_number(mk_json_key(w, "peak_kb"), s->peak_kb, 0);
    write_number(mk_json_key(w, "hwm_kb"), s->hwm_kb, 0);
    mk_json_begin_object(mk_json_key(w, "switches"));
    write_number(mk_json_key(w, "voluntary"), s->voluntary, 0);
    write_number(mk_json_key(w, "involuntary"), s->involuntary, 0);
    mk_json_end_object(w);
    write_number(mk_json_key(w, "syscalls"), s->syscalls, 3);
    mk_json_begin_object(mk_json_key(w, "client"));
    write_number(mk_json_key(w, "user_us"), s->client.user_us, 0);
    write_number(mk_json_key(w, "system_us"), s->client.system_us, 0);
    mk_json_uint(mk_json_key(w, "cores"), s->client.cores);
    write_number(mk_json_key(w, "busy"), s->client.busy, 4);
    write_number(mk_json_key(w, "waited"), s->client.waited, 4);
    mk_json_end_object(w);
    mk_json_uint(mk_json_key(w, "server_cores"), s->server.cores);
    write_number(mk_json_key(w, "server_busy"), s->server.busy, 4);
    write_number(mk_json_key(w, "server_busiest_thread"), s->server.busiest, 4);
    write_number(mk_json_key(w, "server_waited"), s->server.waited, 4);
    mk_json_cstr(mk_json_key(w, "bottleneck"), wr_bottleneck_to_text(s->bottleneck));
    mk_json_cstr(mk_json_key(w, "doubt"), s->reported.doubt);
    write_doubtful_latencies(w, &s->reported);
    write_samples(w, s);
    mk_json_end_object(w);
}

static void write_range(struct mk_json_writer *w, struct wr_range r, unsigned decimals)
{
    if (!wr_is_known(r.median)) {
        mk_json_null(w);
        return;
    }
    mk_json_begin_object(w);
    write_number(mk_json_key(w, "min"), r.min, decimals);
    write_number(mk_json_key(w, "median"), r.median, decimals);
    write_number(mk_json_key(w, "max"), r.max, decimals);
    mk_json_end_object(w);
}

static void write_step(struct mk_json_writer *w, const struct wr_step *step)
{
    mk_json_begin_object(w);
    write_number(mk_json_key(w, "concurrency"), step->concurrency ? (double)step->concurrency : WR_UNKNOWN,
                 0);
    mk_json_begin_array(mk_json_key(w, "shots"));
    for (size_t i = 0; i < step->n; i++) {
        mk_json_newline(w);
        mk_buf_add_char(w->out, ' ');
        write_measurement(w, &step->shots[i]);
    }
    mk_json_end_array(w);
    for (const struct wr_metric *f = wr_metric_all(); f->name; f++)
        write_range(mk_json_key(w, f->name), wr_step_metric_range(step, f->of), (unsigned)f->decimals);
    mk_json_end_object(w);
}

void wr_json_write(const struct wr_sweep *s, bool complete, struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "wr"), MK_VERSION);
    mk_json_bool(mk_json_key(&w, "complete"), complete);
    mk_json_newline(&w);
    write_server(&w, s);
    mk_json_newline(&w);
    write_client(&w, s);
    mk_json_newline(&w);
    write_check(&w, s);
    mk_json_newline(&w);
    mk_json_cstr(mk_json_key(&w, "cpu_counted_by"), s->server.cgroup ? "cgroup" : "processes");
    mk_json_newline(&w);
    mk_json_begin_array(mk_json_key(&w, "steps"));
    for (size_t i = 0; i < s->n_steps; i++) {
        mk_json_newline(&w);
        write_step(&w, &s->steps[i]);
    }
    mk_json_end_array(&w);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}
