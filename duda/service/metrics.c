/* SPDX-License-Identifier: Apache-2.0 */
#include "service/metrics.h"

#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdio.h>
#include <string.h>

#include "service/duda_ctx.h"

enum {
    FAMILY_NAME_MAX = 63, /* maximum length of a metric family's name: see monkey/stats.h */
    LABEL_NAME_MAX = 15,
    HELP_MAX = 159,
    BUCKETS = 256,
    KEY_MAX = DUDA_METRIC_LABELS_MAX * DUDA_METRIC_LABEL_VALUE_MAX,
};

/* A series that this worker updates. */
struct series_entry {
    struct series_entry *next;
    unsigned table;
    uint32_t series;
    uint64_t *cells; /* NULL: out of memory, or the registry is full */
    size_t lens[DUDA_METRIC_LABELS_MAX], len;
    char key[]; /* label values, one after another */
};

struct duda_metrics_cache {
    struct series_entry *buckets[BUCKETS];
    struct table_state {
        unsigned table; /* 0: this element is unused */
        bool is_full;   /* all series of the table are in the cache, and there will be no more */
        bool is_reported;
    } tables[MK_STAT_TABLES_MAX];
};

/* ---- Loading ---- */

static bool is_identifier(mk_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!mk_char_is_alpha(name.p[i]) && name.p[i] != '_' && !(i && mk_char_is_digit(name.p[i])))
            return false;
    return name.len > 0;
}

static const char *check_label_names(const struct duda_metric *m)
{
    for (size_t i = 1; i < MK_LEN(m->labels) && m->labels[i]; i++) {
        mk_str name = mk_str_from_c(m->labels[i]);
        if (!is_identifier(name) || name.len > LABEL_NAME_MAX || mk_str_starts(name, MK_STR("__")) ||
            mk_str_eq(name, MK_STR("le")) || mk_str_eq(name, MK_STR("isolate")))
            return "a label needs a name of 1 to 15 letters, digits and `_`, except `le`, `isolate` and "
                   "`__...`";
        for (size_t k = 1; k < i; k++)
            if (strcmp(m->labels[k], m->labels[i]) == 0)
                return "two labels have the same name";
    }
    return NULL;
}

/* Returns the reason why the metric is invalid; NULL if it is valid. */
static const char *check_metric(const struct duda_metric *m, const struct duda_service *service)
{
    mk_str name = mk_str_from_c(m->name ? m->name : "");
    if (!is_identifier(name) || strlen(service->name) + 1 + name.len > FAMILY_NAME_MAX)
        return "its name must consist of letters, digits and `_`, with at most 63 characters including the "
               "name of the service";
    if (m->kind == DUDA_METRIC_COUNTER && !mk_str_ends(name, MK_STR("_total")))
        return "the name of a counter must end in `_total`";
    if (m->kind == DUDA_METRIC_DURATION && !mk_str_ends(name, MK_STR("_seconds")))
        return "the name of a duration must end in `_seconds`";
    if (!m->help || !m->help[0] || strlen(m->help) > HELP_MAX || strchr(m->help, '\n'))
        return "its help must be one line of 1 to 159 characters";
    return check_label_names(m);
}

static unsigned register_metric(struct mk_stat_registry *registry, const struct duda_service *service,
                                const struct duda_metric *m)
{
    static const enum mk_stat_kind kinds[] = {[DUDA_METRIC_COUNTER] = MK_STAT_COUNTER,
                                              [DUDA_METRIC_GAUGE] = MK_STAT_GAUGE,
                                              [DUDA_METRIC_HISTOGRAM] = MK_STAT_NUMBER_HISTOGRAM,
                                              [DUDA_METRIC_DURATION] = MK_STAT_HISTOGRAM};
    char name[FAMILY_NAME_MAX + 1];
    snprintf(name, sizeof name, "%s_%s", service->name, m->name);
    const struct mk_stat_metric metric = {
        .name = name, .help = m->help, .column = "value", .kind = kinds[m->kind]};
    struct mk_stat_table table = {.name = name, .metrics = &metric, .n_metrics = 1};
    for (size_t i = 1; i < MK_LEN(m->labels) && m->labels[i]; i++)
        table.labels[i - 1] = m->labels[i];
    return mk_stat_register_table(registry, &table);
}

