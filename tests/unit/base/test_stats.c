/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { CALLS, OPEN, MICROS, DURATION };

static const struct mk_stat_metric metrics[] = {
    {.name = "calls_total", .help = "Calls.", .column = "calls"},
    {.name = "open", .help = "Open.", .column = "open", .kind = MK_STAT_GAUGE, .is_optional = true},
    {.name = "seconds_total", .help = "Time.", .column = "mean", .is_time = true, .mean_of = CALLS + 1},
    {.name = "duration_seconds", .help = "Durations.", .column = "", .kind = MK_STAT_HISTOGRAM},
};
static const struct mk_stat_table table = {"calls", {"kind", "name"}, metrics, MK_LEN(metrics), {0}};

static struct mk_stat_registry *registry;

static void setup(void)
{
    registry = mmap(NULL, mk_stat_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(registry != MAP_FAILED);
}

static void teardown(void)
{
    assert_int_equal(munmap(registry, mk_stat_size()), 0);
}

static uint32_t series_of(struct mk_stat_registry *r, const char *kind, const char *name)
{
    const mk_str values[] = {mk_str_from_c(kind), mk_str_from_c(name)};
    return mk_stat_series(r, mk_stat_register_table(r, &table), values);
}

static uint32_t numbered(struct mk_stat_registry *r, unsigned n)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", n);
    return series_of(r, "k", name);
}

/* ---- Tables ---- */

static void stats_same_table_has_the_same_number(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    struct mk_stat_table found;
    struct mk_stat_metric of[MK_STAT_METRICS_MAX];
    assert_int_equal(mk_stat_register_table(r, &table), 1);
    assert_int_equal(mk_stat_register_table(r, &table), 1);
    assert_int_equal(mk_stat_find(r, "calls"), 1);
    assert_int_equal(mk_stat_find(r, "call"), 0);
    assert_true(mk_stat_table_at(r, 1, &found, of));
    assert_string_equal(found.name, "calls");
    assert_string_equal(found.labels[1], "name");
    assert_null(found.labels[2]);
    assert_int_equal(found.n_metrics, MK_LEN(metrics));
    assert_string_equal(of[MICROS].help, "Time.");
    assert_int_equal(of[MICROS].mean_of, 1);
    assert_true(of[MICROS].is_time && of[OPEN].is_optional && of[OPEN].kind == MK_STAT_GAUGE);
    assert_null(of[CALLS].value_names);
    assert_false(mk_stat_table_at(r, 2, &found, of));
    assert_false(mk_stat_table_at(r, 0, &found, of));
}

static void stats_table_with_other_metrics_replaces_the_old_one(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    struct mk_stat_table other = table, found;
    struct mk_stat_metric of[MK_STAT_METRICS_MAX];
    other.n_metrics--;
    assert_int_equal(mk_stat_register_table(r, &table), 1);
    assert_int_equal(mk_stat_register_table(r, &other), 2);
    assert_int_equal(mk_stat_find(r, "calls"), 2);
    assert_true(mk_stat_table_at(r, 1, &found, of));
    assert_null(found.name);
}

static void stats_invalid_tables_are_rejected(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123";
    struct mk_stat_metric bad[MK_STAT_METRICS_MAX + 1] = {{.name = "a"}, {.name = "b"}};
    assert_int_equal(mk_stat_register_table(r, &(struct mk_stat_table){long_name, {NULL}, bad, 1, {0}}), 0);
    assert_int_equal(
        mk_stat_register_table(r, &(struct mk_stat_table){"t", {"0123456789012345"}, bad, 1, {0}}), 0);
    assert_int_equal(
        mk_stat_register_table(r, &(struct mk_stat_table){"t", {NULL}, bad, MK_STAT_METRICS_MAX + 1, {0}}),
        0);
    bad[0].kind = MK_STAT_HISTOGRAM; /* a histogram must be the last metric */
    assert_int_equal(mk_stat_register_table(r, &(struct mk_stat_table){"t", {NULL}, bad, 2, {0}}), 0);
    assert_int_equal(mk_stat_register_table(r, &(struct mk_stat_table){"t", {NULL}, bad, 1, {0}}), 1);
}

