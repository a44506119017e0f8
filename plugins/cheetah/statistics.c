/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <monkey/readiness.h>

#include "show.h"
#include "table_writer.h"

enum {
    COLUMNS_MAX = MK_STAT_LABELS_MAX + MK_STAT_METRICS_MAX + 2,
    METRIC_COLUMNS = 6,
    COMPONENT_COLUMNS = 3,
    TEXT_WIDTH_MAX = 40,
    NUMBER_WIDTH = 8,
};

/* ---- Tables of this and of other servers, such as isolated services ---- */

/* Gets the statistics of this server if `i` is 0, and otherwise those of the i-th other server. Returns false
 * if there are no more servers. */
static bool registry_at(const struct mk_worker *w, size_t i, struct mk_stat_source *out)
{
    *out = (struct mk_stat_source){.registry = mk_worker_statistics(w)};
    return i == 0 || mk_worker_statistics_at(w, i - 1, out);
}

static bool has_others(const struct mk_worker *w)
{
    struct mk_stat_source source;
    return mk_worker_statistics_at(w, 0, &source);
}

static unsigned find_table(const struct mk_stat_source *source, const char *name)
{
    return source->registry ? mk_stat_find(source->registry, name) : 0;
}

/* The first column if there are other servers. */
static const struct cheetah_column source_column = {"isolate", -12};

static void write_source_cell(struct cheetah_table_writer *writer, const struct mk_stat_source *source)
{
    if (source->name)
        cheetah_table_cell_text(writer, mk_str_from_c(source->name));
    else
        cheetah_table_cell_null(writer);
}

static size_t column_width(const struct mk_worker *w, const char *name, unsigned column, size_t width)
{
    struct mk_stat_source source;
    struct mk_stat_field f;
    for (size_t i = 0; registry_at(w, i, &source); i++) {
        unsigned table = find_table(&source, name);
        for (uint32_t series = 0; table && (series = mk_stat_next(source.registry, table, series));)
            if (mk_stat_field_at(source.registry, table, series, column, &f) && f.text.len > width)
                width = f.text.len < TEXT_WIDTH_MAX ? f.text.len : TEXT_WIDTH_MAX;
    }
    return width;
}

/* Aligns text to the left and numbers to the right. The last column has no width. `from` is the first server
 * that has the table. */
static size_t collect_columns(const struct mk_worker *w, const struct mk_stat_source *from, const char *name,
                              struct cheetah_column *columns, char names[COLUMNS_MAX][32], bool json)
{
    const struct mk_stat_registry *r = from->registry;
    unsigned table = find_table(from, name);
    struct mk_stat_field f;
    size_t n = 0;
    for (; n < COLUMNS_MAX && mk_stat_field_at(r, table, mk_stat_next(r, table, 0), (unsigned)n, &f); n++) {
        size_t width = strnlen(f.name, TEXT_WIDTH_MAX);
        bool is_text = f.type == MK_STAT_TEXT;
        if (is_text)
            width = column_width(w, name, (unsigned)n, width);
        else if (width < NUMBER_WIDTH)
            width = NUMBER_WIDTH;
        struct mk_buf text = mk_buf_fixed(names[n], sizeof names[n]);
        mk_buf_addf(&text, "%.24s%s%c", f.name, json && f.is_time ? "_us" : "", '\0');
        columns[n] = (struct cheetah_column){names[n], is_text ? -(int)width : (int)width};
    }
    if (n)
        columns[n - 1].width = 0;
    return n;
}

static void write_field_cell(struct cheetah_table_writer *writer, const struct mk_stat_field *f)
{
    if (f->type == MK_STAT_TEXT)
        cheetah_table_cell_text(writer, f->text);
    else if (f->type == MK_STAT_NONE)
        cheetah_table_cell_null(writer);
    else if (f->is_time)
        cheetah_table_cell_us(writer, f->n);
    else
        cheetah_table_cell_num(writer, f->n);
}

/* Writes the rows of a table with `n` columns. If the output has one column more, the name of the server
 * comes first. */
