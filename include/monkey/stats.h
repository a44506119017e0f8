/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: counters, gauges and histograms that all workers share, for plugins that report them. */
#ifndef MONKEY_STATS_H
#define MONKEY_STATS_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Capacity of the statistics of a server. Unused capacity takes no memory. */
enum {
    MK_STAT_TABLES_MAX = 128,      /**< tables */
    MK_STAT_SERIES_MAX = 4096,     /**< series in all tables */
    MK_STAT_METRICS_MAX = 16,      /**< metrics in a table */
    MK_STAT_LABELS_MAX = 3,        /**< labels of a table */
    MK_STAT_LABEL_BYTES_MAX = 320, /**< bytes in all label values of a series */
    MK_STAT_PAGES_MAX = 8192       /**< pages of cells for all workers */
};

/** Rows of cells. The first row holds values of the whole server, which any process may write. It is followed
 * by one row for each worker process that can run at the same time. */
enum { MK_STAT_ROWS = 1025, MK_STAT_SERVER = 0 };

/** The cells of a histogram: its buckets, then the sum. The coarse histogram has one bucket below 64
 * us, then two for each doubling; the fine one has exact buckets below 8 us, then eight for each doubling. */
enum {
    MK_STAT_BUCKETS = 42,
    MK_STAT_FINE_BUCKETS = 280,
    MK_STAT_CELLS_MAX = 320 /**< maximum number of cells of a series */
};

/** The type of a metric. */
enum mk_stat_kind {
    MK_STAT_COUNTER,   /**< monotonic while the server runs, even when workers exit */
    MK_STAT_GAUGE,     /**< a current value; the value of a worker disappears when the worker exits */
    MK_STAT_HISTOGRAM, /**< a histogram of durations in microseconds; must be the last metric of its table */
    MK_STAT_FINE_HISTOGRAM,  /**< a histogram with finer buckets, which take seven times the memory */
    MK_STAT_NUMBER_HISTOGRAM /**< a fine histogram of values that are not durations, such as sizes */
};

/** A metric of a table, and how it is displayed. */
struct mk_stat_metric {
    const char *name;   /**< family name for Prometheus, up to 63 bytes; NULL: not exported */
    const char *help;   /**< help of the family, up to 159 bytes; NULL: continues the previous family */
    const char *column; /**< column name in tables and JSON, up to 23 bytes; NULL: not shown there.
                             The columns of a histogram are `mean`, `p50` and `p99` */
    enum mk_stat_kind kind;
    bool is_time;     /**< the value is in microseconds */
    bool is_optional; /**< 0 means no value */
    unsigned mean_of; /**< number, from 1, of the metric by which tables divide the value, to show a mean;
                           0: undivided */
    /** Name and value of an extra label for Prometheus, up to 15 bytes each; NULL: none. */
    const char *label, *value;
    /** Names of the values 0, 1 and so on, separated by spaces, up to 63 bytes in total; tables show them in
     * place of the numbers. NULL: none. */
    const char *value_names;
    uint64_t reserved[2]; /**< must be zero */
};

/** Metrics with the same labels: exported as Prometheus families, as a table for people, and as a list in
 * JSON. */
struct mk_stat_table {
    const char *name; /**< name of the table, up to 63 bytes: "routes" */
    /** Names of the labels, up to 15 bytes each; NULL ends the list. */
    const char *labels[MK_STAT_LABELS_MAX];
    const struct mk_stat_metric *metrics;
    size_t n_metrics;
    uint64_t reserved[2]; /**< must be zero */
};

/** Returned in place of a series number while another worker is creating that series. */
#define MK_STAT_RETRY UINT32_MAX

/** All statistics of a server. They live as long as the master, and survive reloads. */
struct mk_stat_registry;

/* ---- Counting ---- */

