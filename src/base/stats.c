/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"

#include <monkey/sized.h>
#include <monkey/text.h>
#include <sched.h>
#include <string.h>

#include "base/atomic_counter.h"
#include "base/buf.h"

enum {
    PAGE_CELLS = MK_STAT_CELLS_MAX,
    ROW_PAGES = 2048, /* maximum number of pages of a row */
    MARK = 8,         /* space for the `~` and the series number that end a truncated label value */
    YIELDS = 8,       /* how often a worker yields while another one is creating a series */
};

/* The strings of struct mk_stat_metric. */
enum { NAME, HELP, COLUMN, LABEL, VALUE, WORDS, N_TEXTS };

static const uint8_t text_sizes[N_TEXTS] = {
    [NAME] = 64, [HELP] = 160, [COLUMN] = 24, [LABEL] = 16, [VALUE] = 16, [WORDS] = 64};

struct metric {
    uint8_t kind, is_time, is_optional, mean_of;
    uint8_t has; /* bitmap of strings that are not NULL */
    char text[64 + 160 + 24 + 16 + 16 + 64];
};

struct table {
    uint8_t n_labels, n_metrics, is_replaced;
    uint16_t n_cells;
    char name[64], labels[MK_STAT_LABELS_MAX][16];
    struct metric metrics[MK_STAT_METRICS_MAX];
};

enum { CREATING, READY, HIDDEN, REFUSED };

struct series {
    uint32_t state;        /* remains CREATING if the worker died while creating the series */
    uint32_t table, first; /* the table of the series, and its first cell in a row */
    uint16_t len[MK_STAT_LABELS_MAX];
    char values[MK_STAT_LABEL_BYTES_MAX];
};

/* Each worker has a row. The cells of a row are on pages, which are taken from a common pool at the first
 * write. */
struct mk_stat_registry {
    uint64_t refused;
    uint32_t n_tables, n_series, n_cells, n_pages, n_rows; /* used so far */
    struct table tables[MK_STAT_TABLES_MAX];
    uint64_t
        ids[MK_STAT_SERIES_MAX]; /* hashes of table and label values; 0: free. Allocated in order, without
                                   * gaps */
    struct series series[MK_STAT_SERIES_MAX];
    uint16_t pages[MK_STAT_ROWS][ROW_PAGES];          /* page numbers, from 1; 0: none */
    uint64_t pool[MK_STAT_PAGES_MAX + 1][PAGE_CELLS]; /* one extra page, so that an invalid `first` cannot
                                                       * lead beyond the pool */
};

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, n) __atomic_store_n(p, n, __ATOMIC_RELEASE)
#define ADD(p, n)   __atomic_fetch_add(p, n, __ATOMIC_RELAXED)

size_t mk_stat_size(void)
{
    return sizeof(struct mk_stat_registry);
}