static bool has_earlier_metric(const struct duda_metric_tables *t, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(t->metrics[i]->name, name) == 0)
            return true;
    return false;
}

static bool report_metric(struct mk_config *config, const struct duda_service *service,
                          const struct duda_metric *m, const char *problem)
{
    mk_config_error(config, NULL, NULL, "the metric `%s` of the service `%s` (%s:%d): %s",
                    m->name ? m->name : "", service->name, m->file, m->line, problem);
    return false;
}

static bool load_metric(struct mk_config *config, const struct duda_service *service,
                        struct duda_metric_tables *t, size_t i)
{
    struct duda_metric *m = t->metrics[i];
    const char *problem = check_metric(m, service);
    if (!problem && has_earlier_metric(t, i, m->name))
        problem = "another metric has this name";
    if (!problem && strcmp(service->name, "monkey") == 0)
        problem = "names that begin with `monkey_` belong to the server: rename the service";
    if (problem)
        return report_metric(config, service, m, problem);
    if (m->index != i)
        m->index = (unsigned)i;
    t->numbers[i] = register_metric(mk_config_statistics(config), service, m);
    if (!t->numbers[i])
        mk_config_warn(
            config, NULL, NULL,
            "the metric `%s` of the service `%s` is not counted: the server has too many statistics", m->name,
            service->name);
    return true;
}

bool duda_metrics_load(struct mk_config *config, const struct duda_service *service,
                       const struct duda_metric_tables **out)
{
    size_t n = service->metrics ? (size_t)(service->metrics_end - service->metrics) : 0;
    *out = NULL;
    if (n == 0)
        return true;
    if (n > DUDA_METRICS_MAX)
        return report_metric(config, service, service->metrics[DUDA_METRICS_MAX],
                             "a service has at most 64 metrics");
    struct duda_metric_tables *t = mk_config_alloc(config, sizeof *t);
    if (!t)
        return false;
    *t = (struct duda_metric_tables){.metrics = service->metrics, .n = n};
    for (size_t i = 0; i < n; i++)
        if (!load_metric(config, service, t, i))
            return false;
    *out = t;
    return true;
}

/* ---- Series ---- */

void duda_metrics_cache_free(struct duda_metrics_cache *cache)
{
    for (size_t i = 0; cache && i < BUCKETS; i++)
        for (struct series_entry *e = cache->buckets[i], *next; e; e = next) {
            next = e->next;
            mk_mem_free(e);
        }
    mk_mem_free(cache);
}

/* The label values of a call, in valid UTF-8. */
struct label_key {
    mk_str values[DUDA_METRIC_LABELS_MAX];
    size_t n;
    char text[KEY_MAX];
};

/* Copies a label value. Replaces invalid UTF-8 and control characters, and truncates between characters. */
static size_t copy_label_value(char *to, mk_str value)
{
    size_t n = 0;
    while (value.len) {
        size_t len = mk_utf8_char_len(value);
        bool is_valid = len > 0 && (len > 1 || (unsigned char)value.p[0] >= ' ');
        len = len ? len : 1;
        if (n + len > DUDA_METRIC_LABEL_VALUE_MAX)
            break;
        if (is_valid)
            memcpy(to + n, value.p, len);
        else
            to[n] = '?';
        n += len;
        value = mk_str_skip(value, len);
    }
    return n;
}

static void make_label_key(struct label_key *key, const mk_str *values, size_t n)
{
    size_t at = 0;
    key->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t len = copy_label_value(key->text + at, values[i]);
        key->values[i] = mk_str_of(key->text + at, len);
        at += len;
    }
}