static void write_rows(struct cheetah_table_writer *writer, const struct mk_stat_source *source,
                       const char *name, size_t n)
{
    unsigned table = find_table(source, name);
    struct mk_stat_field f;
    for (uint32_t series = 0; table && (series = mk_stat_next(source->registry, table, series));) {
        if (writer->n > n)
            write_source_cell(writer, source);
        for (unsigned i = 0; i < n; i++)
            if (mk_stat_field_at(source->registry, table, series, i, &f))
                write_field_cell(writer, &f);
            else
                cheetah_table_cell_null(writer);
    }
}

static void show_statistics_table(struct cheetah_session *s, const char *name, bool json)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    char names[COLUMNS_MAX][32];
    struct cheetah_column columns[1 + COLUMNS_MAX] = {source_column};
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    bool with_source = has_others(w);
    struct cheetah_table_writer writer = {
        .out = &text, .columns = with_source ? columns : columns + 1, .json = json};
    struct mk_stat_source source;
    size_t n = 0;
    for (size_t i = 0; n == 0 && registry_at(w, i, &source); i++)
        if (find_table(&source, name))
            n = collect_columns(w, &source, name, columns + 1, names, json);
    writer.n = n ? n + with_source : 0;
    if (writer.n || json)
        cheetah_table_writer_begin(&writer);
    for (size_t i = 0; n && registry_at(w, i, &source); i++)
        write_rows(&writer, &source, name, n);
    if (!writer.n && !json)
        mk_buf_addf(&text, "There are no %s.\n", name);
    cheetah_table_writer_end(&writer);
    cheetah_show_text(s, &text);
}

/* ---- Metrics of services ---- */

/* A table whose name is that of its only metric belongs to a service. */
static bool is_service_table(const struct mk_stat_table *t)
{
    return t->name && t->n_metrics == 1 && t->metrics[0].name && strcmp(t->name, t->metrics[0].name) == 0;
}

static void append_series_labels(struct mk_buf *out, const struct mk_stat_registry *r,
                                 const struct mk_stat_table *t, uint32_t series)
{
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX && t->labels[i]; i++)
        mk_buf_addf(out, "%s%s=%.*s", i ? " " : "", t->labels[i], MK_STR_ARG(mk_stat_label(r, series, i)));
}

/* Returns the number of observations of a histogram, or the value of another metric. */
static uint64_t sum_values(const struct mk_stat_registry *r, uint32_t series, enum mk_stat_kind kind)
{
    unsigned n = kind == MK_STAT_HISTOGRAM          ? MK_STAT_BUCKETS
                 : kind == MK_STAT_NUMBER_HISTOGRAM ? MK_STAT_FINE_BUCKETS
                                                    : 1;
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += mk_stat_sum(r, series, i);
    return sum;
}

/* Writes the mean and the quantiles of a histogram. */
static void write_distribution(struct cheetah_table_writer *writer, const struct mk_stat_registry *r,
                               unsigned table, uint32_t series, const struct mk_stat_table *t)
{
    unsigned n_labels = 0;
    struct mk_stat_field f;
    bool is_histogram =
        t->metrics[0].kind == MK_STAT_HISTOGRAM || t->metrics[0].kind == MK_STAT_NUMBER_HISTOGRAM;
    while (n_labels < MK_STAT_LABELS_MAX && t->labels[n_labels])
        n_labels++;
    for (unsigned i = 0; i < 3; i++)
        if (is_histogram && mk_stat_field_at(r, table, series, n_labels + i, &f))
            write_field_cell(writer, &f);
        else
            cheetah_table_cell_null(writer);
}

static void write_service_table(struct cheetah_table_writer *writer, const struct mk_stat_source *source,
                                unsigned table, const struct mk_stat_table *t)
{
    const struct mk_stat_registry *r = source->registry;
    char buf[MK_STAT_LABEL_BYTES_MAX + 64];
    for (uint32_t series = 0; (series = mk_stat_next(r, table, series));) {
        struct mk_buf labels = mk_buf_fixed(buf, sizeof buf);
        append_series_labels(&labels, r, t, series);
        if (writer->n > METRIC_COLUMNS)
            write_source_cell(writer, source);
        cheetah_table_cell_text(writer, mk_str_from_c(t->name));
        cheetah_table_cell_num(writer, sum_values(r, series, t->metrics[0].kind));
        write_distribution(writer, r, table, series, t);
        cheetah_table_cell_text(writer, mk_buf_str(&labels));
    }
}