static void stats_excess_tables_are_counted(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    char name[16];
    struct mk_stat_table t = table;
    t.name = name;
    for (unsigned i = 1; i <= MK_STAT_TABLES_MAX; i++) {
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(mk_stat_register_table(r, &t), i);
    }
    snprintf(name, sizeof name, "more");
    assert_int_equal(mk_stat_alloc_failures(r), 0);
    assert_int_equal(mk_stat_register_table(r, &t), 0);
    assert_int_equal(mk_stat_alloc_failures(r), 1);
    assert_int_equal(mk_stat_series(r, 0, NULL), 0);
    assert_null(mk_stat_cells(r, 0, 0));
}

/* ---- Series ---- */

static void stats_series_are_found_by_their_labels(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t a = series_of(r, "kv", "main"), b = series_of(r, "k", "vmain"), c = series_of(r, "kv", "other");
    assert_true(a && b && c && a != b && b != c && a != c);
    assert_int_equal(series_of(r, "kv", "main"), a);
    assert_str(mk_stat_label(r, a, 0), "kv");
    assert_str(mk_stat_label(r, a, 1), "main");
    assert_str(mk_stat_label(r, b, 0), "k");
    assert_str(mk_stat_label(r, a, 2), "");
    assert_int_equal(mk_stat_next(r, 1, 0), a);
    assert_int_equal(mk_stat_next(r, 1, a), b);
    assert_int_equal(mk_stat_next(r, 1, c), 0);
    assert_int_equal(mk_stat_next(r, 2, 0), 0);
}

static void stats_long_labels_are_truncated_and_stay_distinct(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    char text[2][1000];
    /* the two-byte characters start at even positions, then at odd ones */
    for (unsigned from = 0; from < 2; from++) {
        memset(text[0], 'x', sizeof text[0]);
        for (size_t i = from; i < 900; i++)
            text[0][i] = (i - from) % 2 ? '\xa4' : '\xc3';
        text[0][990] = 0;
        memcpy(text[1], text[0], sizeof text[0]);
        text[1][950] = 'y';
        uint32_t a = series_of(r, text[0], "x"), b = series_of(r, text[1], "x");
        mk_str first = mk_stat_label(r, a, 0), second = mk_stat_label(r, b, 0);
        assert_true(a && b && a != b);
        assert_false(mk_str_eq(first, second));
        assert_true(first.len < MK_STAT_LABEL_BYTES_MAX && first.len > MK_STAT_LABEL_BYTES_MAX / 2);
        const char *mark = memchr(first.p, '~', first.len);
        assert_true(mark && (size_t)(mark - first.p) % 2 == from); /* no character is split */
        assert_str(mk_stat_label(r, a, 1), "x");
    }
}

static void stats_three_labels_are_separate(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const struct mk_stat_metric one[] = {{.name = "n"}};
    const mk_str values[] = {MK_STR("a"), MK_STR("bcd"), MK_STR("ef")};
    uint32_t s = mk_stat_series(
        r, mk_stat_register_table(r, &(struct mk_stat_table){"three", {"a", "b", "c"}, one, 1, {0}}), values);
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX; i++)
        assert_true(mk_str_eq(mk_stat_label(r, s, i), values[i]));
    assert_str(mk_stat_label(r, s, MK_STAT_LABELS_MAX), "");
}

static void stats_full_registry_counts_rejected_series(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    unsigned n = 0;
    uint32_t last = 0, got;
    for (; (got = numbered(r, n)); n++)
        last = got;
    assert_in_range(n, MK_STAT_SERIES_MAX / 2, MK_STAT_SERIES_MAX);
    assert_int_equal(mk_stat_alloc_failures(r), 1);
    assert_int_equal(numbered(r, n - 1), last); /* existing series still count */
    assert_int_equal(numbered(r, n), 0);
    mk_stat_hide(r, last, true);
    for (unsigned i = 0; i < MK_STAT_SERIES_MAX; i++)
        (void)numbered(r, n + i);
    mk_stat_add(mk_stat_cells(r, 1, 0), 1);
    assert_int_equal(mk_stat_sum(r, 1, CALLS), 1);
}

