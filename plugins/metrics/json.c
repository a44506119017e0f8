/* SPDX-License-Identifier: Apache-2.0 */
/* The status as one JSON object, which the live page reads, too. */
#include <monkey/version.h>

#include "certificates.h"
#include "snapshot.h"
#include "statistics.h"

static void write_key(struct mk_buf *out, const char *name)
{
    char last = out->len ? out->p[out->len - 1] : '{';
    if (out->failed)
        return;
    mk_buf_addf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

static void write_number(struct mk_buf *out, const char *name, uint64_t n)
{
    write_key(out, name);
    mk_buf_add_num(out, n);
}

static void open_object(struct mk_buf *out, const char *name)
{
    write_key(out, name);
    mk_buf_add_char(out, '{');
}

static void write_closing_char(struct mk_buf *out, char c)
{
    mk_buf_add_char(out, c);
}

static void print_methods(const struct totals *t, struct mk_buf *out)
{
    open_object(out, "by_method");
    for (unsigned m = 0; m < MK_METHODS; m++) {
        uint64_t n = metrics_totals_method_sum(t, m);
        if (n)
            write_number(out, metrics_method_label(m), n);
    }
    write_closing_char(out, '}');
}

static void print_statuses(const struct totals *t, struct mk_buf *out)
{
    static const char *const classes[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    uint64_t by_class[CLASSES];
    char room[8];
    open_object(out, "by_status");
    for (unsigned row = 0; row < t->n_rows; row++)
        write_number(out, metrics_status_label(t->status[row], room), metrics_totals_row_sum(t, row));
    write_closing_char(out, '}');
    metrics_totals_by_class(t, by_class);
    open_object(out, "by_class");
    for (unsigned i = 0; i < CLASSES; i++)
        write_number(out, classes[i], by_class[i]);
    write_closing_char(out, '}');
}

static void print_requests(const struct totals *t, struct mk_buf *out)
{
    open_object(out, "requests");
    write_number(out, "total", metrics_totals_requests(t));
    write_number(out, "bytes", t->bytes);
    print_methods(t, out);
    print_statuses(t, out);
    open_object(out, "by_ending");
    for (unsigned e = 0; e < MK_OUTCOMES; e++)
        write_number(out, mk_outcome_name((enum mk_outcome)e), t->endings[e]);
    write_closing_char(out, '}');
    write_closing_char(out, '}');
}

/* Pairs of bucket end and count. */
static void print_buckets(const uint64_t buckets[BUCKETS], struct mk_buf *out)
{
    bool is_first = true;
    mk_buf_add_char(out, '[');
    for (unsigned b = 0; b < BUCKETS; b++) {
        if (!buckets[b])
            continue;
        mk_buf_addf(out, "%s[%llu,%llu]", is_first ? "" : ",",
                    (unsigned long long)mk_stat_bucket_end(BUCKETS, b), (unsigned long long)buckets[b]);
        is_first = false;
    }
    write_closing_char(out, ']');
}

static void print_latency(const struct totals *t, struct mk_buf *out)
{
    uint64_t n = 0;
    for (unsigned b = 0; b < BUCKETS; b++)
        n += t->buckets[b];
    open_object(out, "latency_us");
    write_number(out, "count", n);
    write_number(out, "mean", n ? t->duration_us / n : 0);
    write_number(out, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
    write_number(out, "p90", mk_stat_quantile(t->buckets, BUCKETS, 900));
    write_number(out, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
    write_number(out, "p999", mk_stat_quantile(t->buckets, BUCKETS, 999));
    write_key(out, "histogram");
    print_buckets(t->buckets, out);
    write_closing_char(out, '}');
}

static void print_hosts(const struct snapshot *s, struct mk_buf *out)
{
    write_key(out, "hosts");
    mk_buf_add_char(out, '[');
    for (size_t i = 0; i < s->n_labels; i++) {
        const struct totals *t = &s->labels[i].totals;
        if (i)
            mk_buf_add_char(out, ',');
        mk_buf_add_char(out, '{');
        write_key(out, "name");
        mk_json_quote(out, s->labels[i].name);
        write_number(out, "requests", metrics_totals_requests(t));
        write_number(out, "bytes", t->bytes);
        write_number(out, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
        write_number(out, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
        write_closing_char(out, '}');
    }
    write_closing_char(out, ']');
}

static void print_process(const struct process_view *p, struct mk_buf *out)
{
    mk_buf_add_char(out, '{');
    write_number(out, "pid", (uint64_t)p->stats.pid);
    write_key(out, "state");
    mk_json_quote(out, p->stats.leaving ? MK_STR("leaving") : MK_STR("serving"));
    write_number(out, "started", p->stats.started);
    write_number(out, "connections", p->stats.open);
    write_number(out, "requests", p->stats.requests);
    write_number(out, "accepted", p->stats.accepted);
    write_number(out, "dropped", p->stats.dropped);
    write_number(out, "sent", p->stats.sent);
    if (p->known) {
        write_number(out, "rss", p->info.rss);
        write_number(out, "pss", p->info.pss);
        write_number(out, "cpu_us", p->info.cpu_us);
        write_number(out, "cache_files", p->info.cache_files);
        write_number(out, "cache_bytes", p->info.cache_bytes);
    }
    write_closing_char(out, '}');
}

static void print_workers(const struct snapshot *s, struct mk_buf *out)
{
    struct process_view p;
    bool is_first = true;
    write_key(out, "workers");
    mk_buf_add_char(out, '[');
    for (size_t i = 0; metrics_snapshot_process_at(s, i, &p); i++) {
        if (!p.stats.pid)
            continue;
        if (!is_first)
            mk_buf_add_char(out, ',');
        print_process(&p, out);
        is_first = false;
    }
    write_closing_char(out, ']');
}

static void print_reloads(const struct snapshot *s, struct mk_buf *out)
{
    struct mk_reloads r;
    mk_worker_reloads(s->worker, &r, NULL);
    write_number(out, "reloads", r.done);
    write_number(out, "reloaded", (uint64_t)r.done_at);
    write_number(out, "failed_reloads", r.failed);
    write_number(out, "reload_failed", r.last_failed ? (uint64_t)r.failed_at : 0);
}

/* Certificates that need attention, and the earliest expiry; 0: no TLS. */
static void print_certificates(const struct snapshot *s, struct mk_buf *out)
{
    struct certificates c;
    metrics_certificates_count(s->worker, &c);
    write_number(out, "certificate_ends", (uint64_t)c.first_end);
    write_number(out, "certificates_expired", c.n[CERTIFICATE_EXPIRED]);
    write_number(out, "certificates_early", c.n[CERTIFICATE_EARLY]);
    write_number(out, "certificates_kept", c.n[CERTIFICATE_KEPT]);
}

void metrics_json_print(const struct snapshot *s, struct mk_buf *out)
{
    mk_buf_add_char(out, '{');
    write_key(out, "version");
    mk_json_quote(out, MK_STR(MONKEY_VERSION));
    write_number(out, "now", (uint64_t)mk_worker_now(s->worker));
    write_number(out, "now_ms", mk_worker_now_ms(s->worker));
    write_number(out, "started", (uint64_t)mk_worker_server_started(s->worker));
    print_reloads(s, out);
    print_certificates(s, out);
    write_number(out, "master", (uint64_t)mk_worker_master(s->worker));
    print_requests(&s->all, out);
    print_latency(&s->all, out);
    print_hosts(s, out);
    print_workers(s, out);
    metrics_statistics_print_json(mk_worker_statistics(s->worker), out);
    write_closing_char(out, '}');
}

/* ---- History ---- */

static void print_slices(const struct history *h, uint64_t now_ms, struct mk_buf *out)
{
    struct slice slice;
    bool is_first = true;
    write_key(out, "durations");
    mk_buf_add_char(out, '[');
    for (unsigned back = SLICES; back-- > 0;) {
        if (!metrics_history_slice(h, now_ms, back, &slice))
            continue;
        mk_buf_addf(out, "%s[%llu,", is_first ? "" : ",", (unsigned long long)slice.now_ms);
        print_buckets(slice.buckets, out);
        write_closing_char(out, ']');
        is_first = false;
    }
    write_closing_char(out, ']');
}

static void print_histogram(const struct history *h, struct mk_buf *out)
{
    uint64_t buckets[BUCKETS];
    for (unsigned b = 0; b < BUCKETS; b++)
        buckets[b] = atomic_load_explicit(&h->buckets[b], memory_order_relaxed);
    write_key(out, "histogram");
    print_buckets(buckets, out);
}

void metrics_json_print_history(const struct history *h, uint64_t now_ms, struct sample *samples,
                                struct mk_buf *out)
{
    static const char *const fields[FIELDS] = {"requests", "bytes", "connections", "memory", "none",
                                               "1xx",      "2xx",   "3xx",         "4xx",    "5xx",
                                               "p50",      "p90",   "p99",         "p999"};
    size_t n = metrics_history_read(h, now_ms, samples);
    mk_buf_add(out, MK_STR("{\"now_ms\":["));
    for (size_t i = 0; i < n; i++)
        mk_buf_addf(out, "%s%llu", i ? "," : "", (unsigned long long)samples[i].now_ms);
    write_closing_char(out, ']');
    for (unsigned f = 0; f < FIELDS; f++) {
        write_key(out, fields[f]);
        mk_buf_add_char(out, '[');
        for (size_t i = 0; i < n; i++)
            mk_buf_addf(out, "%s%llu", i ? "," : "", (unsigned long long)samples[i].values[f]);
        write_closing_char(out, ']');
    }
    print_slices(h, now_ms, out);
    print_histogram(h, out);
    write_closing_char(out, '}');
}
