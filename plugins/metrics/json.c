/* SPDX-License-Identifier: Apache-2.0 */
/* The status as one JSON object, which the live page reads, too. */
#include <monkey/version.h>

#include "certificates.h"
#include "snapshot.h"
#include "statistics.h"

static void key(struct mk_buf *out, const char *name)
{
    char last = out->len ? out->p[out->len - 1] : '{';
    if (out->failed)
        return;
    mk_buf_addf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

static void number(struct mk_buf *out, const char *name, uint64_t n)
{
    key(out, name);
    mk_buf_add_num(out, n);
}

static void open_object(struct mk_buf *out, const char *name)
{
    key(out, name);
    mk_buf_add_char(out, '{');
}

static void close_with(struct mk_buf *out, char c)
{
    mk_buf_add_char(out, c);
}

static void print_methods(const struct totals *t, struct mk_buf *out)
{
    open_object(out, "by_method");
    for (unsigned m = 0; m < MK_METHODS; m++) {
        uint64_t n = metrics_totals_of_method(t, m);
        if (n)
            number(out, metrics_method_label(m), n);
    }
    close_with(out, '}');
}

static void print_statuses(const struct totals *t, struct mk_buf *out)
{
    static const char *const classes[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    uint64_t by_class[CLASSES];
    char room[8];
    open_object(out, "by_status");
    for (unsigned row = 0; row < t->n_rows; row++)
        number(out, metrics_status_label(t->status[row], room), metrics_totals_of_row(t, row));
    close_with(out, '}');
    metrics_totals_by_class(t, by_class);
    open_object(out, "by_class");
    for (unsigned i = 0; i < CLASSES; i++)
        number(out, classes[i], by_class[i]);
    close_with(out, '}');
}

static void print_requests(const struct totals *t, struct mk_buf *out)
{
    open_object(out, "requests");
    number(out, "total", metrics_totals_requests(t));
    number(out, "bytes", t->bytes);
    print_methods(t, out);
    print_statuses(t, out);
    open_object(out, "by_ending");
    for (unsigned e = 0; e < MK_OUTCOMES; e++)
        number(out, mk_outcome_name((enum mk_outcome)e), t->endings[e]);
    close_with(out, '}');
    close_with(out, '}');
}

/* Pairs of the end of a bucket and its count. */
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
    close_with(out, ']');
}

static void print_latency(const struct totals *t, struct mk_buf *out)
{
    uint64_t n = 0;
    for (unsigned b = 0; b < BUCKETS; b++)
        n += t->buckets[b];
    open_object(out, "latency_us");
    number(out, "count", n);
    number(out, "mean", n ? t->duration_us / n : 0);
    number(out, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
    number(out, "p90", mk_stat_quantile(t->buckets, BUCKETS, 900));
    number(out, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
    number(out, "p999", mk_stat_quantile(t->buckets, BUCKETS, 999));
    key(out, "histogram");
    print_buckets(t->buckets, out);
    close_with(out, '}');
}

static void print_hosts(const struct snapshot *s, struct mk_buf *out)
{
    key(out, "hosts");
    mk_buf_add_char(out, '[');
    for (size_t i = 0; i < s->n_labels; i++) {
        const struct totals *t = &s->labels[i].totals;
        if (i)
            mk_buf_add_char(out, ',');
        mk_buf_add_char(out, '{');
        key(out, "name");
        mk_json_string(out, s->labels[i].name);
        number(out, "requests", metrics_totals_requests(t));
        number(out, "bytes", t->bytes);
        number(out, "p50", mk_stat_quantile(t->buckets, BUCKETS, 500));
        number(out, "p99", mk_stat_quantile(t->buckets, BUCKETS, 990));
        close_with(out, '}');
    }
    close_with(out, ']');
}

static void print_process(const struct process_view *p, struct mk_buf *out)
{
    mk_buf_add_char(out, '{');
    number(out, "pid", (uint64_t)p->stats.pid);
    key(out, "state");
    mk_json_string(out, p->stats.leaving ? MK_STR("leaving") : MK_STR("serving"));
    number(out, "started", p->stats.started);
    number(out, "connections", p->stats.open);
    number(out, "requests", p->stats.requests);
    number(out, "accepted", p->stats.accepted);
    number(out, "dropped", p->stats.dropped);
    number(out, "sent", p->stats.sent);
    if (p->known) {
        number(out, "rss", p->info.rss);
        number(out, "pss", p->info.pss);
        number(out, "cpu_us", p->info.cpu_us);
        number(out, "cache_files", p->info.cache_files);
        number(out, "cache_bytes", p->info.cache_bytes);
    }
    close_with(out, '}');
}

static void print_workers(const struct snapshot *s, struct mk_buf *out)
{
    struct process_view p;
    bool is_first = true;
    key(out, "workers");
    mk_buf_add_char(out, '[');
    for (size_t i = 0; metrics_snapshot_process(s, i, &p); i++) {
        if (!p.stats.pid)
            continue;
        if (!is_first)
            mk_buf_add_char(out, ',');
        print_process(&p, out);
        is_first = false;
    }
    close_with(out, ']');
}

static void print_reloads(const struct snapshot *s, struct mk_buf *out)
{
    struct mk_reloads r;
    mk_worker_reloads(s->worker, &r, NULL);
    number(out, "reloads", r.done);
    number(out, "reloaded", (uint64_t)r.done_at);
    number(out, "failed_reloads", r.failed);
    number(out, "reload_failed", r.last_failed ? (uint64_t)r.failed_at : 0);
}

/* Those that need attention, and when the first one ends; 0: nothing is encrypted. */
static void print_certificates(const struct snapshot *s, struct mk_buf *out)
{
    struct certificates c;
    metrics_certificates_count(s->worker, &c);
    number(out, "certificate_ends", (uint64_t)c.first_end);
    number(out, "certificates_expired", c.n[CERTIFICATE_EXPIRED]);
    number(out, "certificates_early", c.n[CERTIFICATE_EARLY]);
    number(out, "certificates_kept", c.n[CERTIFICATE_KEPT]);
}

void metrics_json_print(const struct snapshot *s, struct mk_buf *out)
{
    mk_buf_add_char(out, '{');
    key(out, "version");
    mk_json_string(out, MK_STR(MONKEY_VERSION));
    number(out, "now", (uint64_t)mk_worker_now(s->worker));
    number(out, "now_ms", mk_worker_now_ms(s->worker));
    number(out, "started", (uint64_t)mk_worker_server_started(s->worker));
    print_reloads(s, out);
    print_certificates(s, out);
    number(out, "master", (uint64_t)mk_worker_master(s->worker));
    print_requests(&s->all, out);
    print_latency(&s->all, out);
    print_hosts(s, out);
    print_workers(s, out);
    metrics_statistics_print_json(mk_worker_statistics(s->worker), out);
    close_with(out, '}');
}

/* ---- History ---- */

static void print_slices(const struct history *h, uint64_t now_ms, struct mk_buf *out)
{
    struct slice slice;
    bool is_first = true;
    key(out, "durations");
    mk_buf_add_char(out, '[');
    for (unsigned back = SLICES; back-- > 0;) {
        if (!metrics_history_slice(h, now_ms, back, &slice))
            continue;
        mk_buf_addf(out, "%s[%llu,", is_first ? "" : ",", (unsigned long long)slice.now_ms);
        print_buckets(slice.buckets, out);
        close_with(out, ']');
        is_first = false;
    }
    close_with(out, ']');
}

static void print_histogram(const struct history *h, struct mk_buf *out)
{
    uint64_t buckets[BUCKETS];
    for (unsigned b = 0; b < BUCKETS; b++)
        buckets[b] = atomic_load_explicit(&h->buckets[b], memory_order_relaxed);
    key(out, "histogram");
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
    close_with(out, ']');
    for (unsigned f = 0; f < FIELDS; f++) {
        key(out, fields[f]);
        mk_buf_add_char(out, '[');
        for (size_t i = 0; i < n; i++)
            mk_buf_addf(out, "%s%llu", i ? "," : "", (unsigned long long)samples[i].values[f]);
        close_with(out, ']');
    }
    print_slices(h, now_ms, out);
    print_histogram(h, out);
    close_with(out, '}');
}