static void stats_hidden_series_are_reused_when_full(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const struct mk_stat_metric one[] = {{.name = "n"}};
    unsigned small = mk_stat_register_table(r, &(struct mk_stat_table){"small", {"name"}, one, 1, {0}});
    char name[16];
    mk_str value;
    for (unsigned i = 0; i < MK_STAT_SERIES_MAX; i++) {
        value = mk_str_of(name, (size_t)snprintf(name, sizeof name, "%u", i));
        assert_int_equal(mk_stat_series(r, small, &value), i + 1);
    }
    value = MK_STR("new");
    assert_int_equal(mk_stat_series(r, small, &value), 0);
    mk_stat_add(mk_stat_cells(r, 100, 5), 7);
    mk_stat_hide(r, 100, true);
    assert_int_equal(mk_stat_next(r, small, 99), 101);
    assert_int_equal(mk_stat_series(r, small, &value), 100);
    assert_int_equal(mk_stat_sum(r, 100, 0), 0);
    assert_str(mk_stat_label(r, 100, 0), "new");
    value = MK_STR("99"); /* its series now belongs to "new" */
    assert_int_equal(mk_stat_series(r, small, &value), 0);
}

static void stats_hidden_series_of_gauges_are_reused_first(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const struct mk_stat_metric one[] = {{.name = "n", .kind = MK_STAT_GAUGE}};
    unsigned gauges = mk_stat_register_table(r, &(struct mk_stat_table){"gauges", {"name"}, one, 1, {0}});
    const mk_str first = MK_STR("first"), second = MK_STR("second");
    uint32_t s = mk_stat_series(r, gauges, &first);
    mk_stat_set(mk_stat_cells(r, s, MK_STAT_SERVER), 7);
    mk_stat_hide(r, s, true);
    assert_int_equal(mk_stat_series(r, gauges, &second), s);
    assert_int_equal(mk_stat_sum(r, s, 0), 0);
    assert_str(mk_stat_label(r, s, 0), "second");
    assert_int_not_equal(mk_stat_series(r, gauges, &first), s);
    assert_int_equal(mk_stat_alloc_failures(r), 0);
}

static void stats_hidden_series_returns_with_its_counts(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b");
    mk_stat_add(mk_stat_cells(r, s, 0), 7);
    mk_stat_hide(r, s, true);
    assert_int_equal(mk_stat_next(r, 1, 0), 0);
    assert_int_equal(series_of(r, "a", "b"), s);
    assert_int_equal(mk_stat_next(r, 1, 0), s);
    assert_int_equal(mk_stat_sum(r, s, CALLS), 7);
    mk_stat_hide(r, s, true);
    mk_stat_hide(r, s, false);
    assert_int_equal(mk_stat_next(r, 1, 0), s);
}

/* Returns the word of the series that changes when the series is hidden. */
static uint32_t *state_of(struct mk_stat_registry *r, uint32_t series)
{
    size_t n = mk_stat_size() / sizeof(uint32_t), i = 0;
    uint32_t *words = (uint32_t *)(void *)r, *before = malloc(mk_stat_size());
    assert_non_null(before);
    memcpy(before, words, mk_stat_size());
    mk_stat_hide(r, series, true);
    while (i < n && words[i] == before[i])
        i++;
    free(before);
    assert_in_range(i, 0, n - 1);
    mk_stat_hide(r, series, false);
    return &words[i];
}

