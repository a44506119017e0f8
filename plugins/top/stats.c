/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

/* ---- Rows ---- */

static mk_str row_name(const struct top_row *r)
{
    return mk_str_of(r->name, r->name_len);
}

static bool grow_rows(struct top_stats *s)
{
    size_t cap = s->rows_cap ? 2 * s->rows_cap : 64;
    struct top_row *rows = mk_mem_realloc(s->rows, cap * sizeof *rows);
    uint32_t *buckets = mk_mem_zalloc(2 * cap, sizeof *buckets);
    if (rows)
        s->rows = rows;
    if (!s->rows_cap)
        mk_random(&s->hash_key, sizeof s->hash_key);
    if (!rows || !buckets) {
        mk_mem_free(buckets);
        return false;
    }
    mk_mem_free(s->buckets);
    s->rows_cap = cap;
    s->buckets = buckets;
    s->n_buckets = 2 * cap;
    for (size_t i = 0; i < s->n_rows; i++) {
        size_t at = mk_hash(&s->hash_key, row_name(&rows[i])) % s->n_buckets;
        while (buckets[at])
            at = (at + 1) % s->n_buckets;
        buckets[at] = (uint32_t)i + 1;
    }
    return true;
}

/* Returns the row of a name, which it adds if there is none. NULL: out of memory. */
static struct top_row *find_row(struct top_stats *s, mk_str name)
{
    name = mk_str_first(name, TOP_NAME_MAX);
    if (s->n_rows == s->rows_cap && !grow_rows(s))
        return NULL;
    size_t at = mk_hash(&s->hash_key, name) % s->n_buckets;
    for (; s->buckets[at]; at = (at + 1) % s->n_buckets)
        if (mk_str_eq(row_name(&s->rows[s->buckets[at] - 1]), name))
            return &s->rows[s->buckets[at] - 1];
    struct top_row *r = &s->rows[s->n_rows];
    s->buckets[at] = (uint32_t)++s->n_rows;
    *r = (struct top_row){.name_len = (unsigned)name.len};
    memcpy(r->name, name.p, name.len);
    return r;
}

/* The name of the row of a request. Absent: it has none. */
static mk_str name_of(enum top_view view, const struct top_entry *e, struct mk_buf *buf)
{
    struct mk_addr client = e->record.client;
    mk_str text = MK_STR_NULL;
    client.port = 0;
    switch (view) {
    case TOP_BY_HOST:
        for (size_t i = 0; i < e->text[MK_RECORDER_HOST].len; i++)
            mk_buf_add_char(buf, mk_char_lower(e->text[MK_RECORDER_HOST].p[i]));
        text = mk_buf_str(buf);
        break;
    case TOP_BY_CLIENT:
        mk_addr_format(&client, buf);
        text = mk_buf_str(buf);
        break;
    case TOP_BY_ROUTE:
        text = e->text[MK_RECORDER_ROUTE];
        break;
    case TOP_BY_BACKEND:
        return e->text[MK_RECORDER_UPSTREAM].len ? e->text[MK_RECORDER_UPSTREAM] : MK_STR_NULL;
    case TOP_LIST_SLOW:
    case TOP_LIST_FAILED:
    case TOP_LIST_OPEN:
    case TOP_VIEWS:
        break;
    }
    return text.len ? text : MK_STR("-");
}

static void add_to_row(struct top_row *row, const struct mk_recorder_record *r, double weight)
{
    bool failed = top_filter_is_failed(r);
    if (r->state == MK_RECORDER_OPEN) {
        row->in_flight++;
        return;
    }
    row->requests++;
    row->failed += failed;
    row->rate += weight;
    row->failed_rate += failed ? weight : 0;
    row->bytes_rate += (double)r->sent * weight;
    row->total_us += (double)r->duration_us;
    row->max_us = r->duration_us > row->max_us ? r->duration_us : row->max_us;
}

/* ---- Lists ---- */

