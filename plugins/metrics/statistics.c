/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include "exposition.h"
#include <monkey/host.h>
#include <monkey/tls.h>

enum {
    KEY_MAX = 128,
    NAME_MAX_LEN = 63,
    LABEL_MAX = 15,
    HELP_MAX = 159,
    TEXTS_MAX = NAME_MAX_LEN + 1 + MK_STAT_LABELS_MAX * (LABEL_MAX + 1) +
                MK_STAT_METRICS_MAX * (NAME_MAX_LEN + HELP_MAX + 2 * LABEL_MAX + 4),
};

/* A table, and the metric in it that is being printed. */
struct view {
    const struct mk_stat_registry *r;
    const char *source; /* name of the other server whose table it is; NULL: this server */
    unsigned number;
    struct mk_stat_table table;
    struct mk_stat_metric metrics[MK_STAT_METRICS_MAX];
    const struct mk_stat_metric *metric;
    unsigned cell;
    /* Copies of the strings of another server, which may be compromised and change them at any time. */
    char text[TEXTS_MAX];
    size_t text_len;
};

/* ---- Tables of this and of other servers ---- */

/* Gets the statistics of this server if `i` is 0, and otherwise those of the i-th other server. Returns false
 * if there are no more servers. */
static bool registry_at(const struct mk_worker *w, size_t i, struct mk_stat_source *out)
{
    *out = (struct mk_stat_source){.registry = mk_worker_statistics(w)};
    return i == 0 || mk_worker_statistics_at(w, i - 1, out);
}

/* Copies at most `max` bytes of a string, and replaces control characters by spaces, because they could end
 * its line. */
static const char *copy_text(struct view *v, const char *text, size_t max)
{
    char *to = v->text + v->text_len;
    size_t n = 0;
    for (char c; text && n < max && (c = text[n]); n++)
        to[n] = c < ' ' && c >= 0 ? ' ' : c;
    to[n] = '\0';
    v->text_len += n + 1;
    return text ? to : NULL;
}

/* Copies a name; an invalid one becomes NULL. */
static const char *copy_name(struct view *v, const char *text, size_t max)
{
    const char *name = copy_text(v, text, max);
    for (size_t i = 0; name && name[i]; i++)
        if (!mk_char_is_alpha(name[i]) && name[i] != '_' && !(i && mk_char_is_digit(name[i])))
            return NULL;
    return name && *name ? name : NULL;
}

static void copy_strings(struct view *v)
{
    struct mk_stat_table *t = &v->table;
    v->text_len = 0;
    t->name = copy_name(v, t->name, NAME_MAX_LEN);
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX && t->labels[i]; i++)
        if (!(t->labels[i] = copy_name(v, t->labels[i], LABEL_MAX)))
            t->name = NULL;
    for (size_t i = 0; i < t->n_metrics; i++) {
        struct mk_stat_metric *m = &v->metrics[i];
        m->name = copy_name(v, m->name, NAME_MAX_LEN);
        m->help = copy_text(v, m->help, HELP_MAX);
        m->label = copy_name(v, m->label, LABEL_MAX);
        m->value = copy_text(v, m->value, LABEL_MAX);
    }
}

/* Returns false if there are no more tables. A table that must not be printed has no name. */
static bool init_table_view(struct view *v, const struct mk_stat_source *source, unsigned number)
{
    v->r = source->registry;
    v->source = source->name;
    v->number = number;
    bool found = v->r && mk_stat_table_at(v->r, number, &v->table, v->metrics);
    if (found && v->source)
        copy_strings(v);
    return found;
}

/* Returns whether one of the first `n` servers has a table with this name. The tables of later servers are
 * printed together with that one. */
static bool is_table_of_earlier_server(const struct mk_worker *w, size_t n, const char *name)
{
    struct mk_stat_source source;
    for (size_t i = 0; i < n && registry_at(w, i, &source); i++)
        if (source.registry && mk_stat_find(source.registry, name))
            return true;
    return false;
}

/* Finds the table of the i-th server that has the name of `like` and, at the same index, the same metric. */
static bool find_same_metric(struct view *v, const struct mk_worker *w, size_t i, const struct view *like)
{
    struct mk_stat_source source;
    if (!registry_at(w, i, &source) || !source.registry)
        return false;
    unsigned number = mk_stat_find(source.registry, like->table.name);
    if (!number || !init_table_view(v, &source, number) || !v->table.name ||
        v->table.n_metrics != like->table.n_metrics)
        return false;
    for (unsigned k = 0; k < MK_STAT_LABELS_MAX && (v->table.labels[k] || like->table.labels[k]); k++)
        if (!v->table.labels[k] || !like->table.labels[k] ||
            strcmp(v->table.labels[k], like->table.labels[k]) != 0)
            return false;
    v->cell = like->cell;
    v->metric = &v->metrics[v->cell];
    return v->metric->kind == like->metric->kind &&
           (!like->metric->name || (v->metric->name && strcmp(v->metric->name, like->metric->name) == 0));
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
    if (v->source)
        metrics_exposition_add_label(out, true, "isolate", mk_str_from_c(v->source));
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX && t->labels[i]; i++)
        metrics_exposition_add_label(out, i == 0 && !v->source, t->labels[i], mk_stat_label(v->r, series, i));
    if (v->metric->label)
        metrics_exposition_add_label(out, !t->labels[0] && !v->source, v->metric->label,
                                     mk_str_from_c(v->metric->value ? v->metric->value : ""));
}