static void *finish_making(void *state)
{
    __atomic_store_n((uint32_t *)state, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void stats_series_being_created_elsewhere_is_available_later(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b"), *making = state_of(r, s);
    uint32_t ready = *making;
    pthread_t maker;
    assert_int_equal(ready, 1);
    *making = 0;
    assert_int_equal(series_of(r, "a", "b"), MK_STAT_RETRY);
    assert_int_equal(mk_stat_alloc_failures(r), 0);
    assert_null(mk_stat_cells(r, MK_STAT_RETRY, 0));
    assert_int_equal(mk_stat_sum(r, MK_STAT_RETRY, 0), 0);
    assert_int_equal(pthread_create(&maker, NULL, finish_making, making), 0);
    uint32_t got;
    while ((got = series_of(r, "a", "b")) == MK_STAT_RETRY)
        ;
    pthread_join(maker, NULL);
    assert_int_equal(got, s);
}

/* ---- Cells ---- */

static void stats_sum_covers_all_rows(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b");
    for (unsigned row = 0; row < 3; row++)
        mk_stat_add(&mk_stat_cells(r, s, 1 + row * 500)[CALLS], row + 1);
    mk_stat_set(&mk_stat_cells(r, s, MK_STAT_SERVER)[CALLS], 10);
    assert_int_equal(mk_stat_sum(r, s, CALLS), 16);
    assert_int_equal(mk_stat_sum(r, s, OPEN), 0);
    assert_ptr_equal(mk_stat_cells(r, s, 500), mk_stat_cells(r, s, 500));
    assert_null(mk_stat_cells(r, s, MK_STAT_ROWS));
    assert_null(mk_stat_cells(r, 0, 0));
    assert_null(mk_stat_cells(r, MK_STAT_SERIES_MAX + 1, 0));
    mk_stat_add(NULL, 1);
    mk_stat_set(NULL, 1);
    mk_stat_observe(NULL, 1);
}

static void stats_cells_of_a_series_share_one_page(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s[64];
    for (unsigned i = 0; i < MK_LEN(s); i++) {
        uint64_t *cells = mk_stat_cells(r, s[i] = numbered(r, i), 3);
        for (unsigned c = 0; c < DURATION + MK_STAT_BUCKETS + 1; c++)
            mk_stat_add(&cells[c], 1000 * i + c);
    }
    for (unsigned i = 0; i < MK_LEN(s); i++)
        for (unsigned c = 0; c < DURATION + MK_STAT_BUCKETS + 1; c++)
            assert_int_equal(mk_stat_sum(r, s[i], c), 1000 * i + c);
}

static void stats_dead_worker_keeps_counters_and_clears_gauges(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b");
    for (unsigned row = 0; row < 2; row++) {
        uint64_t *cells = mk_stat_cells(r, s, row);
        mk_stat_add(&cells[CALLS], 5);
        mk_stat_set(&cells[OPEN], 3 + row);
        mk_stat_observe(&cells[DURATION], 100);
    }
    mk_stat_clear_gauges(r, 1);
    assert_int_equal(mk_stat_sum(r, s, CALLS), 10);
    assert_int_equal(mk_stat_sum(r, s, OPEN), 3);
    assert_int_equal(mk_stat_sum(r, s, DURATION + mk_stat_bucket(100)), 2);
    mk_stat_add(&mk_stat_cells(r, s, 1)[CALLS], 1); /* the next worker in this slot continues the count */
    assert_int_equal(mk_stat_sum(r, s, CALLS), 11);
    mk_stat_clear_gauges(r, 7); /* worker 7 has counted nothing */
}

static void stats_gauge_is_never_negative(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b");
    mk_stat_add(&mk_stat_cells(r, s, 1)[OPEN], 3);
    mk_stat_add(&mk_stat_cells(r, s, 2)[OPEN], (uint64_t)-2); /* opened in one worker, closed in another */
    assert_int_equal(mk_stat_sum(r, s, OPEN), 1);
    mk_stat_clear_gauges(r, 1);
    assert_int_equal(mk_stat_sum(r, s, OPEN), 0);
    mk_stat_add(&mk_stat_cells(r, s, 1)[CALLS], UINT64_MAX);
    assert_true(mk_stat_sum(r, s, CALLS) == UINT64_MAX);
}

static void stats_number_histogram_has_fine_buckets(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const struct mk_stat_metric items[] = {
        {.name = "items", .column = "items", .kind = MK_STAT_NUMBER_HISTOGRAM}};
    unsigned t =
        mk_stat_register_table(r, &(struct mk_stat_table){.name = "items", .metrics = items, .n_metrics = 1});
    uint32_t s = mk_stat_series(r, t, NULL);
    struct mk_stat_field f;
    uint64_t *cells = mk_stat_cells(r, s, 1);
    mk_stat_observe_fine(cells, 7);
    mk_stat_observe_fine(cells, 1000);
    assert_int_equal(mk_stat_sum(r, s, 7), 1);
    assert_int_equal(mk_stat_sum(r, s, mk_stat_fine_bucket(1000)), 1);
    assert_int_equal(mk_stat_sum(r, s, MK_STAT_FINE_BUCKETS), 1007);
    assert_true(mk_stat_field_at(r, t, s, 0, &f));
    assert_int_equal(f.n, 503);
    assert_false(f.is_time);
}

static void stats_missing_pages_are_counted(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    static const struct mk_stat_metric fine[] = {{.name = "d", .kind = MK_STAT_FINE_HISTOGRAM}};
    unsigned t = mk_stat_register_table(r, &(struct mk_stat_table){"fine", {"name"}, fine, 1, {0}});
    uint32_t s[8];
    char name[8];
    unsigned got = 0;
    for (unsigned i = 0; i < MK_LEN(s); i++) {
        mk_str value = mk_str_of(name, (size_t)snprintf(name, sizeof name, "%u", i));
        s[i] = mk_stat_series(r, t, &value);
    }
    for (unsigned row = 0; row < MK_STAT_ROWS; row++)
        for (unsigned i = 0; i < MK_LEN(s); i++)
            got += mk_stat_cells(r, s[i], row) != NULL;
    assert_int_equal(got, MK_STAT_PAGES_MAX);
    assert_int_equal(mk_stat_alloc_failures(r), MK_LEN(s) * MK_STAT_ROWS - MK_STAT_PAGES_MAX);
    assert_non_null(mk_stat_cells(r, s[0], 0));
}

/* ---- Processes and threads ---- */

enum { THREADS = 8, ROUNDS = 20000, NAMES = 50 };

static void *count_names(void *ctx)
{
    static _Atomic unsigned next;
    unsigned row = next++ % THREADS;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t s = numbered(ctx, i % NAMES);
        if (s)
            mk_stat_add(mk_stat_cells(ctx, s, row), 1);
    }
    return NULL;
}

static void *read_all(void *ctx)
{
    uint64_t before = 0, sum = 0;
    while (sum < THREADS * ROUNDS) {
        sum = 0;
        for (uint32_t s = 0; (s = mk_stat_next(ctx, 1, s));)
            sum += mk_stat_sum(ctx, s, CALLS);
        if (sum < before)
            return ctx; /* a counter decreased */
        before = sum;
    }
    return NULL;
}

static void stats_threads_lose_no_count_and_duplicate_no_series(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    pthread_t t[THREADS], reader;
    void *fell;
    unsigned n = 0;
    (void)mk_stat_register_table(r, &table);
    /* creates all series first, because a thread may skip a series that another thread is still creating */
    for (unsigned i = 0; i < NAMES; i++)
        if (i % 2)
            (void)numbered(r, i);
    for (unsigned i = 0; i < NAMES; i++)
        (void)numbered(r, i);
    assert_int_equal(pthread_create(&reader, NULL, read_all, r), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, count_names, r), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    pthread_join(reader, &fell);
    assert_null(fell);
    for (uint32_t s = 0; (s = mk_stat_next(r, 1, s)); n++)
        assert_int_equal(mk_stat_sum(r, s, CALLS), THREADS * ROUNDS / NAMES);
    assert_int_equal(n, NAMES);
}

static void *make_names(void *ctx)
{
    bool ok = true;
    for (unsigned i = 0; i < 500; i++)
        ok &= numbered(ctx, i) != 0;
    return ok ? NULL : ctx;
}

static void stats_threads_creating_the_same_series_create_one(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    pthread_t t[THREADS];
    unsigned n = 0;
    (void)mk_stat_register_table(r, &table);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, make_names, r), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *refused;
        pthread_join(t[i], &refused);
        assert_null(refused);
    }
    for (uint32_t s = 0; (s = mk_stat_next(r, 1, s));)
        n++;
    assert_int_equal(n, 500);
}

