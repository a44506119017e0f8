/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the exposition format of Prometheus, version 0.0.4, which requires each family in one block. */
#include <monkey/host.h>
#include <monkey/version.h>

#include "exposition.h"
#include "snapshot.h"
#include "statistics.h"

/* Writes name{host="..." so that more labels can follow. */
static void append_sample_name(struct mk_buf *out, const char *name, mk_str host)
{
    mk_buf_add(out, mk_str_from_c(name));
    metrics_exposition_add_label(out, true, "host", host);
}

static void print_single_metric(struct mk_buf *out, const char *name, const char *type, const char *help,
                                uint64_t n)
{
    metrics_exposition_begin(out, name, type, help);
    mk_buf_add(out, mk_str_from_c(name));
    metrics_exposition_add_value(out, n);
}

/* ---- The server ---- */

static void print_server(const struct snapshot *s, struct mk_buf *out)
{
    int64_t started = mk_worker_server_started_at(s->worker), now = mk_worker_now(s->worker);
    metrics_exposition_begin(out, "monkey_build_info", "gauge", "Version of the server, as a label.");
    mk_buf_addf(out, "monkey_build_info{version=\"%s\"} 1\n", mk_version());
    print_single_metric(out, "monkey_start_time_seconds", "gauge",
                        "Start time of the server, in seconds since 1970.", (uint64_t)started);
    print_single_metric(out, "monkey_uptime_seconds", "gauge", "Time since the start.",
                        now > started ? (uint64_t)(now - started) : 0);
}

static void print_reloads(const struct snapshot *s, struct mk_buf *out)
{
    struct mk_reloads r;
    mk_worker_reloads(s->worker, &r, NULL);
    print_single_metric(out, "monkey_config_reloads_total", "counter",
                        "Successful reloads of the configuration.", r.done);
    print_single_metric(out, "monkey_config_reload_failures_total", "counter",
                        "Failed reloads, after which the server kept the previous configuration.", r.failed);
    print_single_metric(out, "monkey_config_last_reload_successful", "gauge",
                        "Whether the last reload was successful; 1 before the first one.", !r.last_failed);
    print_single_metric(out, "monkey_config_last_reload_success_timestamp_seconds", "gauge",
                        "Time of the last successful reload, in seconds since 1970; 0: none.",
                        (uint64_t)r.done_at);
    print_single_metric(out, "monkey_config_last_reload_failure_timestamp_seconds", "gauge",
                        "Time of the last failed reload, in seconds since 1970; 0: none.",
                        (uint64_t)r.failed_at);
    print_single_metric(
        out, "monkey_config_generation", "gauge",
        "Number of the configuration that serves: 1 after the start, one more after each reload.",
        r.done + 1);
    print_single_metric(
        out, "monkey_config_confirm_timestamp_seconds", "gauge",
        "When the server returns to the previous configuration unless you run `monkey confirm`, in "
        "seconds since 1970; 0: never.",
        (uint64_t)r.confirm_at);
}

static void print_certificate_problems(const struct snapshot *s, struct mk_buf *out)
{
    static const char name[] = "monkey_tls_certificate_problems";
    static const char *const labels[CERTIFICATE_PROBLEMS] = {
        [CERTIFICATE_EXPIRED] = "expired",
        [CERTIFICATE_EARLY] = "not_yet_valid",
        [CERTIFICATE_KEPT] = "kept",
    };
    struct certificates c;
    metrics_certificates_count(s->worker, &c);
    metrics_exposition_begin(out, name, "gauge",
                             "Hosts whose certificate has expired, is not yet valid, or could not be "
                             "replaced because the new files are invalid.");
    for (unsigned i = 0; i < CERTIFICATE_PROBLEMS; i++)
        mk_buf_addf(out, "%s{problem=\"%s\"} %llu\n", name, labels[i], (unsigned long long)c.n[i]);
}

/* Prints the expiry times of hosts with a name and a certificate. */
static void print_certificates(const struct snapshot *s, struct mk_buf *out)
{
    static const char name[] = "monkey_tls_certificate_expiry_timestamp_seconds";
    const struct mk_vhost *host;
    bool any = false;
    for (size_t i = 0; (host = mk_worker_vhost_at(s->worker, i)); i++) {
        struct mk_vhost_certificate c;
        if (!mk_vhost_certificate_get(host, &c) || mk_vhost_name(host).len == 0)
            continue;
        if (!any)
            metrics_exposition_begin(out, name, "gauge",
                                     "Expiry of the certificate of a host, in seconds since 1970.");
        any = true;
        append_sample_name(out, name, mk_vhost_name(host));
        mk_buf_add_char(out, '}');
        metrics_exposition_add_value(out, (uint64_t)c.not_after);
    }
    if (any)
        print_certificate_problems(s, out);
}

/* ---- Workers ---- */