static int compare_numbers(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int compare_slow(const void *a, const void *b)
{
    const struct top_entry *x = a, *y = b;
    return compare_numbers(y->record.duration_us, x->record.duration_us);
}

static int compare_latest(const void *a, const void *b)
{
    return compare_numbers(top_entry_ended_ms(b), top_entry_ended_ms(a));
}

static int compare_begin(const void *a, const void *b)
{
    const struct top_entry *x = a, *y = b;
    return compare_numbers(x->record.began_ms, y->record.began_ms);
}

static void sort_list(struct top_stats *s)
{
    if (s->n_list)
        qsort(s->list, s->n_list, sizeof *s->list,
              s->view == TOP_LIST_SLOW     ? compare_slow
              : s->view == TOP_LIST_FAILED ? compare_latest
                                           : compare_begin);
    s->n_list = s->n_list < TOP_LIST_MAX ? s->n_list : TOP_LIST_MAX;
}

static bool is_in_list(const struct top_stats *s, const struct mk_recorder_record *r)
{
    return s->view == TOP_LIST_SLOW     ? r->state == MK_RECORDER_ENDED
           : s->view == TOP_LIST_FAILED ? top_filter_is_failed(r)
                                        : r->state == MK_RECORDER_OPEN;
}

static bool add_to_list(struct top_stats *s, const struct top_entry *e)
{
    enum { CAP = 2 * TOP_LIST_MAX };
    if (!s->list)
        s->list = mk_mem_zalloc(CAP, sizeof *s->list);
    if (!s->list)
        return false;
    if (s->n_list == CAP)
        sort_list(s);
    s->list[s->n_list++] = *e;
    return true;
}

/* ---- Reading ---- */

static bool add_pending(void *ctx, const struct top_entry *e)
{
    struct top_stats *s = ctx;
    uint64_t ended_ms = top_entry_ended_ms(e);
    if (e->record.state != MK_RECORDER_OPEN && ended_ms < s->oldest_ms)
        s->oldest_ms = ended_ms;
    if (!top_filter_match(s->filter, e))
        return true;
    if (s->n_pending == s->pending_cap) {
        size_t cap = s->pending_cap ? 2 * s->pending_cap : 256;
        struct top_entry *more = mk_mem_realloc(s->pending, cap * sizeof *more);
        s->no_memory = !more;
        if (!more)
            return false;
        s->pending = more;
        s->pending_cap = cap;
    }
    s->pending[s->n_pending++] = *e;
    return true;
}

static bool add_entry(struct top_stats *s, struct top_entry *e, double weight)
{
    char text[TOP_NAME_MAX + 1];
    struct mk_buf buf = mk_buf_fixed(text, sizeof text);
    (void)top_reader_set_texts(e); /* they were copied */
    add_to_row(&s->total, &e->record, weight);
    if (s->view >= TOP_LIST_SLOW)
        return !is_in_list(s, &e->record) || add_to_list(s, e);
    mk_str name = name_of(s->view, e, &buf);
    struct top_row *row = name.p ? find_row(s, name) : NULL;
    if (row)
        add_to_row(row, &e->record, weight);
    return row || !name.p;
}

/* A full ring may cover a shorter time than the one asked for: requests per second are those of the time that it covers. */
static bool add_ring(void *ctx, bool is_full)
{
    struct top_stats *s = ctx;
    uint64_t ms = s->filter->last_ms, covered_ms = s->oldest_ms < s->now_ms ? s->now_ms - s->oldest_ms : 1;
    if (is_full && covered_ms < ms)
        ms = covered_ms;
    for (size_t i = 0; i < s->n_pending && !s->no_memory; i++)
        s->no_memory = !add_entry(s, &s->pending[i], 1000.0 / (double)ms);
    s->n_pending = 0;
    s->oldest_ms = UINT64_MAX;
    return !s->no_memory;
}

const char *top_stats_read(struct top_stats *s, const struct top_recording *from, enum top_view view,
                           struct top_filter *filter, uint64_t now_ms, bool *is_missing)
{
    const struct top_visitor visitor = {.each = add_pending, .ring_end = add_ring, .ctx = s};
    s->view = view;
    s->filter = filter;
    s->now_ms = now_ms;
    s->oldest_ms = UINT64_MAX;
    s->total = (struct top_row){.name_len = 0};
    s->damage = (struct top_damage){0};
    s->n_rows = s->n_list = s->n_pending = 0;
    s->no_memory = false;
    if (s->n_buckets)
        memset(s->buckets, 0, s->n_buckets * sizeof *s->buckets);
    top_filter_set_now(filter, now_ms);
    const char *error = top_reader_read(from, &visitor, &s->damage, is_missing);
    if (s->n_pending && !s->no_memory)
        (void)add_ring(s, false); /* the file has ended in a ring */
    sort_list(s);
    for (size_t i = 0; i < s->n_list; i++)
        (void)top_reader_set_texts(&s->list[i]);
    return error ? error : s->no_memory ? "out of memory" : NULL;
}

/* ---- Sorting ---- */

static double key_of(const struct top_row *r, enum top_column column)
{
    switch (column) {
    case TOP_RATE:
        return r->rate;
    case TOP_REQUESTS:
        return (double)r->requests;
    case TOP_FAILED:
        return (double)r->failed;
    case TOP_IN_FLIGHT:
        return (double)r->in_flight;
    case TOP_MEAN:
        return r->requests ? r->total_us / (double)r->requests : 0;
    case TOP_MAX:
        return (double)r->max_us;
    case TOP_BYTES:
        return r->bytes_rate;
    case TOP_NAME:
    case TOP_COLUMNS:
        break;
    }
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    if (x->key > y->key || x->key < y->key)
        return x->key > y->key ? -1 : 1;
    size_t n = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, n);
    return order ? order : x->name_len < y->name_len ? -1 : x->name_len > y->name_len;
}

void top_stats_sort(struct top_stats *s, enum top_column column)
{
    for (size_t i = 0; i < s->n_rows; i++)
        s->rows[i].key = key_of(&s->rows[i], column);
    if (s->n_rows)
        qsort(s->rows, s->n_rows, sizeof *s->rows, compare_rows);
}

void top_stats_free(struct top_stats *s)
{
    mk_mem_free(s->rows);
    mk_mem_free(s->buckets);
    mk_mem_free(s->list);
    mk_mem_free(s->pending);
}
