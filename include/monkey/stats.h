/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: counters, gauges and histograms that all workers share, for the plugins that print them. */
#ifndef MONKEY_STATS_H
#define MONKEY_STATS_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a server can count: tables, series of all tables, metrics and labels of a table, bytes of all label values of
 * a series, and pages of cells of all workers. Unused memory stays untouched. */
enum {
    MK_STAT_TABLES = 32,
    MK_STAT_SERIES = 4096,
    MK_STAT_METRICS = 16,
    MK_STAT_LABELS = 3,
    MK_STAT_VALUES = 320,
    MK_STAT_PAGES = 8192
};

/** Rows of cells: the first one for values of the server as a whole, which any process may write, then one for each
 * worker process that may live at the same time. */
enum { MK_STAT_ROWS = 1025, MK_STAT_SERVER = 0 };

/** Cells of a histogram: its buckets, then the sum. The ranges of the coarse one are < 64 us, then two for each
 * doubling; those of the fine one are exact below 8 us, then eight for each doubling. */
enum {
    MK_STAT_BUCKETS = 42,
    MK_STAT_FINE_BUCKETS = 280,
    MK_STAT_CELLS_MAX = 320 /**< of one series */
};

/** What a metric is. */
enum mk_stat_kind {
    MK_STAT_COUNTER,       /**< never falls while the server runs, whichever workers end */
    MK_STAT_GAUGE,         /**< what holds now; that of a worker vanishes when it ends */
    MK_STAT_HISTOGRAM,     /**< of durations in microseconds; the last metric of its table */
    MK_STAT_FINE_HISTOGRAM /**< the same with narrower ranges, in seven times the memory */
};

/** One metric of a table, and how it is shown. */
struct mk_stat_metric {
    const char *name; /**< of the family for Prometheus, up to 63 bytes; NULL: not shown there */
    const char *help; /**< of the family, up to 159 bytes; NULL: this metric continues the family before it */
    const char
        *column; /**< in tables and JSON, up to 23 bytes; NULL: not shown there. A histogram has `mean`,
                           `p50` and `p99` */
    enum mk_stat_kind kind;
    bool is_time;     /**< in microseconds */
    bool is_optional; /**< 0 means that there is no value */
    unsigned mean_of; /**< tables show the quotient by the metric of this number, from 1; 0: the value */
    const char *label, *value; /**< a further label for Prometheus, up to 15 bytes each; NULL: none */
    const char *words; /**< up to 63 bytes: tables show the value as one of these; NULL: as a number */
};

/** Metrics that have the same labels: a family of each for Prometheus, a table for people, a list in JSON. */
struct mk_stat_table {
    const char *name;                   /**< up to 31 bytes: "routes" */
    const char *labels[MK_STAT_LABELS]; /**< names, up to 15 bytes each; NULL: no more */
    const struct mk_stat_metric *metrics;
    size_t n_metrics;
};

/** The number of no series: another worker is making the one that was asked for. */
#define MK_STAT_LATER UINT32_MAX

/** All statistics of a server. They are as old as its master: a reload keeps them. */
struct mk_stat_registry;

/* ---- Counting ---- */

/**
 * Makes a table known; the same name and metrics yield the same table as long as the master lives. In load() and
 * host() alone. Its number from 1; 0: there are too many, or it does not fit the limits above. All functions take that, and count
 * nothing.
 *
 *     static const struct mk_stat_metric metrics[] = {
 *         {.name = "shop_orders_total", .help = "Orders that were placed.", .column = "orders"},
 *         {.name = "shop_open", .help = "Orders under way.", .column = "open", .kind = MK_STAT_GAUGE},
 *     };
 *     static const struct mk_stat_table table = {"shop", {"country"}, metrics, MK_LEN(metrics)};
 *
 *     struct mk_stat_registry *r = mk_config_statistics(config);
 *     series = mk_stat_series(r, mk_stat_define(r, &table), &country);
 */
MK_API unsigned mk_stat_define(struct mk_stat_registry *r, const struct mk_stat_table *table);
/**
 * The series of these label values, one for each label, made when it is first asked for. In load(), or in any worker:
 * keep its number. 0: there are too many, which mk_stat_refused() counts. MK_STAT_LATER: another worker is making it;
 * ask again at the next event. Both have no cells.
 */
MK_API uint32_t mk_stat_series(struct mk_stat_registry *r, unsigned table, const mk_str *values);
/**
 * The cells of a series in a row: one for each metric in their order; those of a histogram come last. Keep the address.
 * Workers use mk_worker_cells(). MK_STAT_SERVER is for gauges that hold for the server as a whole. NULL: there is no
 * memory, or no series.
 */