static uint64_t connections_of(const struct process_view *p)
{
    return p->stats.open;
}

static uint64_t started_of(const struct process_view *p)
{
    return p->stats.started;
}

static uint64_t accepted_of(const struct process_view *p)
{
    return p->stats.accepted;
}

static uint64_t dropped_of(const struct process_view *p)
{
    return p->stats.dropped;
}

static uint64_t sent_of(const struct process_view *p)
{
    return p->stats.sent;
}

static uint64_t rss_of(const struct process_view *p)
{
    return p->info.rss;
}

static uint64_t pss_of(const struct process_view *p)
{
    return p->info.pss;
}

static uint64_t cache_files_of(const struct process_view *p)
{
    return p->info.cache_files;
}

static uint64_t cache_bytes_of(const struct process_view *p)
{
    return p->info.cache_bytes;
}

static uint64_t cpu_of(const struct process_view *p)
{
    return p->info.cpu_us;
}

struct process_family {
    const char *name, *type, *help;
    uint64_t (*value)(const struct process_view *p);
    bool is_told;   /* reported by the process itself; omitted until then, and while it is 0 (unknown) */
    bool is_micros; /* a value in microseconds, written as seconds */
};

static const struct process_family families[] = {
    {"monkey_worker_cpu_seconds_total", "counter", "CPU time, user and system.", cpu_of, true, true},
    {"monkey_worker_connections", "gauge", "Open connections.", connections_of, false, false},
    {"monkey_worker_start_time_seconds", "gauge", "Start time of the process, in seconds since 1970.",
     started_of, false, false},
    {"monkey_worker_accepted_total", "counter", "Accepted connections.", accepted_of, false, false},
    {"monkey_worker_dropped_total", "counter", "Connections rejected because of a limit.", dropped_of, false,
     false},
    {"monkey_worker_sent_bytes_total", "counter", "Bytes written to sockets.", sent_of, false, false},
    {"monkey_worker_resident_bytes", "gauge", "Resident memory, including shared memory in full.", rss_of,
     true, false},
    {"monkey_worker_proportional_bytes", "gauge",
     "Resident memory, with shared memory divided among processes (PSS).", pss_of, true, false},
    {"monkey_worker_cache_files", "gauge", "Files in the cache of open files.", cache_files_of, true, false},
    {"monkey_worker_cache_bytes", "gauge", "Memory of the cache of open files.", cache_bytes_of, true, false},
};

static void print_process_metric(const struct snapshot *s, const struct process_family *f, struct mk_buf *out)
{
    struct process_view p;
    metrics_exposition_begin(out, f->name, f->type, f->help);
    for (size_t i = 0; metrics_snapshot_process_at(s, i, &p); i++) {
        if (!p.stats.pid || (f->is_told && !p.known))
            continue;
        mk_buf_addf(out, "%s{pid=\"%lld\"}", f->name, (long long)p.stats.pid);
        if (f->is_micros) {
            mk_buf_add_char(out, ' ');
            metrics_exposition_add_seconds(out, f->value(&p));
            mk_buf_add_char(out, '\n');
        } else {
            metrics_exposition_add_value(out, f->value(&p));
        }
    }
}

static void print_workers(const struct snapshot *s, struct mk_buf *out)
{
    struct process_view p;
    uint64_t serving = 0, draining = 0, open = 0;
    for (size_t i = 0; metrics_snapshot_process_at(s, i, &p); i++) {
        if (!p.stats.pid)
            continue;
        *(p.stats.draining ? &draining : &serving) += 1;
        open += p.stats.open;
    }
    print_single_metric(out, "monkey_connections", "gauge", "Open connections.", open);
    metrics_exposition_begin(out, "monkey_workers", "gauge",
                             "Worker processes; draining: they accept no more connections.");
    mk_buf_addf(out, "monkey_workers{state=\"serving\"} %llu\nmonkey_workers{state=\"draining\"} %llu\n",
                (unsigned long long)serving, (unsigned long long)draining);
    for (size_t i = 0; i < MK_LEN(families); i++)
        print_process_metric(s, &families[i], out);
}

static void print_h2(const struct snapshot *s, struct mk_buf *out)
{
    static const char name[] = "monkey_http2_ended_total";
    const char *reason;
    uint64_t n;
    metrics_exposition_begin(out, name, "counter", "HTTP/2 connections closed because of abusive clients.");
    for (size_t i = 0; mk_worker_stats_h2_closed(s->worker, i, &reason, &n); i++) {
        mk_buf_addf(out, "%s{reason=\"%s\"}", name, reason);
        metrics_exposition_add_value(out, n);
    }
}

void metrics_prometheus_print(const struct snapshot *s, struct mk_buf *out)
{
    print_server(s, out);
    metrics_statistics_print(s->worker, out);
    print_workers(s, out);
    print_h2(s, out);
    print_reloads(s, out);
    print_certificates(s, out);
}