static struct series_entry **find_bucket(struct duda_metrics_cache *cache, unsigned table,
                                         const struct label_key *key)
{
    uint64_t hash = MK_FNV1A_INIT ^ table; /* not keyed: a table has few series, whatever clients send */
    for (size_t i = 0; i < key->n; i++)
        hash = mk_fnv1a(hash, key->values[i]);
    return &cache->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static bool is_entry_of(const struct series_entry *e, unsigned table, const struct label_key *key)
{
    size_t at = 0;
    if (e->table != table)
        return false;
    for (size_t i = 0; i < key->n; at += e->lens[i++])
        if (!mk_str_eq(mk_str_of(e->key + at, e->lens[i]), key->values[i]))
            return false;
    return true;
}

static struct series_entry *find_series_entry(struct duda_metrics_cache *cache, unsigned table,
                                              const struct label_key *key)
{
    struct series_entry *e = *find_bucket(cache, table, key);
    while (e && !is_entry_of(e, table, key))
        e = e->next;
    return e;
}

static bool has_label_values(const struct mk_stat_registry *registry, uint32_t series,
                             const struct label_key *key)
{
    for (size_t i = 0; i < key->n; i++)
        if (!mk_str_eq(mk_stat_label(registry, series, (unsigned)i), key->values[i]))
            return false;
    return true;
}

/* Returns whether the table contains a series with these label values, or has space for one. */
static bool may_have_series(const struct mk_stat_registry *registry, unsigned table,
                            const struct label_key *key)
{
    size_t n = 0;
    for (uint32_t s = 0; (s = mk_stat_next(registry, table, s)); n++)
        if (has_label_values(registry, s, key))
            return true;
    return n + 1 < DUDA_METRIC_SERIES_MAX; /* one more for `other` */
}

static struct series_entry *add_series_entry(struct duda_worker_ctx *worker_ctx, unsigned table,
                                             const struct label_key *key)
{
    struct mk_stat_registry *registry = mk_worker_statistics(worker_ctx->worker);
    struct series_entry **bucket = find_bucket(worker_ctx->metrics, table, key), *e;
    uint32_t series = mk_stat_series(registry, table, key->values);
    size_t len = 0;
    for (size_t i = 0; i < key->n; i++)
        len += key->values[i].len;
    if (series == MK_STAT_RETRY || !(e = mk_mem_zalloc(1, sizeof *e + len)))
        return NULL;
    e->table = table;
    e->series = series;
    e->cells = mk_worker_cells(worker_ctx->worker, series);
    for (size_t i = 0; i < key->n; i++) {
        memcpy(e->key + e->len, key->values[i].p, key->values[i].len);
        e->lens[i] = key->values[i].len;
        e->len += e->lens[i];
    }
    e->next = *bucket;
    *bucket = e;
    return e;
}

/* Adds the series that other workers have created in the full table to the cache of this worker. */
static void load_all_series(struct duda_worker_ctx *worker_ctx, unsigned table, size_t n_labels)
{
    const struct mk_stat_registry *registry = mk_worker_statistics(worker_ctx->worker);
    struct label_key key;
    mk_str values[DUDA_METRIC_LABELS_MAX];
    size_t n = 0;
    for (uint32_t s = 0; n < 2 * DUDA_METRIC_SERIES_MAX && (s = mk_stat_next(registry, table, s)); n++) {
        for (size_t i = 0; i < n_labels; i++)
            values[i] = mk_stat_label(registry, s, (unsigned)i);
        make_label_key(&key, values, n_labels);
        if (!find_series_entry(worker_ctx->metrics, table, &key))
            (void)add_series_entry(worker_ctx, table, &key);
    }
}

static struct table_state *find_table_state(struct duda_metrics_cache *cache, unsigned table)
{
    struct table_state *s = &cache->tables[table - 1];
    s->table = table;
    return s;
}

static struct series_entry *add_series(struct duda_ctx *d, const struct duda_metric *m, unsigned table,
                                       struct label_key *key)
{
    static const mk_str other[DUDA_METRIC_LABELS_MAX] = {MK_STR_INIT("other"), MK_STR_INIT("other"),
                                                         MK_STR_INIT("other")};
    struct duda_worker_ctx *worker_ctx = d->worker_ctx;
    struct table_state *state = find_table_state(worker_ctx->metrics, table);
    if (!state->is_full && may_have_series(mk_worker_statistics(worker_ctx->worker), table, key))
        return add_series_entry(worker_ctx, table, key);
    if (!state->is_full) {
        state->is_full = true;
        load_all_series(worker_ctx, table, key->n);
        duda_log(d, MK_LOG_WARN,
                 "the metric `%s` (%s:%d) has more than %d combinations of label values: others count as "
                 "`other`",
                 m->name, m->file, m->line, DUDA_METRIC_SERIES_MAX);
    }
    make_label_key(key, other, key->n);
    struct series_entry *e = find_series_entry(worker_ctx->metrics, table, key);
    return e ? e : add_series_entry(worker_ctx, table, key);
}

static size_t count_labels(const struct duda_metric *m)
{
    size_t n = 0;
    while (n < DUDA_METRIC_LABELS_MAX && m->labels[n + 1])
        n++;
    return n;
}

static void report_wrong_count(struct duda_ctx *d, const struct duda_metric *m, unsigned table, size_t n)
{
    struct table_state *state = find_table_state(d->worker_ctx->metrics, table);
    if (!state->is_reported)
        duda_log_handler(d, MK_LOG_ERROR,
                         "the metric `%s` (%s:%d) has %zu labels, but a call passes %zu: not counted",
                         m->name, m->file, m->line, count_labels(m), n);
    state->is_reported = true;
}

/* Returns the number of the metric's table; 0 if the metric is not counted, such as a metric of another
 * service, or a call outside of a service. */
static unsigned find_table(struct duda_ctx *d, const struct duda_metric *m)
{
    const struct duda_metric_tables *t = d->owner ? d->owner->metrics : NULL;
    if (!t || m->index >= t->n || t->metrics[m->index] != m)
        return 0;
    if (!d->worker_ctx->metrics)
        d->worker_ctx->metrics = mk_mem_zalloc(1, sizeof *d->worker_ctx->metrics);
    unsigned table = d->worker_ctx->metrics ? t->numbers[m->index] : 0;
    return table <= MK_STAT_TABLES_MAX ? table : 0;
}

static const struct series_entry *find_series(struct duda_ctx *d, const struct duda_metric *m,
                                              const mk_str *values, size_t n)
{
    struct label_key key;
    unsigned table = find_table(d, m);
    if (!table)
        return NULL;
    if (n != count_labels(m)) {
        report_wrong_count(d, m, table, n);
        return NULL;
    }
    make_label_key(&key, values, n);
    struct series_entry *e = find_series_entry(d->worker_ctx->metrics, table, &key);
    return e ? e : add_series(d, m, table, &key);
}

/* ---- Counting ---- */

void duda_counter_add_values(struct duda_ctx *d, const struct duda_counter *counter, uint64_t n,
                             const mk_str *labels, size_t n_labels)
{
    const struct series_entry *e = find_series(d, &counter->metric, labels, n_labels);
    if (e)
        mk_stat_add(e->cells, n);
}

void duda_gauge_add_values(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t n,
                           const mk_str *labels, size_t n_labels)
{
    const struct series_entry *e = find_series(d, &gauge->metric, labels, n_labels);
    if (e)
        mk_stat_add(e->cells, (uint64_t)n); /* modulo 2^64 */
}

void duda_gauge_set_values(struct duda_ctx *d, const struct duda_gauge *gauge, int64_t value,
                           const mk_str *labels, size_t n_labels)
{
    const struct series_entry *e = find_series(d, &gauge->metric, labels, n_labels);
    struct mk_stat_registry *registry = e ? mk_worker_statistics(d->worker_ctx->worker) : NULL;
    if (registry)
        mk_stat_set(mk_stat_cells(registry, e->series, MK_STAT_SERVER), value > 0 ? (uint64_t)value : 0);
}

void duda_histogram_observe_values(struct duda_ctx *d, const struct duda_histogram *histogram, uint64_t value,
                                   const mk_str *labels, size_t n_labels)
{
    const struct series_entry *e = find_series(d, &histogram->metric, labels, n_labels);
    if (e)
        mk_stat_observe_fine(e->cells, value);
}

void duda_duration_observe_us_values(struct duda_ctx *d, const struct duda_duration *duration, uint64_t us,
                                     const mk_str *labels, size_t n_labels)
{
    const struct series_entry *e = find_series(d, &duration->metric, labels, n_labels);
    if (e)
        mk_stat_observe(e->cells, us);
}