/**
 * Registers a table; the same name and metrics yield the same table for the lifetime of the master. Only in
 * load() and host(). Returns its number, from 1; or 0 if there are too many tables, or the table exceeds the
 * limits above. All functions accept 0, and then count nothing.
 *
 *     static const struct mk_stat_metric metrics[] = {
 *         {.name = "shop_orders_total", .help = "Orders placed.", .column = "orders"},
 *         {.name = "shop_open", .help = "Open orders.", .column = "open", .kind = MK_STAT_GAUGE},
 *     };
 *     static const struct mk_stat_table table = {
 *         .name = "shop", .labels = {"country"}, .metrics = metrics, .n_metrics = MK_LEN(metrics)};
 *
 *     struct mk_stat_registry *r = mk_config_statistics(config);
 *     series = mk_stat_series(r, mk_stat_register_table(r, &table), &country);
 */
MK_API unsigned mk_stat_register_table(struct mk_stat_registry *registry, const struct mk_stat_table *table);
/**
 * Returns the series with these label values, one per label, and creates it on first use. Call it in load()
 * or in any worker, and keep the number. Returns 0 if there are too many series (mk_stat_alloc_failures()
 * counts these failures), or MK_STAT_RETRY if another worker is creating the series: retry at the next event.
 * mk_stat_cells() returns NULL for both of these values.
 */
MK_API uint32_t mk_stat_series(struct mk_stat_registry *registry, unsigned table, const mk_str *values);
/**
 * Returns the cells of `series` in row `row`: one for each metric, in order, with the cells of a histogram
 * last. Keep the pointer. Workers use mk_worker_cells() instead. The row MK_STAT_SERVER is for gauges of the
 * whole server. Returns NULL if out of memory, or if there is no series.
 */
MK_API uint64_t *mk_stat_cells(struct mk_stat_registry *registry, uint32_t series, unsigned row);
/** Hides a series that the configuration no longer contains, or shows it again. Hidden series are not
 * reported, and new series may replace them. */
MK_API void mk_stat_hide(struct mk_stat_registry *registry, uint32_t series, bool is_hidden);
/** The number of times that a series or its cells could not be allocated. */
MK_API uint64_t mk_stat_alloc_failures(const struct mk_stat_registry *registry);

/** Adds n to a counter. Only the worker that owns the cell may call it; NULL is ignored. */
static inline void mk_stat_add(uint64_t *cell, uint64_t n)
{
    if (cell)
        __atomic_store_n(cell, *cell + n, __ATOMIC_RELAXED);
}

/** Sets a gauge; NULL is ignored. */
static inline void mk_stat_set(uint64_t *cell, uint64_t n)
{
    if (cell)
        __atomic_store_n(cell, n, __ATOMIC_RELAXED);
}

/** Reads a cell that other processes may write. */
static inline uint64_t mk_stat_get(const uint64_t *cell)
{
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}

/** The bucket of a duration in a coarse histogram. */
static inline unsigned mk_stat_bucket(uint64_t duration_us)
{
    if (duration_us < 64)
        return 0;
    unsigned log2 = 63u - MK_API_CAST(unsigned, __builtin_clzll(duration_us));
    unsigned i = 2 * (log2 - 6) + MK_API_CAST(unsigned, duration_us >> (log2 - 1) & 1) + 1;
    return i < MK_STAT_BUCKETS ? i : MK_STAT_BUCKETS - 1;
}

/** The bucket of a duration in a fine histogram. */
static inline unsigned mk_stat_fine_bucket(uint64_t duration_us)
{
    if (duration_us < 8)
        return MK_API_CAST(unsigned, duration_us);
    unsigned shift = 60u - MK_API_CAST(unsigned, __builtin_clzll(duration_us));
    unsigned i = (shift + 1) * 8 + MK_API_CAST(unsigned, duration_us >> shift) % 8;
    return i < MK_STAT_FINE_BUCKETS ? i : MK_STAT_FINE_BUCKETS - 1;
}

/** Adds a duration to a coarse histogram; `cells` may be NULL. */
static inline void mk_stat_observe(uint64_t *cells, uint64_t duration_us)
{
    if (!cells)
        return;
    mk_stat_add(&cells[mk_stat_bucket(duration_us)], 1);
    mk_stat_add(&cells[MK_STAT_BUCKETS], duration_us);
}

