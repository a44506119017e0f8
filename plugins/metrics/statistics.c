/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include "exposition.h"
#include <monkey/host.h>
#include <monkey/tls.h>

enum { KEY_MAX = 128 };

/* A table, and the metric in it that is being printed. */
struct view {
    const struct mk_stat_registry *r;
    unsigned number;
    struct mk_stat_table table;
    struct mk_stat_metric metrics[MK_STAT_METRICS_MAX];
    const struct mk_stat_metric *metric;
    unsigned cell;
};

/* Returns false if there are no more tables. */
static bool init_table_view(struct view *v, const struct mk_stat_registry *r, unsigned number)
{
    v->r = r;
    v->number = number;
    return r && mk_stat_table_at(r, number, &v->table, v->metrics);
}

/* ---- Prometheus ---- */

static const char *prometheus_type(enum mk_stat_kind kind)
{
    return kind == MK_STAT_COUNTER ? "counter" : kind == MK_STAT_GAUGE ? "gauge" : "histogram";
}

/* Writes the name and its labels, up to the point where another label may follow. */
static void append_labels(struct mk_buf *out, const struct view *v, const char *suffix, uint32_t series)
{
    const struct mk_stat_table *t = &v->table;
    mk_buf_addf(out, "%s%s", v->metric->name, suffix);
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX && t->labels[i]; i++)
        metrics_exposition_add_label(out, i == 0, t->labels[i], mk_stat_label(v->r, series, i));
    if (v->metric->label)
        metrics_exposition_add_label(out, !t->labels[0], v->metric->label, mk_str_from_c(v->metric->value));
}

static void close_labels(struct mk_buf *out, const struct view *v)
{
    if (v->table.labels[0] || v->metric->label)
        mk_buf_add_char(out, '}');
}

static void print_value(struct mk_buf *out, const struct view *v, const char *suffix, uint32_t series,
                        uint64_t n, bool is_time)
{
    append_labels(out, v, suffix, series);
    close_labels(out, v);
    mk_buf_add_char(out, ' ');
    if (is_time)
        metrics_exposition_add_seconds(out, n);
    else
        mk_buf_add_num(out, n);
    mk_buf_add_char(out, '\n');
}

static void print_histogram_bucket(struct mk_buf *out, const struct view *v, uint32_t series, uint64_t us,
                                   uint64_t n)
{
    char buf[32];
    struct mk_buf bound = mk_buf_fixed(buf, sizeof buf);
    metrics_exposition_add_seconds(&bound, us);
    append_labels(out, v, "_bucket", series);
    metrics_exposition_add_label(out, !v->table.labels[0], "le", us ? mk_buf_str(&bound) : MK_STR("+Inf"));
    mk_buf_add_char(out, '}');
    metrics_exposition_add_value(out, n);
}

static bool is_power_of_2(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

/* Returns whether a bound of a number histogram is printed: up to 8, each bound; then two for each doubling
 * up to 2^32. Printed bounds are inclusive, so the largest number below the bound is printed. */
static bool is_number_bound(uint64_t end)
{
    return end <= UINT64_C(1) << 32 &&
           (end <= 8 || is_power_of_2(end) || (end % 3 == 0 && is_power_of_2(end / 3)));
}

static void print_number_histogram(struct mk_buf *out, const struct view *v, uint32_t series)
{
    uint64_t below = 0;
    char buf[32];
    for (unsigned i = 0; i < MK_STAT_FINE_BUCKETS; i++) {
        uint64_t end = mk_stat_bucket_end(MK_STAT_FINE_BUCKETS, i);
        struct mk_buf bound = mk_buf_fixed(buf, sizeof buf);
        below += mk_stat_sum(v->r, series, v->cell + i);
        if (end && !is_number_bound(end))
            continue;
        if (end)
            mk_buf_add_num(&bound, end - 1);
        append_labels(out, v, "_bucket", series);
        metrics_exposition_add_label(out, !v->table.labels[0], "le",
                                     end ? mk_buf_str(&bound) : MK_STR("+Inf"));
        mk_buf_add_char(out, '}');
        metrics_exposition_add_value(out, below);
    }
    print_value(out, v, "_sum", series, mk_stat_sum(v->r, series, v->cell + MK_STAT_FINE_BUCKETS), false);
    print_value(out, v, "_count", series, below, false);
}

/* Both kinds of histograms are printed with the bounds of the coarse kind. These are also bounds of fine
 * buckets, so the counts are exact. */
static void print_histogram(struct mk_buf *out, const struct view *v, uint32_t series)
{
    unsigned n = v->metric->kind == MK_STAT_HISTOGRAM ? MK_STAT_BUCKETS : MK_STAT_FINE_BUCKETS, bound = 0;
    uint64_t below = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t end = mk_stat_bucket_end(n, i), next = mk_stat_bucket_end(MK_STAT_BUCKETS, bound);
        below += mk_stat_sum(v->r, series, v->cell + i);
        if (end != next || !end)
            continue;
        print_histogram_bucket(out, v, series, end, below);
        bound++;
    }
    print_histogram_bucket(out, v, series, 0, below);
    print_value(out, v, "_sum", series, mk_stat_sum(v->r, series, v->cell + n), true);
    print_value(out, v, "_count", series, below, false);
}