static bool has_labels(const struct view *v)
{
    return v->table.labels[0] || v->source;
}

static void close_labels(struct mk_buf *out, const struct view *v)
{
    if (has_labels(v) || v->metric->label)
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
    metrics_exposition_add_label(out, !has_labels(v), "le", us ? mk_buf_str(&bound) : MK_STR("+Inf"));
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
        metrics_exposition_add_label(out, !has_labels(v), "le", end ? mk_buf_str(&bound) : MK_STR("+Inf"));
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

static void print_samples(struct mk_buf *out, const struct view *v)
{
    const struct mk_stat_metric *m = v->metric;
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

/* Prints a metric of the i-th server, together with the same metric of later servers: the format requires
 * each family in one block. */
static void print_metric(struct mk_buf *out, const struct mk_worker *w, size_t i, const struct view *v)
{
    struct mk_stat_source source;
    struct view other;
    if (v->metric->help)
        metrics_exposition_begin(out, v->metric->name, prometheus_type(v->metric->kind), v->metric->help);
    print_samples(out, v);
    while (registry_at(w, ++i, &source))
        if (find_same_metric(&other, w, i, v))
            print_samples(out, &other);
}

/* Returns whether the table of the i-th server, or the same table of a later one, has series. */
static bool has_series(const struct mk_worker *w, size_t i, const char *name)
{
    struct mk_stat_source source;
    for (; registry_at(w, i, &source); i++)
        if (source.registry && mk_stat_next(source.registry, mk_stat_find(source.registry, name), 0))
            return true;
    return false;
}

void metrics_statistics_print(const struct mk_worker *w, struct mk_buf *out)
{
    struct mk_stat_source source;
    struct view v;
    for (size_t i = 0; registry_at(w, i, &source); i++)
        for (unsigned t = 1; init_table_view(&v, &source, t); t++) {
            if (!v.table.name || is_table_of_earlier_server(w, i, v.table.name) ||
                !has_series(w, i, v.table.name))
                continue;
            for (v.cell = 0; v.cell < v.table.n_metrics; v.cell++) {
                v.metric = &v.metrics[v.cell];
                if (v.metric->name)
                    print_metric(out, w, i, &v);
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
    if (f->type == MK_STAT_TEXT)
        mk_json_string(w, f->text);
    else if (f->type == MK_STAT_NUMBER)
        mk_json_uint(w, f->n);
    else
        mk_json_null(w);
}

static void print_rows(const struct view *v, struct mk_json_writer *w)
{
    struct mk_stat_field f;
    for (uint32_t series = 0; (series = mk_stat_next(v->r, v->number, series));) {
        mk_json_begin_object(w);
        if (v->source)
            mk_json_cstr(mk_json_key(w, "isolate"), v->source);
        for (unsigned i = 0; mk_stat_field_at(v->r, v->number, series, i, &f); i++)
            print_field(&f, w);
        mk_json_end_object(w);
    }
}

static bool has_columns(const struct mk_stat_table *t)
{
    for (size_t i = 0; i < t->n_metrics; i++)
        if (t->metrics[i].column)
            return true;
    return false;
}

/* Prints a table of the i-th server, together with the same table of later servers. */
static void print_table(const struct mk_worker *worker, size_t i, struct view *v, struct mk_json_writer *w)
{
    struct mk_stat_source source;
    struct view other;
    v->cell = 0;
    v->metric = &v->metrics[0];
    mk_json_begin_array(mk_json_key(w, v->table.name));
    print_rows(v, w);
    while (registry_at(worker, ++i, &source))
        if (find_same_metric(&other, worker, i, v))
            print_rows(&other, w);
    mk_json_end_array(w);
}

void metrics_statistics_print_json(const struct mk_worker *worker, struct mk_json_writer *w)
{
    struct mk_stat_source source;
    struct view v;
    for (size_t i = 0; registry_at(worker, i, &source); i++)
        for (unsigned t = 1; init_table_view(&v, &source, t); t++)
            if (v.table.name && has_columns(&v.table) && !is_table_of_earlier_server(worker, i, v.table.name))
                print_table(worker, i, &v, w);
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