static void stats_registry_is_shared_by_processes(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    uint32_t s = series_of(r, "a", "b");
    for (unsigned row = 0; row < 4; row++) {
        pid_t pid = fork();
        if (pid == 0) {
            mk_stat_add(&mk_stat_cells(r, s, row)[CALLS], 1);
            _exit(series_of(r, "made", "by a worker") == 0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_int_equal(mk_stat_sum(r, s, CALLS), 4);
    assert_str(mk_stat_label(r, mk_stat_next(r, 1, s), 1), "by a worker");
}

/* ---- Memory overwritten by a worker ---- */

/* Overwrites about one in `one_in` words with pseudo-random values, which depend only on the seed. */
static void overwrite(struct mk_stat_registry *r, uint64_t seed, unsigned one_in)
{
    uint64_t *words = (uint64_t *)(void *)r;
    for (size_t i = 0; i < mk_stat_size() / sizeof *words; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        if (seed % one_in == 0)
            words[i] = seed * 0x2545f4914f6cdd1d;
    }
}

static size_t read_texts(const struct mk_stat_registry *r, unsigned t)
{
    struct mk_stat_table found;
    struct mk_stat_metric of[MK_STAT_METRICS_MAX];
    size_t n = 0;
    if (!mk_stat_table_at(r, t, &found, of))
        return 0;
    assert_true(found.n_metrics <= MK_STAT_METRICS_MAX);
    assert_true(!found.name || strlen(found.name) < 32);
    for (unsigned i = 0; i < MK_STAT_LABELS_MAX && found.labels[i]; i++)
        assert_in_range(strlen(found.labels[i]), 0, 15);
    for (unsigned i = 0; i < found.n_metrics; i++) {
        const char *const texts[] = {of[i].name,  of[i].help,  of[i].column,
                                     of[i].label, of[i].value, of[i].value_names};
        for (unsigned k = 0; k < MK_LEN(texts); k++)
            n += texts[k] ? strlen(texts[k]) : 0;
        assert_true(!of[i].label || of[i].value);
        assert_in_range(n, 0, MK_STAT_METRICS_MAX * 340);
    }
    return n;
}

static void read_series(const struct mk_stat_registry *r, unsigned t, uint32_t s)
{
    struct mk_stat_field f;
    volatile char last;
    for (unsigned i = 0; i <= MK_STAT_LABELS_MAX; i++) {
        mk_str label = mk_stat_label(r, s, i);
        assert_in_range(label.len, 0, MK_STAT_LABEL_BYTES_MAX);
        last = label.len ? label.p[label.len - 1] : 0;
    }
    for (unsigned i = 0; i < 2 * MK_STAT_METRICS_MAX && mk_stat_field_at(r, t, s, i, &f); i++)
        assert_non_null(f.name);
    (void)last;
    (void)mk_stat_sum(r, s, MK_STAT_CELLS_MAX);
}

static void write_all(struct mk_stat_registry *r, unsigned t)
{
    const mk_str values[MK_STAT_LABELS_MAX] = {MK_STR("a"), MK_STR("b"), MK_STR("c")};
    uint64_t *cells = mk_stat_cells(r, mk_stat_series(r, t, values), t * 32);
    for (unsigned i = 0; cells && i < MK_STAT_CELLS_MAX; i++)
        mk_stat_add(&cells[i], 1);
    for (uint32_t s = t; s <= MK_STAT_SERIES_MAX; s += MK_STAT_TABLES_MAX) {
        mk_stat_hide(r, s, s % 2);
        cells = mk_stat_cells(r, s, s % MK_STAT_ROWS);
        for (unsigned i = 0; cells && i < MK_STAT_CELLS_MAX; i++)
            mk_stat_add(&cells[i], 1);
    }
}

static void stats_overwritten_memory_is_harmless(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (mk_stat_size() + page - 1) / page * page;
    char *mapping = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(mapping, MAP_FAILED);
    /* the first round overwrites all words, the later rounds only some */
    for (unsigned round = 0; round < 3; round++) {
        struct mk_stat_registry *r = (void *)(mapping + page);
        assert_ptr_equal(
            mmap(r, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), r);
        (void)mk_stat_register_table(r, &table);
        overwrite(r, 88172645463325252u + round, 1 + 2 * round);
        for (unsigned t = 0; t <= MK_STAT_TABLES_MAX + 1; t++) {
            (void)read_texts(r, t);
            for (uint32_t s = t; (s = mk_stat_next(r, t, s));)
                read_series(r, t, s);
            for (uint32_t s = t; s < MK_STAT_SERIES_MAX; s += 127)
                read_series(r, t, s);
        }
        for (unsigned t = 1; t <= MK_STAT_TABLES_MAX; t++)
            write_all(r, t);
        (void)mk_stat_find(r, "calls");
        (void)mk_stat_register_table(r, &table);
        mk_stat_clear_gauges(r, 3);
        (void)mk_stat_alloc_failures(r);
    }
    munmap(mapping, size + 2 * page);
}

/* ---- Histograms and columns ---- */

static void stats_buckets_are_contiguous(void **state)
{
    (void)state;
    for (uint64_t us = 0; us < 1 << 20; us += 1 + us / 50) {
        unsigned b = mk_stat_bucket(us), f = mk_stat_fine_bucket(us);
        assert_true(us < mk_stat_bucket_end(MK_STAT_BUCKETS, b));
        assert_true(us < mk_stat_bucket_end(MK_STAT_FINE_BUCKETS, f));
        assert_true(b == 0 || us >= mk_stat_bucket_end(MK_STAT_BUCKETS, b - 1));
        assert_true(f == 0 || us >= mk_stat_bucket_end(MK_STAT_FINE_BUCKETS, f - 1));
    }
    assert_int_equal(mk_stat_bucket(63), 0);
    assert_int_equal(mk_stat_bucket(64), 1);
    assert_int_equal(mk_stat_bucket(UINT64_MAX), MK_STAT_BUCKETS - 1);
    assert_int_equal(mk_stat_fine_bucket(7), 7);
    assert_int_equal(mk_stat_fine_bucket(UINT64_MAX), MK_STAT_FINE_BUCKETS - 1);
    assert_int_equal(mk_stat_bucket_end(MK_STAT_BUCKETS, 0), 64);
    assert_int_equal(mk_stat_bucket_end(MK_STAT_BUCKETS, 1), 96);
    assert_int_equal(mk_stat_bucket_end(MK_STAT_BUCKETS, MK_STAT_BUCKETS - 2), 1 << 26);
    assert_int_equal(mk_stat_bucket_end(MK_STAT_BUCKETS, MK_STAT_BUCKETS - 1), 0);
}

static void stats_quantiles_are_within_their_bucket(void **state)
{
    uint64_t cells[MK_STAT_FINE_BUCKETS + 1] = {0};
    (void)state;
    assert_int_equal(mk_stat_quantile(cells, MK_STAT_FINE_BUCKETS, 500), 0);
    for (unsigned i = 1; i <= 1000; i++)
        mk_stat_observe_fine(cells, i * 100);
    assert_in_range(mk_stat_quantile(cells, MK_STAT_FINE_BUCKETS, 500), 45000, 55000);
    assert_in_range(mk_stat_quantile(cells, MK_STAT_FINE_BUCKETS, 990), 92000, 106000);
    assert_in_range(mk_stat_quantile(cells, MK_STAT_FINE_BUCKETS, 1000), 100000, 106496);
    assert_in_range(mk_stat_quantile(cells, MK_STAT_FINE_BUCKETS, 0), 96, 104);
    assert_int_equal(cells[MK_STAT_FINE_BUCKETS], 50050000);
    memset(cells, 0, sizeof cells);
    mk_stat_observe(cells, UINT64_C(1) << 40); /* above the last bound */
    assert_true(mk_stat_quantile(cells, MK_STAT_BUCKETS, 500) >= 1 << 26);
}

static void stats_columns_have_means_words_and_gaps(void **state)
{
    (void)state;
    struct mk_stat_registry *r = registry;
    struct mk_stat_field f;
    uint32_t s = series_of(r, "a", "b");
    uint64_t *cells = mk_stat_cells(r, s, 0);
    static const char *const names[] = {"kind", "name", "calls", "open", "mean", "mean", "p50", "p99"};
    for (unsigned i = 0; i < MK_LEN(names); i++) {
        assert_true(mk_stat_field_at(r, 1, s, i, &f));
        assert_string_equal(f.name, names[i]);
        assert_int_equal(f.type, i < 2 ? MK_STAT_TEXT : i == 2 ? MK_STAT_NUMBER : MK_STAT_NONE);
    }
    assert_false(mk_stat_field_at(r, 1, s, MK_LEN(names), &f));
    mk_stat_add(&cells[CALLS], 4);
    mk_stat_add(&cells[MICROS], 1000);
    mk_stat_observe(&cells[DURATION], 70);
    assert_true(mk_stat_field_at(r, 1, s, 4, &f));
    assert_true(f.type == MK_STAT_NUMBER && f.is_time && f.n == 250);
    assert_true(mk_stat_field_at(r, 1, s, 5, &f));
    assert_true(f.type == MK_STAT_NUMBER && f.n == 70);
    static const struct mk_stat_metric state_of[] = {
        {.column = "state", .kind = MK_STAT_GAUGE, .value_names = "up slow down"}};
    unsigned t = mk_stat_register_table(r, &(struct mk_stat_table){"words", {NULL}, state_of, 1, {0}});
    s = mk_stat_series(r, t, NULL);
    for (unsigned i = 0; i < 4; i++) {
        static const char *const words[] = {"up", "slow", "down", "down"};
        mk_stat_set(mk_stat_cells(r, s, MK_STAT_SERVER), i);
        assert_true(mk_stat_field_at(r, t, s, 0, &f));
        assert_str(f.text, words[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(stats_same_table_has_the_same_number, setup, teardown),
        fixture_test(stats_table_with_other_metrics_replaces_the_old_one, setup, teardown),
        fixture_test(stats_invalid_tables_are_rejected, setup, teardown),
        fixture_test(stats_excess_tables_are_counted, setup, teardown),
        fixture_test(stats_series_are_found_by_their_labels, setup, teardown),
        fixture_test(stats_long_labels_are_truncated_and_stay_distinct, setup, teardown),
        fixture_test(stats_three_labels_are_separate, setup, teardown),
        fixture_test(stats_full_registry_counts_rejected_series, setup, teardown),
        fixture_test(stats_hidden_series_are_reused_when_full, setup, teardown),
        fixture_test(stats_hidden_series_of_gauges_are_reused_first, setup, teardown),
        fixture_test(stats_hidden_series_returns_with_its_counts, setup, teardown),
        fixture_test(stats_series_being_created_elsewhere_is_available_later, setup, teardown),
        fixture_test(stats_sum_covers_all_rows, setup, teardown),
        fixture_test(stats_cells_of_a_series_share_one_page, setup, teardown),
        fixture_test(stats_gauge_is_never_negative, setup, teardown),
        fixture_test(stats_number_histogram_has_fine_buckets, setup, teardown),
        fixture_test(stats_dead_worker_keeps_counters_and_clears_gauges, setup, teardown),
        fixture_test(stats_missing_pages_are_counted, setup, teardown),
        fixture_test(stats_threads_lose_no_count_and_duplicate_no_series, setup, teardown),
        fixture_test(stats_threads_creating_the_same_series_create_one, setup, teardown),
        fixture_test(stats_registry_is_shared_by_processes, setup, teardown),
        cmocka_unit_test(stats_overwritten_memory_is_harmless),
        fixture_test(stats_buckets_are_contiguous, setup, teardown),
        fixture_test(stats_quantiles_are_within_their_bucket, setup, teardown),
        fixture_test(stats_columns_have_means_words_and_gaps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
