/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <monkey/readiness.h>

#include "show.h"
#include "table_writer.h"

enum { COLUMNS_MAX = MK_STAT_LABELS_MAX + MK_STAT_METRICS_MAX + 2, TEXT_WIDTH_MAX = 40, NUMBER_WIDTH = 8 };

/* Aligns text to the left and numbers to the right. The last column has no width. */
static size_t collect_columns(const struct mk_stat_registry *r, unsigned table,
                              struct cheetah_column *columns, char names[COLUMNS_MAX][32], bool json)
{
    struct mk_stat_field f;
    size_t n = 0;
    for (; n < COLUMNS_MAX && mk_stat_field_at(r, table, mk_stat_next(r, table, 0), (unsigned)n, &f); n++) {
        size_t width = strlen(f.name);
        bool is_text = f.form == MK_STAT_TEXT;
        for (uint32_t series = 0; is_text && (series = mk_stat_next(r, table, series));)
            if (mk_stat_field_at(r, table, series, (unsigned)n, &f) && f.text.len > width)
                width = f.text.len < TEXT_WIDTH_MAX ? f.text.len : TEXT_WIDTH_MAX;
        if (!is_text && width < NUMBER_WIDTH)
            width = NUMBER_WIDTH;
        struct mk_buf name = mk_buf_fixed(names[n], sizeof names[n]);
        mk_buf_addf(&name, "%s%s%c", f.name, json && f.is_time ? "_us" : "", '\0');
        columns[n] = (struct cheetah_column){names[n], is_text ? -(int)width : (int)width};
    }
    if (n)
        columns[n - 1].width = 0;
    return n;
}

static void write_field_cell(struct cheetah_table_writer *writer, const struct mk_stat_field *f)
{
    if (f->form == MK_STAT_TEXT)
        cheetah_table_cell_text(writer, f->text);
    else if (f->form == MK_STAT_NONE)
        cheetah_table_cell_null(writer);
    else if (f->is_time)
        cheetah_table_cell_us(writer, f->n);
    else
        cheetah_table_cell_num(writer, f->n);
}

static void show_statistics_table(struct cheetah_session *s, const char *name, bool json)
{
    const struct mk_stat_registry *r = mk_worker_statistics(cheetah_session_shell(s)->worker);
    unsigned table = r ? mk_stat_find(r, name) : 0;
    char names[COLUMNS_MAX][32];
    struct cheetah_column columns[COLUMNS_MAX];
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {.out = &text, .columns = columns, .json = json};
    struct mk_stat_field f;
    writer.n = table ? collect_columns(r, table, columns, names, json) : 0;
    if (writer.n || json)
        cheetah_table_writer_begin(&writer);
    for (uint32_t series = 0; table && (series = mk_stat_next(r, table, series));)
        for (unsigned i = 0; i < writer.n && mk_stat_field_at(r, table, series, i, &f); i++)
            write_field_cell(&writer, &f);
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

static void write_service_table(struct cheetah_table_writer *writer, const struct mk_stat_registry *r,
                                unsigned table, const struct mk_stat_table *t)
{
    char buf[MK_STAT_LABEL_BYTES_MAX + 64];
    for (uint32_t series = 0; (series = mk_stat_next(r, table, series));) {
        struct mk_buf labels = mk_buf_fixed(buf, sizeof buf);
        append_series_labels(&labels, r, t, series);
        cheetah_table_cell_text(writer, mk_str_from_c(t->name));
        cheetah_table_cell_num(writer, sum_values(r, series, t->metrics[0].kind));
        write_distribution(writer, r, table, series, t);
        cheetah_table_cell_text(writer, mk_buf_str(&labels));
    }
}

void cheetah_statistics_show_metrics(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_stat_registry *r = mk_worker_statistics(cheetah_session_shell(s)->worker);
    const struct cheetah_column columns[] = {{"metric", -TEXT_WIDTH_MAX}, {"value", NUMBER_WIDTH},
                                             {"mean", NUMBER_WIDTH},      {"p50", NUMBER_WIDTH},
                                             {"p99", NUMBER_WIDTH},       {"labels", 0}};
    struct mk_stat_metric metrics[MK_STAT_METRICS_MAX];
    struct mk_stat_table t = {.metrics = metrics};
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {
        .out = &text, .columns = columns, .n = MK_LEN(columns), .json = json};
    bool has_rows = false;
    for (unsigned table = 1; r && mk_stat_table_at(r, table, &t, metrics); table++) {
        if (!is_service_table(&t) || !mk_str_starts(mk_str_from_c(t.name), args))
            continue;
        if (!has_rows)
            cheetah_table_writer_begin(&writer);
        has_rows = true;
        write_service_table(&writer, r, table, &t);
    }
    if (!has_rows && json)
        cheetah_table_writer_begin(&writer);
    if (!has_rows && !json)
        mk_buf_addf(&text, "No service has metrics%s.\n", args.len ? " with this prefix" : "");
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
void cheetah_statistics_show_components(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_stat_registry *r = mk_worker_statistics(cheetah_session_shell(s)->worker);
    const struct cheetah_column columns[] = {
        {"component", -TEXT_WIDTH_MAX}, {"workers", NUMBER_WIDTH}, {"reason", 0}};
    unsigned table = r ? mk_stat_find(r, MK_READINESS_TABLE) : 0;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {
        .out = &text, .columns = columns, .n = MK_LEN(columns), .json = json};
    (void)args;
    cheetah_table_writer_begin(&writer);
    for (uint32_t series = 0; table && (series = mk_stat_next(r, table, series));) {
        uint64_t n = mk_stat_sum(r, series, 0);
        if (n == 0)
            continue;
        cheetah_table_cell_text(&writer, mk_stat_label(r, series, MK_READINESS_COMPONENT));
        cheetah_table_cell_num(&writer, n);
        cheetah_table_cell_text(&writer, mk_stat_label(r, series, MK_READINESS_REASON));
    }
    cheetah_table_writer_end(&writer);
    cheetah_show_text(s, &text);
}
