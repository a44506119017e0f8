/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the status as one JSON object, which the live page also reads. */
#include <monkey/json.h>
#include <monkey/version.h>

#include "snapshot.h"
#include "statistics.h"

static void write_number(struct mk_json_writer *w, const char *name, uint64_t n)
{
    mk_json_uint(mk_json_key(w, name), n);
}

static void open_object(struct mk_json_writer *w, const char *name)
{
    mk_json_begin_object(mk_json_key(w, name));
}

static void open_array(struct mk_json_writer *w, const char *name)
{
    mk_json_begin_array(mk_json_key(w, name));
}

static void print_methods(const struct totals *t, struct mk_json_writer *w)
{
    open_object(w, "by_method");
    for (unsigned m = 0; m < METHODS; m++) {
        uint64_t n = metrics_totals_method_sum(t, m);
        if (n)
            write_number(w, metrics_method_label(m), n);
    }
    mk_json_end_object(w);
}

static void print_statuses(const struct totals *t, struct mk_json_writer *w)
{
    static const char *const classes[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    uint64_t by_class[CLASSES];
    char room[8];
    open_object(w, "by_status");
    for (unsigned row = 0; row < t->n_rows; row++)
        write_number(w, metrics_status_label(t->status[row], room), metrics_totals_row_sum(t, row));
    mk_json_end_object(w);
    metrics_totals_sum_by_class(t, by_class);
    open_object(w, "by_class");
    for (unsigned i = 0; i < CLASSES; i++)
        write_number(w, classes[i], by_class[i]);
    mk_json_end_object(w);
}

static void print_requests(const struct totals *t, struct mk_json_writer *w)
{
    open_object(w, "requests");
    write_number(w, "total", metrics_totals_requests(t));
    write_number(w, "bytes", t->bytes);
    print_methods(t, w);
    print_statuses(t, w);
    open_object(w, "by_outcome");
    for (unsigned e = 0; e < OUTCOMES; e++)
        write_number(w, mk_outcome_name((enum mk_outcome)e), t->outcomes[e]);
    mk_json_end_object(w);
    mk_json_end_object(w);
}

/* Prints pairs of the end of a bucket and its count. */
static void print_buckets(const uint64_t buckets[BUCKETS], struct mk_json_writer *w)
{
    mk_json_begin_array(w);
    for (unsigned b = 0; b < BUCKETS; b++) {
        if (!buckets[b])
            continue;
        mk_json_begin_array(w);
        mk_json_uint(w, mk_stat_bucket_end(BUCKETS, b));
        mk_json_uint(w, buckets[b]);
        mk_json_end_array(w);
    }
    mk_json_end_array(w);
}

static void print_latency(const struct totals *t, struct mk_json_writer *w)
{
    uint64_t n = 0;
    for (unsigned b = 0; b < BUCKETS; b++)
        n += t->buckets[b];
    open_object(w, "latency_us");
    write_number(w, "count", n);
    write_number(w, "mean", n ? t->duration_us / n : 0);
    write_number(w, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
    write_number(w, "p90", mk_stat_quantile(t->buckets, BUCKETS, 900));
    write_number(w, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
    write_number(w, "p999", mk_stat_quantile(t->buckets, BUCKETS, 999));
    print_buckets(t->buckets, mk_json_key(w, "histogram"));
    mk_json_end_object(w);
}

static void print_hosts(const struct snapshot *s, struct mk_json_writer *w)
{
    open_array(w, "hosts");
    for (size_t i = 0; i < s->n_labels; i++) {
        const struct totals *t = &s->labels[i].totals;
        mk_json_begin_object(w);
        mk_json_string(mk_json_key(w, "name"), s->labels[i].name);
        write_number(w, "requests", metrics_totals_requests(t));
        write_number(w, "bytes", t->bytes);
        write_number(w, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
        write_number(w, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
        mk_json_end_object(w);
    }
    mk_json_end_array(w);
}

static void print_process(const struct process_view *p, struct mk_json_writer *w)
{
    mk_json_begin_object(w);
    write_number(w, "pid", (uint64_t)p->stats.pid);
    mk_json_string(mk_json_key(w, "state"), p->stats.draining ? MK_STR("draining") : MK_STR("serving"));
    write_number(w, "started", p->stats.started);
    write_number(w, "connections", p->stats.open);
    write_number(w, "requests", p->stats.requests);
    write_number(w, "accepted", p->stats.accepted);
    write_number(w, "dropped", p->stats.dropped);
    write_number(w, "sent", p->stats.sent);
    if (p->known) {
        write_number(w, "rss", p->info.rss);
        write_number(w, "pss", p->info.pss);
        write_number(w, "cpu_us", p->info.cpu_us);
        write_number(w, "cache_files", p->info.cache_files);
        write_number(w, "cache_bytes", p->info.cache_bytes);
    }
    mk_json_end_object(w);
}

static void print_workers(const struct snapshot *s, struct mk_json_writer *w)
{
    struct process_view p;
    open_array(w, "workers");
    for (size_t i = 0; metrics_snapshot_process_at(s, i, &p); i++)
        if (p.stats.pid)
            print_process(&p, w);
    mk_json_end_array(w);
}

static void print_reloads(const struct snapshot *s, struct mk_json_writer *w)
{
    struct mk_reloads r;
    mk_worker_reloads(s->worker, &r, NULL);
    write_number(w, "reloads", r.done);
    write_number(w, "reloaded", (uint64_t)r.done_at);
    write_number(w, "failed_reloads", r.failed);
    write_number(w, "generation", r.done + 1);
    write_number(w, "confirm_at", (uint64_t)r.confirm_at);
    write_number(w, "reload_failed", r.last_failed ? (uint64_t)r.failed_at : 0);
}

/* Prints the numbers of certificates that need attention, and the earliest expiry; 0: no TLS. */
static void print_certificates(const struct snapshot *s, struct mk_json_writer *w)
{
    struct certificates c;
    metrics_certificates_count(s->worker, &c);
    write_number(w, "certificate_ends", (uint64_t)c.first_end);
    write_number(w, "certificates_expired", c.n[CERTIFICATE_EXPIRED]);
    write_number(w, "certificates_early", c.n[CERTIFICATE_EARLY]);
    write_number(w, "certificates_kept", c.n[CERTIFICATE_KEPT]);
}

static void print_certificate_list(const struct snapshot *s, struct mk_json_writer *w)
{
    struct mk_buf list = mk_buf_growing(TEXT_MAX);
    if (mk_certificate_list_read(s->metrics->certificates, &list) && !list.failed)
        mk_json_raw(mk_json_key(w, "certificates"), mk_buf_str(&list));
    mk_buf_free(&list);
}

void metrics_json_print(const struct snapshot *s, bool with_certificates, struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, "version"), mk_str_from_c(mk_version()));
    write_number(&w, "now", (uint64_t)mk_worker_now(s->worker));
    write_number(&w, "now_ms", mk_worker_now_ms(s->worker));
    write_number(&w, "started", (uint64_t)mk_worker_server_started_at(s->worker));
    print_reloads(s, &w);
    print_certificates(s, &w);
    if (with_certificates)
        print_certificate_list(s, &w);
    write_number(&w, "master", (uint64_t)mk_worker_master_pid(s->worker));
    print_requests(&s->all, &w);
    print_latency(&s->all, &w);
    print_hosts(s, &w);
    print_workers(s, &w);
    metrics_statistics_print_json(s->worker, &w);
    mk_json_end_object(&w);
}

/* ---- History ---- */

static void print_slices(const struct history *h, uint64_t now_ms, struct mk_json_writer *w)
{
    struct slice slice;
    open_array(w, "durations");
    for (unsigned back = SLICES; back-- > 0;) {
        if (!metrics_history_slice(h, now_ms, back, &slice))
            continue;
        mk_json_begin_array(w);
        mk_json_uint(w, slice.now_ms);
        print_buckets(slice.buckets, w);
        mk_json_end_array(w);
    }
    mk_json_end_array(w);
}

static void print_histogram(const struct history *h, struct mk_json_writer *w)
{
    uint64_t buckets[BUCKETS];
    for (unsigned b = 0; b < BUCKETS; b++)
        buckets[b] = atomic_load_explicit(&h->buckets[b], memory_order_relaxed);
    print_buckets(buckets, mk_json_key(w, "histogram"));
}

void metrics_json_print_history(const struct history *h, uint64_t now_ms, struct sample *samples,
                                struct mk_buf *out)
{
    static const char *const fields[FIELDS] = {"requests", "bytes", "connections", "memory", "none",
                                               "1xx",      "2xx",   "3xx",         "4xx",    "5xx",
                                               "p50",      "p90",   "p99",         "p999"};
    struct mk_json_writer w = mk_json_writer_to(out);
    size_t n = metrics_history_read(h, now_ms, samples);
    mk_json_begin_object(&w);
    open_array(&w, "now_ms");
    for (size_t i = 0; i < n; i++)
        mk_json_uint(&w, samples[i].now_ms);
    mk_json_end_array(&w);
    for (unsigned f = 0; f < FIELDS; f++) {
        open_array(&w, fields[f]);
        for (size_t i = 0; i < n; i++)
            mk_json_uint(&w, samples[i].values[f]);
        mk_json_end_array(&w);
    }
    print_slices(h, now_ms, &w);
    print_histogram(h, &w);
    mk_json_end_object(&w);
}