/** Adds a duration to a fine histogram; `cells` may be NULL. */
static inline void mk_stat_observe_fine(uint64_t *cells, uint64_t duration_us)
{
    if (!cells)
        return;
    mk_stat_add(&cells[mk_stat_fine_bucket(duration_us)], 1);
    mk_stat_add(&cells[MK_STAT_FINE_BUCKETS], duration_us);
}

/* ---- Statistics of another server ---- */

/** The environment variable with the number of an inherited descriptor: a memory file, which the server
 * clears and then uses for its statistics. */
#define MK_STAT_FILE_VARIABLE "MONKEY_STATISTICS_FD"
/** Creates such a memory file for another server. Returns a close-on-exec descriptor or a negative errno
 * value. */
MK_API int mk_stat_file_new(void) MK_API_MUST_USE;
/** Maps the file for reading the statistics. If `instead_of` is not NULL, the mapping replaces this earlier
 * mapping of another such file. The functions below are safe even if the other server is compromised, but
 * strings may then have any content. Returns NULL on failure. */
MK_API struct mk_stat_registry *mk_stat_file_map(int fd, struct mk_stat_registry *instead_of);
MK_API void mk_stat_file_unmap(struct mk_stat_registry *registry);

/** Statistics of another server that serves some of the requests to this one, such as an isolated service.
 * Plugins report them together with those of this server. */
struct mk_stat_source {
    const char *name; /**< the value of the label `isolate` */
    const struct mk_stat_registry *registry;
    /** Returns the reason why the other server does not serve requests, as static text; NULL: it serves them.
     * The function may be NULL. */
    const char *(*not_serving_reason)(void *data);
    void *data;
};

/* ---- Reading ---- */

/** Reads the table with this number, from 1. Returns false if the number is out of range. A table without a
 * name has been replaced. `metrics` must hold MK_STAT_METRICS_MAX elements. Strings live as long as the
 * server. */
MK_API bool mk_stat_table_at(const struct mk_stat_registry *registry, unsigned table,
                             struct mk_stat_table *out, struct mk_stat_metric *metrics);
/** The number of the table with this name; 0 if there is none. */
MK_API unsigned mk_stat_find(const struct mk_stat_registry *registry, const char *name);
/** Returns the series that follows `series` in the table, in order of creation; 0 if there are no more.
 * Start with 0. */
MK_API uint32_t mk_stat_next(const struct mk_stat_registry *registry, unsigned table, uint32_t series);
/** The value of the i-th label. Long values are truncated, and end in `~` and a number, so that no two
 * series of a table have the same values. */
MK_API mk_str mk_stat_label(const struct mk_stat_registry *registry, uint32_t series, unsigned i);
/** The sum of a cell across all workers. */
MK_API uint64_t mk_stat_sum(const struct mk_stat_registry *registry, uint32_t series, unsigned cell);

/** The exclusive upper bound of a bucket in microseconds; 0 for the last bucket, which is unbounded.
 * `n` is the number of buckets, which distinguishes coarse from fine histograms. */
MK_API uint64_t mk_stat_bucket_end(unsigned n, unsigned bucket);
/** Returns a quantile (500 `thousandths`: the median) of the durations in `n` buckets, to the precision of
 * the buckets; 0 if there are no durations. */
MK_API uint64_t mk_stat_quantile(const uint64_t *buckets, unsigned n, unsigned thousandths);

/** A value in a row of a table. */
struct mk_stat_field {
    const char *name; /**< name of its column */
    enum mk_stat_field_type { MK_STAT_TEXT, MK_STAT_NUMBER, MK_STAT_NONE } type;
    bool is_time; /**< the value is in microseconds */
    mk_str text;
    uint64_t n;
};
/** Reads the i-th column of a table in the row of this series. Returns false if `i` is out of range. */
MK_API bool mk_stat_field_at_sized(const struct mk_stat_registry *registry, unsigned table, uint32_t series,
                                   unsigned i, struct mk_stat_field *out, size_t out_size);
static inline bool mk_stat_field_at(const struct mk_stat_registry *registry, unsigned table, uint32_t series,
                                    unsigned i, struct mk_stat_field *out)
{
    return mk_stat_field_at_sized(registry, table, series, i, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif

#endif