static void print_metric(struct mk_buf *out, const struct view *v)
{
    const struct mk_stat_metric *m = v->metric;
    if (m->help)
        metrics_exposition_begin(out, m->name, prometheus_type(m->kind), m->help);
    for (uint32_t series = 0; (series = mk_stat_next(v->r, v->number, series));) {
        if (m->kind == MK_STAT_NUMBER_HISTOGRAM) {
            print_number_histogram(out, v, series);
            continue;
        }
        if (m->kind == MK_STAT_HISTOGRAM || m->kind == MK_STAT_FINE_HISTOGRAM) {
            print_histogram(out, v, series);
            continue;
        }
        uint64_t n = mk_stat_sum(v->r, series, v->cell);
        if (n || !m->is_optional)
            print_value(out, v, "", series, n, m->is_time);
    }
}

void metrics_statistics_print(const struct mk_stat_registry *r, struct mk_buf *out)
{
    struct view v;
    for (unsigned t = 1; init_table_view(&v, r, t); t++) {
        bool is_shown = v.table.name && mk_stat_next(r, t, 0);
        for (v.cell = 0; is_shown && v.cell < v.table.n_metrics; v.cell++) {
            v.metric = &v.metrics[v.cell];
            if (v.metric->name)
                print_metric(out, &v);
        }
    }
}

/* ---- JSON ---- */

static void print_field(const struct mk_stat_field *f, struct mk_json_writer *w)
{
    char room[KEY_MAX];
    struct mk_buf key = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&key, "%s%s", f->name, f->is_time ? "_us" : "");
    mk_json_key_str(w, mk_buf_str(&key));
    if (f->form == MK_STAT_TEXT)
        mk_json_string(w, f->text);
    else if (f->form == MK_STAT_NUMBER)
        mk_json_uint(w, f->n);
    else
        mk_json_null(w);
}

static void print_table(const struct view *v, struct mk_json_writer *w)
{
    struct mk_stat_field f;
    mk_json_begin_array(mk_json_key(w, v->table.name));
    for (uint32_t series = 0; (series = mk_stat_next(v->r, v->number, series));) {
        mk_json_begin_object(w);
        for (unsigned i = 0; mk_stat_field_at(v->r, v->number, series, i, &f); i++)
            print_field(&f, w);
        mk_json_end_object(w);
    }
    mk_json_end_array(w);
}

static bool has_columns(const struct mk_stat_table *t)
{
    for (size_t i = 0; i < t->n_metrics; i++)
        if (t->metrics[i].column)
            return true;
    return false;
}

void metrics_statistics_print_json(const struct mk_stat_registry *r, struct mk_json_writer *w)
{
    struct view v;
    for (unsigned t = 1; init_table_view(&v, r, t); t++)
        if (v.table.name && has_columns(&v.table))
            print_table(&v, w);
}

/* ---- Certificates ---- */

void metrics_certificates_count(const struct mk_worker *w, struct certificates *out)
{
    const struct mk_vhost *host;
    struct mk_vhost_certificate c;
    int64_t now = mk_worker_now(w);
    *out = (struct certificates){0};
    for (size_t i = 0; (host = mk_worker_vhost_at(w, i)); i++) {
        if (!mk_vhost_certificate_get(host, &c))
            continue;
        out->n[CERTIFICATE_EXPIRED] += c.not_after <= now;
        out->n[CERTIFICATE_EARLY] += c.not_before > now;
        out->n[CERTIFICATE_KEPT] += c.is_outdated;
        if (!out->first_end || c.not_after < out->first_end)
            out->first_end = c.not_after;
    }
}