static bool claim_series_id(uint64_t *id, uint64_t expected)
{
    uint64_t none = 0;
    return __atomic_compare_exchange_n(id, &none, expected, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static uint32_t min_u32(uint32_t n, uint32_t max)
{
    return n < max ? n : max;
}

/* ---- Tables ---- */

static const char *const *metric_texts(const struct mk_stat_metric *m, const char *texts[N_TEXTS])
{
    texts[NAME] = m->name;
    texts[HELP] = m->help;
    texts[COLUMN] = m->column;
    texts[LABEL] = m->label;
    texts[VALUE] = m->value;
    texts[WORDS] = m->value_names;
    return texts;
}

static bool copy_text(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size)
        return false;
    memcpy(to, text, len);
    return true;
}

static unsigned n_cells_of_kind(unsigned kind)
{
    bool is_fine = kind == MK_STAT_FINE_HISTOGRAM || kind == MK_STAT_NUMBER_HISTOGRAM;
    return is_fine ? MK_STAT_FINE_BUCKETS + 1 : kind == MK_STAT_HISTOGRAM ? MK_STAT_BUCKETS + 1 : 1;
}

static bool encode_metric(struct metric *to, const struct mk_stat_metric *m)
{
    const char *texts[N_TEXTS];
    size_t at = 0;
    *to = (struct metric){.kind = (uint8_t)m->kind,
                          .is_time = m->is_time,
                          .is_optional = m->is_optional,
                          .mean_of = (uint8_t)m->mean_of};
    metric_texts(m, texts);
    for (unsigned i = 0; i < N_TEXTS; at += text_sizes[i++]) {
        if (texts[i] && !copy_text(to->text + at, text_sizes[i], texts[i]))
            return false;
        to->has |= (uint8_t)((texts[i] != NULL) << i);
    }
    return true;
}

/* Encodes a table. False: it does not fit, or a histogram is not its last metric. */
static bool encode_table(struct table *to, const struct mk_stat_table *t)
{
    memset(to, 0, sizeof *to);
    if (t->n_metrics > MK_STAT_METRICS_MAX || !copy_text(to->name, sizeof to->name, t->name))
        return false;
    for (; to->n_labels < MK_STAT_LABELS_MAX && t->labels[to->n_labels]; to->n_labels++)
        if (!copy_text(to->labels[to->n_labels], sizeof to->labels[0], t->labels[to->n_labels]))
            return false;
    for (; to->n_metrics < t->n_metrics; to->n_metrics++) {
        const struct mk_stat_metric *m = &t->metrics[to->n_metrics];
        bool is_last = to->n_metrics + 1u == t->n_metrics;
        if (!encode_metric(&to->metrics[to->n_metrics], m) || (n_cells_of_kind(m->kind) > 1 && !is_last))
            return false;
        to->n_cells = (uint16_t)(to->n_cells + n_cells_of_kind(m->kind));
    }
    return true;
}

unsigned mk_stat_register_table(struct mk_stat_registry *r, const struct mk_stat_table *table)
{
    struct table made;
    uint32_t n = min_u32(r->n_tables, MK_STAT_TABLES_MAX);
    if (!encode_table(&made, table))
        return 0;
    for (unsigned i = 0; i < n; i++)
        if (memcmp(&r->tables[i], &made, sizeof made) == 0)
            return i + 1;
    if (n == MK_STAT_TABLES_MAX) {
        ADD(&r->refused, 1);
        return 0;
    }
    for (unsigned i = 0; i < n; i++) /* an older table with that name: its plugin was replaced by a version
                                      * with other metrics */
        if (memcmp(r->tables[i].name, made.name, sizeof made.name) == 0)
            r->tables[i].is_replaced = true;
    r->tables[n] = made;
    STORE(&r->n_tables, n + 1);
    return n + 1;
}

static const struct table *table_at(const struct mk_stat_registry *r, unsigned table)
{
    return table && table <= min_u32(LOAD(&r->n_tables), MK_STAT_TABLES_MAX) ? &r->tables[table - 1] : NULL;
}

/* Checks a string in shared memory, which may lack its NUL. */
static const char *checked_text(const char *text, size_t size)
{
    return memchr(text, 0, size) ? text : "";
}

static unsigned n_labels_of(const struct table *t)
{
    return min_u32(LOAD(&t->n_labels), MK_STAT_LABELS_MAX);
}

static unsigned n_metrics_of(const struct table *t)
{
    return min_u32(LOAD(&t->n_metrics), MK_STAT_METRICS_MAX);
}

static void decode_metric(const struct metric *from, struct mk_stat_metric *out)
{
    const char *texts[N_TEXTS];
    size_t at = 0;
    for (unsigned i = 0; i < N_TEXTS; at += text_sizes[i++])
        texts[i] = from->has >> i & 1 ? checked_text(from->text + at, text_sizes[i]) : NULL;
    if (texts[LABEL] && !texts[VALUE])
        texts[VALUE] = "";
    *out = (struct mk_stat_metric){.name = texts[NAME],
                                   .help = texts[HELP],
                                   .column = texts[COLUMN],
                                   .label = texts[LABEL],
                                   .value = texts[VALUE],
                                   .value_names = texts[WORDS],
                                   .kind = (enum mk_stat_kind)from->kind,
                                   .is_time = from->is_time,
                                   .is_optional = from->is_optional,
                                   .mean_of = from->mean_of};
}

bool mk_stat_table_at(const struct mk_stat_registry *r, unsigned table, struct mk_stat_table *out,
                      struct mk_stat_metric *metrics)
{
    const struct table *t = table_at(r, table);
    if (!t)
        return false;
    unsigned n_labels = n_labels_of(t);
    *out = (struct mk_stat_table){.name = t->is_replaced ? NULL : checked_text(t->name, sizeof t->name),
                                  .metrics = metrics,
                                  .n_metrics = n_metrics_of(t)};
    for (unsigned i = 0; i < n_labels; i++)
        out->labels[i] = checked_text(t->labels[i], sizeof t->labels[i]);
    for (size_t i = 0; i < out->n_metrics; i++)
        decode_metric(&t->metrics[i], &metrics[i]);
    return true;
}

unsigned mk_stat_find(const struct mk_stat_registry *r, const char *name)
{
    const struct table *t;
    for (unsigned i = 1; (t = table_at(r, i)); i++)
        if (!t->is_replaced && strncmp(t->name, name, sizeof t->name) == 0)
            return i;
    return 0;
}

/* ---- Series ---- */

/* FNV-1a suffices: only the server chooses label names, and clients can choose values only from a small
 * set. */
static uint64_t series_id(unsigned table, unsigned n_labels, const mk_str *values)
{
    uint64_t id = MK_FNV1A_INIT ^ table;
    for (unsigned i = 0; i < n_labels; i++)
        id = mk_fnv1a_byte(mk_fnv1a(id, values[i]), '\xff');
    return id ? id : 1;
}

/* Writes the values one after another. A value that is too long is truncated between UTF-8 characters, and
 * ends with the series number. */
static void write_label_values(struct series *s, uint32_t number, unsigned n, const mk_str *values)
{
    struct mk_buf out = mk_buf_fixed(s->values, sizeof s->values);
    memset(s->len, 0, sizeof s->len);
    for (unsigned i = 0; i < n; i++) {
        size_t from = out.len, buf = sizeof s->values - out.len - (n - i - 1) * 2 * MARK;
        mk_str v = values[i];
        bool is_cut = v.len > buf;
        if (is_cut)
            v.len = buf - MARK;
        while (is_cut && v.len && ((unsigned char)values[i].p[v.len] & 0xc0) == 0x80)
            v.len--;
        mk_buf_add(&out, v);
        if (is_cut)
            mk_buf_addf(&out, "~%u", number);
        s->len[i] = (uint16_t)(out.len - from);
    }
}

/* Allocates the cells of a series, at the same position in each row and within one page. False: none left. */
static bool alloc_cells(struct mk_stat_registry *r, uint32_t n, uint32_t *first)
{
    uint32_t used = LOAD(&r->n_cells);
    do {
        uint32_t left = PAGE_CELLS - used % PAGE_CELLS;
        *first = n > left ? used + left : used;
        if (*first + n > ROW_PAGES * PAGE_CELLS)
            return false;
    } while (!__atomic_compare_exchange_n(&r->n_cells, &used, *first + n, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return true;
}

static void atomic_max(uint32_t *n, uint32_t to)
{
    uint32_t now = LOAD(n);
    while (now < to && !__atomic_compare_exchange_n(n, &now, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

static uint32_t refuse_series(struct mk_stat_registry *r, struct series *s)
{
    if (s)
        STORE(&s->state, REFUSED);
    ADD(&r->refused, 1);
    return 0;
}

static uint32_t create_series(struct mk_stat_registry *r, uint32_t i, unsigned table, const mk_str *values)
{
    const struct table *t = &r->tables[table - 1];
    struct series *s = &r->series[i];
    uint32_t first;
    if (!alloc_cells(r, min_u32(LOAD(&t->n_cells), PAGE_CELLS), &first))
        return refuse_series(r, s);
    s->first = first;
    s->table = table;
    write_label_values(s, i + 1, n_labels_of(t), values);
    STORE(&s->state, READY);
    return i + 1;
}

static uint64_t *cell_at(const struct mk_stat_registry *r, uint32_t first, unsigned row)
{
    uint32_t page = row < MK_STAT_ROWS && first / PAGE_CELLS < ROW_PAGES
                        ? __atomic_load_n(&r->pages[row][first / PAGE_CELLS], __ATOMIC_ACQUIRE)
                        : 0;
    return page && page <= MK_STAT_PAGES_MAX ? (uint64_t *)(uintptr_t)&r->pool[page - 1][first % PAGE_CELLS]
                                             : NULL;
}

/* Reuses a hidden series of the same table. Returns 0 if there is none. */
static uint32_t recycle_hidden_series(struct mk_stat_registry *r, uint64_t id, unsigned table,
                                      const mk_str *values)
{
    const struct table *t = &r->tables[table - 1];
    for (uint32_t i = 0; i < MK_STAT_SERIES_MAX; i++) {
        struct series *s = &r->series[i];
        uint32_t hidden = HIDDEN;
        if (s->table != table || !__atomic_compare_exchange_n(&s->state, &hidden, CREATING, false,
                                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        uint32_t n_cells = min_u32(LOAD(&t->n_cells), PAGE_CELLS), first = LOAD(&s->first);
        for (unsigned row = 0; row < MK_STAT_ROWS; row++) {
            uint64_t *cells = cell_at(r, first, row);
            for (unsigned c = 0; cells && c < n_cells; c++)
                mk_counter_set(&cells[c], 0);
        }
        STORE(&r->ids[i], id);
        write_label_values(s, i + 1, n_labels_of(t), values);
        STORE(&s->state, READY);
        return i + 1;
    }
    return 0;
}

/* The values of a hidden series of such a table are no history that must be kept. */
static bool has_only_gauges(const struct table *t)
{
    for (unsigned i = 0; i < t->n_metrics && i < MK_STAT_METRICS_MAX; i++)
        if (t->metrics[i].kind != MK_STAT_GAUGE)
            return false;
    return true;
}

/* Waits while another worker is creating the series, which takes microseconds. Returns CREATING if that
 * worker probably died. */
static uint32_t wait_until_series_created(const struct series *s)
{
    uint32_t state = LOAD(&s->state);
    for (unsigned i = 0; state == CREATING && i < YIELDS; i++) {
        (void)sched_yield();
        state = LOAD(&s->state);
    }
    return state;
}

static uint32_t reuse_created_series(struct mk_stat_registry *r, uint32_t i, uint64_t id)
{
    struct series *s = &r->series[i];
    uint32_t state = wait_until_series_created(s);
    if (state == CREATING || LOAD(&r->ids[i]) != id) /* not ready, or reused for another series */
        return MK_STAT_RETRY;
    mk_stat_hide(r, i + 1, false);
    return state == READY || state == HIDDEN ? i + 1 : 0;
}

uint32_t mk_stat_series(struct mk_stat_registry *r, unsigned table, const mk_str *values)
{
    const struct table *t = table_at(r, table);
    if (!t)
        return 0;
    uint64_t id = series_id(table, n_labels_of(t), values);
    uint32_t recycled;
    for (uint32_t i = 0; i < MK_STAT_SERIES_MAX; i++) {
        uint64_t found = LOAD(&r->ids[i]);
        if (!found && has_only_gauges(t) && (recycled = recycle_hidden_series(r, id, table, values)))
            return recycled;
        if (!found && claim_series_id(&r->ids[i], id)) {
            atomic_max(&r->n_series, i + 1);
            return create_series(r, i, table, values);
        }
        if (!found)
            found = LOAD(&r->ids[i]);
        if (found == id)
            return reuse_created_series(r, i, id);
    }
    recycled = recycle_hidden_series(r, id, table, values);
    return recycled ? recycled : refuse_series(r, NULL);
}

static const struct series *series_at(const struct mk_stat_registry *r, uint32_t series)
{
    return series && series <= MK_STAT_SERIES_MAX ? &r->series[series - 1] : NULL;
}

void mk_stat_hide(struct mk_stat_registry *r, uint32_t series, bool is_hidden)
{
    uint32_t from = is_hidden ? READY : HIDDEN;
    if (series && series <= MK_STAT_SERIES_MAX)
        (void)__atomic_compare_exchange_n(&r->series[series - 1].state, &from, is_hidden ? HIDDEN : READY,
                                          false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

uint64_t mk_stat_alloc_failures(const struct mk_stat_registry *r)
{
    return mk_counter_get(&r->refused);
}

/* ---- Cells ---- */

/* Allocates a page for the row. Only the worker of the row does so, but several workers may allocate a page
 * for the server's row at once: all but one of these pages then stay unused. */
static bool alloc_page(struct mk_stat_registry *r, uint32_t first, unsigned row)
{
    uint16_t none = 0;
    uint32_t page = ADD(&r->n_pages, 1);
    if (page >= MK_STAT_PAGES_MAX) {
        (void)__atomic_fetch_sub(&r->n_pages, 1, __ATOMIC_RELAXED);
        return false;
    }
    (void)__atomic_compare_exchange_n(&r->pages[row][first / PAGE_CELLS], &none, (uint16_t)(page + 1), false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    atomic_max(&r->n_rows, row + 1);
    return true;
}

uint64_t *mk_stat_cells(struct mk_stat_registry *r, uint32_t series, unsigned row)
{
    const struct series *s = series_at(r, series);
    uint32_t first = s ? LOAD(&s->first) : 0;
    if (!s || row >= MK_STAT_ROWS || first / PAGE_CELLS >= ROW_PAGES)
        return NULL;
    uint64_t *cells = cell_at(r, first, row);
    if (!cells && !alloc_page(r, first, row)) {
        refuse_series(r, NULL);
        return NULL;
    }
    return cell_at(r, first, row);
}

/* If one worker increases a gauge, another decreases it, and the first one exits, the sum is negative. */
static bool is_negative_gauge(const struct mk_stat_registry *r, const struct series *s, unsigned cell,
                              uint64_t sum)
{
    const struct table *t = s && (int64_t)sum < 0 ? table_at(r, s->table) : NULL;
    return t && cell < n_metrics_of(t) && t->metrics[cell].kind == MK_STAT_GAUGE;
}

uint64_t mk_stat_sum(const struct mk_stat_registry *r, uint32_t series, unsigned cell)
{
    const struct series *s = series_at(r, series);
    uint32_t n_rows = min_u32(LOAD(&r->n_rows), MK_STAT_ROWS);
    uint64_t sum = 0;
    for (unsigned row = 0; s && row < n_rows; row++) {
        const uint64_t *c = cell_at(r, s->first + cell, row);
        sum += c ? mk_counter_get(c) : 0;
    }
    return is_negative_gauge(r, s, cell, sum) ? 0 : sum;
}

void mk_stat_clear_gauges(struct mk_stat_registry *r, unsigned row)
{
    uint32_t n = min_u32(LOAD(&r->n_series), MK_STAT_SERIES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct series *s = &r->series[i];
        uint32_t state = LOAD(&s->state);
        const struct table *t = state == READY || state == HIDDEN ? table_at(r, s->table) : NULL;
        for (unsigned m = 0; t && m < n_metrics_of(t); m++) {
            uint64_t *c = t->metrics[m].kind == MK_STAT_GAUGE ? cell_at(r, s->first + m, row) : NULL;
            if (c)
                mk_counter_set(c, 0);
        }
    }
}

/* ---- Reading ---- */

uint32_t mk_stat_next(const struct mk_stat_registry *r, unsigned table, uint32_t series)
{
    uint32_t n = min_u32(LOAD(&r->n_series), MK_STAT_SERIES_MAX);
    for (uint32_t i = series; i < n; i++)
        if (LOAD(&r->series[i].state) == READY && r->series[i].table == table)
            return i + 1;
    return 0;
}

mk_str mk_stat_label(const struct mk_stat_registry *r, uint32_t series, unsigned i)
{
    const struct series *s = series_at(r, series);
    size_t from = 0;
    if (!s || i >= MK_STAT_LABELS_MAX)
        return MK_STR("");
    for (unsigned k = 0; k < i; k++)
        from += LOAD(&s->len[k]);
    size_t len = LOAD(&s->len[i]);
    if (from + len > sizeof s->values)
        return MK_STR("");
    return mk_str_of(s->values + from, len);
}

/* ---- Histograms ---- */

static uint64_t bucket_start(unsigned n, unsigned i)
{
    if (n == MK_STAT_FINE_BUCKETS)
        return i < 8 ? i : (uint64_t)(8 + i % 8) << (i / 8 - 1);
    return i == 0 ? 0 : i % 2 ? UINT64_C(64) << i / 2 : UINT64_C(96) << (i / 2 - 1);
}

uint64_t mk_stat_bucket_end(unsigned n, unsigned bucket)
{
    bool is_valid = n == MK_STAT_BUCKETS || n == MK_STAT_FINE_BUCKETS;
    return is_valid && bucket < n - 1 ? bucket_start(n, bucket + 1) : 0;
}

uint64_t mk_stat_quantile(const uint64_t *buckets, unsigned n, unsigned thousandths)
{
    uint64_t total = 0, before = 0;
    for (unsigned i = 0; i < n; i++)
        total += buckets[i];
    if (!total)
        return 0;
    uint64_t rank = (total * thousandths + 999) / 1000;
    unsigned b = 0;
    for (rank = rank ? rank : 1; b + 1 < n && before + buckets[b] < rank; b++)
        before += buckets[b];
    uint64_t start = bucket_start(n, b), end = bucket_start(n, b + 1);
    if (rank - before >= buckets[b]) /* greater only if the total has overflowed */
        return end;
    return start + (uint64_t)((double)(end - start) * (double)(rank - before) / (double)buckets[b]);
}

/* ---- Columns ---- */

static mk_str nth_word(const char *words, uint64_t value)
{
    mk_str rest = mk_str_from_c(words), word = mk_str_word(&rest);
    while (value-- && rest.len)
        word = mk_str_word(&rest);
    return word;
}

static void fill_histogram_field(const struct mk_stat_registry *r, uint32_t series, const struct metric *m,
                                 unsigned first, unsigned which, struct mk_stat_field *out)
{
    static const char *const names[] = {"mean", "p50", "p99"};
    uint64_t buckets[MK_STAT_FINE_BUCKETS], total = 0;
    unsigned kind = LOAD(&m->kind), n = n_cells_of_kind(kind) - 1;
    *out = (struct mk_stat_field){
        .name = names[which], .type = MK_STAT_NUMBER, .is_time = kind != MK_STAT_NUMBER_HISTOGRAM};
    for (unsigned i = 0; i < n; i++)
        total += buckets[i] = mk_stat_sum(r, series, first + i);
    if (!total)
        out->type = MK_STAT_NONE;
    else if (which == 0)
        out->n = mk_stat_sum(r, series, first + n) / total;
    else
        out->n = mk_stat_quantile(buckets, n, which == 1 ? 500 : 990);
}

static void fill_metric_field(const struct mk_stat_registry *r, uint32_t series, const struct table *t,
                              unsigned at, struct mk_stat_field *out)
{
    struct mk_stat_metric m;
    decode_metric(&t->metrics[at], &m);
    *out = (struct mk_stat_field){.name = m.column ? m.column : "",
                                  .type = MK_STAT_NUMBER,
                                  .is_time = m.is_time,
                                  .n = mk_stat_sum(r, series, at)};
    uint64_t by = m.mean_of ? mk_stat_sum(r, series, m.mean_of - 1) : 1;
    if (!by || (m.is_optional && !out->n))
        out->type = MK_STAT_NONE;
    else
        out->n /= by;
    if (m.value_names) {
        out->type = MK_STAT_TEXT;
        out->text = nth_word(m.value_names, out->n);
    }
}

static bool read_field(const struct mk_stat_registry *r, unsigned table, uint32_t series, unsigned i,
                       struct mk_stat_field *out)
{
    const struct table *t = table_at(r, table);
    if (!t)
        return false;
    unsigned n_labels = n_labels_of(t);
    if (i < n_labels) {
        *out = (struct mk_stat_field){.name = checked_text(t->labels[i], sizeof t->labels[i]),
                                      .type = MK_STAT_TEXT,
                                      .text = mk_stat_label(r, series, i)};
        return true;
    }
    i -= n_labels;
    for (unsigned m = 0; m < n_metrics_of(t); m++) {
        unsigned cells = n_cells_of_kind(LOAD(&t->metrics[m].kind)), n = cells > 1 ? 3 : 1;
        if (!(t->metrics[m].has >> COLUMN & 1))
            continue;
        if (i >= n) {
            i -= n;
            continue;
        }
        if (cells > 1)
            fill_histogram_field(r, series, &t->metrics[m], m, i, out);
        else
            fill_metric_field(r, series, t, m, out);
        return true;
    }
    return false;
}

bool mk_stat_field_at_sized(const struct mk_stat_registry *r, unsigned table, uint32_t series, unsigned i,
                            struct mk_stat_field *out, size_t out_size)
{
    struct mk_stat_field full = {0};
    bool result = read_field(r, table, series, i, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}