/* Writes the tables of services whose names have the prefix. Returns whether there are any. */
static bool write_service_tables(struct cheetah_table_writer *writer, const struct mk_stat_source *source,
                                 mk_str prefix)
{
    struct mk_stat_metric metrics[MK_STAT_METRICS_MAX];
    struct mk_stat_table t = {.metrics = metrics};
    bool has_rows = false;
    for (unsigned table = 1; source->registry && mk_stat_table_at(source->registry, table, &t, metrics);
         table++) {
        if (!is_service_table(&t) || !mk_str_starts(mk_str_from_c(t.name), prefix))
            continue;
        has_rows = true;
        write_service_table(writer, source, table, &t);
    }
    return has_rows;
}

void cheetah_statistics_show_metrics(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    const struct cheetah_column columns[] = {
        source_column,          {"metric", -TEXT_WIDTH_MAX}, {"value", NUMBER_WIDTH},
        {"mean", NUMBER_WIDTH}, {"p50", NUMBER_WIDTH},       {"p99", NUMBER_WIDTH},
        {"labels", 0}};
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    bool with_source = has_others(w), has_rows = false;
    struct cheetah_table_writer writer = {.out = &text,
                                          .columns = with_source ? columns : columns + 1,
                                          .n = METRIC_COLUMNS + with_source,
                                          .json = json};
    struct mk_stat_source source;
    cheetah_table_writer_begin(&writer);
    for (size_t i = 0; registry_at(w, i, &source); i++)
        has_rows = write_service_tables(&writer, &source, args) || has_rows;
    if (!has_rows && !json) {
        mk_buf_clear(&text);
        mk_buf_addf(&text, "No service has metrics%s.\n", args.len ? " with this prefix" : "");
    }
    cheetah_table_writer_end(&writer);
    cheetah_show_text(s, &text);
}

/* ---- Commands ---- */

void cheetah_statistics_show_packages(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args;
    show_statistics_table(s, "packages", json);
}

void cheetah_statistics_show_routes(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args;
    show_statistics_table(s, "routes", json);
}

void cheetah_statistics_show_upstreams(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args;
    show_statistics_table(s, "upstreams", json);
}

/* Omits components that are ready now. */
static void write_components(struct cheetah_table_writer *writer, const struct mk_stat_source *source)
{
    const struct mk_stat_registry *r = source->registry;
    unsigned table = find_table(source, MK_READINESS_TABLE);
    for (uint32_t series = 0; table && (series = mk_stat_next(r, table, series));) {
        uint64_t n = mk_stat_sum(r, series, 0);
        if (n == 0)
            continue;
        if (writer->n > COMPONENT_COLUMNS)
            write_source_cell(writer, source);
        cheetah_table_cell_text(writer, mk_stat_label(r, series, MK_READINESS_COMPONENT));
        cheetah_table_cell_num(writer, n);
        cheetah_table_cell_text(writer, mk_stat_label(r, series, MK_READINESS_REASON));
    }
}

/* Shows an isolated service that does not serve at all, under its own name. */
static void write_not_serving(struct cheetah_table_writer *writer, const struct mk_stat_source *source)
{
    const char *reason = source->not_serving_reason ? source->not_serving_reason(source->data) : NULL;
    if (!reason)
        return;
    write_source_cell(writer, source);
    cheetah_table_cell_text(writer, mk_str_from_c(source->name));
    cheetah_table_cell_null(writer);
    cheetah_table_cell_text(writer, mk_str_from_c(reason));
}

void cheetah_statistics_show_components(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    const struct cheetah_column columns[] = {
        source_column, {"component", -TEXT_WIDTH_MAX}, {"workers", NUMBER_WIDTH}, {"reason", 0}};
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    bool with_source = has_others(w);
    struct cheetah_table_writer writer = {.out = &text,
                                          .columns = with_source ? columns : columns + 1,
                                          .n = COMPONENT_COLUMNS + with_source,
                                          .json = json};
    struct mk_stat_source source;
    (void)args;
    cheetah_table_writer_begin(&writer);
    for (size_t i = 0; registry_at(w, i, &source); i++) {
        write_components(&writer, &source);
        write_not_serving(&writer, &source);
    }
    cheetah_table_writer_end(&writer);
    cheetah_show_text(s, &text);
}