MK_API uint64_t *mk_stat_cells(struct mk_stat_registry *r, uint32_t series, unsigned row);
/** The configuration has the series no longer, or again: hidden ones are not shown, and make room for others. */
MK_API void mk_stat_hide(struct mk_stat_registry *r, uint32_t series, bool is_hidden);
/** How often there was no room for a series or its cells. */
MK_API uint64_t mk_stat_refused(const struct mk_stat_registry *r);

/** Counts. For the worker whose cell that is; NULL counts nothing. */
static inline void mk_stat_add(uint64_t *cell, uint64_t n)
{
    if (cell)
        __atomic_store_n(cell, *cell + n, __ATOMIC_RELAXED);
}

/** Sets a gauge. NULL sets nothing. */
static inline void mk_stat_set(uint64_t *cell, uint64_t n)
{
    if (cell)
        __atomic_store_n(cell, n, __ATOMIC_RELAXED);
}

/** A cell that others may write or read. */
static inline uint64_t mk_stat_get(const uint64_t *cell)
{
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

/** The bucket of a duration in a coarse histogram. */
static inline unsigned mk_stat_bucket(uint64_t micros)
{
    if (micros < 64)
        return 0;
    unsigned log2 = 63u - MK_API_CAST(unsigned, __builtin_clzll(micros));
    unsigned i = 2 * (log2 - 6) + MK_API_CAST(unsigned, micros >> (log2 - 1) & 1) + 1;
    return i < MK_STAT_BUCKETS ? i : MK_STAT_BUCKETS - 1;
}

/** The bucket of a duration in a fine histogram. */
static inline unsigned mk_stat_fine_bucket(uint64_t micros)
{
    if (micros < 8)
        return MK_API_CAST(unsigned, micros);
    unsigned shift = 60u - MK_API_CAST(unsigned, __builtin_clzll(micros));
    unsigned i = (shift + 1) * 8 + MK_API_CAST(unsigned, micros >> shift) % 8;
    return i < MK_STAT_FINE_BUCKETS ? i : MK_STAT_FINE_BUCKETS - 1;
}

/** Counts a duration; `cells` are those of a histogram, or NULL. */
static inline void mk_stat_observe(uint64_t *cells, uint64_t micros)
{
    if (!cells)
        return;
    mk_stat_add(&cells[mk_stat_bucket(micros)], 1);
    mk_stat_add(&cells[MK_STAT_BUCKETS], micros);
}

/** The same for a fine histogram. */
static inline void mk_stat_observe_fine(uint64_t *cells, uint64_t micros)
{
    if (!cells)
        return;
    mk_stat_add(&cells[mk_stat_fine_bucket(micros)], 1);
    mk_stat_add(&cells[MK_STAT_FINE_BUCKETS], micros);
}

/* ---- Reading ---- */

/** The table of that number, from 1: false when there are no more. A table without a name was replaced. `metrics` has
 * room for MK_STAT_METRICS. Texts last as long as the server. */
MK_API bool mk_stat_table_at(const struct mk_stat_registry *r, unsigned table, struct mk_stat_table *out,
                             struct mk_stat_metric *metrics);
/** The table of that name; 0: there is none. */
MK_API unsigned mk_stat_find(const struct mk_stat_registry *r, const char *name);
/** The next series of the table behind `series`, in the order in which they were made; begin with 0. 0: there are no
 * more. */
MK_API uint32_t mk_stat_next(const struct mk_stat_registry *r, unsigned table, uint32_t series);
/** The value of its i-th label. No two series of a table have all values in common: long ones are cut, and end in `~`
 * and a number. */
MK_API mk_str mk_stat_label(const struct mk_stat_registry *r, uint32_t series, unsigned i);
/** The sum of a cell over all workers. */
MK_API uint64_t mk_stat_sum(const struct mk_stat_registry *r, uint32_t series, unsigned cell);

/** The microseconds that all durations of a bucket are below; 0: the last one has no end. `n`: how many buckets the
 * histogram has, by which it is known as a coarse or fine one. */
MK_API uint64_t mk_stat_bucket_end(unsigned n, unsigned bucket);
/** The duration that `thousandths` of 1000 are not above, as far as `n` buckets can tell; 0: there are none. */
MK_API uint64_t mk_stat_quantile(const uint64_t *buckets, unsigned n, unsigned thousandths);

/** A value in a row of a table. */
struct mk_stat_field {
    const char *name; /**< of its column */
    enum mk_stat_form { MK_STAT_TEXT, MK_STAT_NUMBER, MK_STAT_NONE } form;
    bool is_time; /**< in microseconds */
    mk_str text;
    uint64_t n;
};
/** The i-th column of a table, for the row of that series; false: there are no more. */
MK_API bool mk_stat_field_at(const struct mk_stat_registry *r, unsigned table, uint32_t series, unsigned i,
                             struct mk_stat_field *out);

#ifdef __cplusplus
}
#endif

#endif
