/* SPDX-License-Identifier: Apache-2.0 */
#include "counts.h"

/* The label may be longer than a name of shared memory. */
static uint64_t hash(mk_str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return h;
}

struct counts *metrics_counts_of(struct mk_config *config, mk_str label)
{
    char room[64];
    struct mk_buf name = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&name, "metrics/counts/%016llx", (unsigned long long)hash(label));
    mk_buf_add_char(&name, '\0');
    return mk_config_shared(config, room, sizeof(struct counts));
}

static void add(counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static uint64_t get(const counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* ---- Statuses ---- */

/* Columns 0 and STATUS_OTHER are never claimed. If two workers claim at once, the column of the second
 * stays empty. */
static unsigned claim_column(struct counts *c, unsigned status)
{
    unsigned n = atomic_load_explicit(&c->columns, memory_order_relaxed), column = STATUS_OTHER;
    if (n + 1 < STATUS_COLUMNS)
        column = STATUS_OTHER + 1U + atomic_fetch_add_explicit(&c->columns, 1, memory_order_relaxed);
    if (column >= STATUS_COLUMNS)
        column = STATUS_OTHER;
    uint8_t unseen = 0;
    if (!atomic_compare_exchange_strong(&c->column_of[status], &unseen, (uint8_t)column))
        column = unseen;
    return column;
}

static unsigned column_of(struct counts *c, unsigned status)
{
    if (status >= STATUS_MAX)
        return STATUS_OTHER;
    unsigned column = atomic_load_explicit(&c->column_of[status], memory_order_relaxed);
    return column ? column : claim_column(c, status);
}

/* ---- Counting ---- */

static void use_slot(struct counts *c, unsigned i)
{
    uint32_t n = atomic_load_explicit(&c->slots, memory_order_relaxed);
    while (n <= i && !atomic_compare_exchange_weak(&c->slots, &n, i + 1))
        ;
}

void metrics_counts_add(struct counts *c, unsigned worker, const struct mk_record *record, bool timed)
{
    unsigned i = worker % SLOTS, column = column_of(c, mk_record_status(record));
    unsigned method = mk_request_method(mk_record_request(record));
    struct slot *s = &c->slot[i];
    use_slot(c, i);
    add(&s->requests[column][method < MK_METHODS ? method : MK_METHOD_UNKNOWN], 1);
    add(&s->endings[mk_record_ending(record) % MK_ENDINGS], 1);
    add(&s->bytes, mk_record_sent(record));
    if (!timed)
        return;
    uint64_t us = mk_record_duration_us(record);
    add(&s->duration_us, us);
    add(&s->buckets[metrics_durations_bucket(us)], 1);
}

/* ---- Sums ---- */

/* The row of a status, created if missing; with too many rows, that of STATUS_OTHER. */
static uint64_t *row_of(struct totals *t, unsigned status)
{
    unsigned i = 0;
    while (i < t->n_rows && t->status[i] < status)
        i++;
    if (i < t->n_rows && t->status[i] == status)
        return t->requests[i];
    if (t->n_rows + (status != STATUS_OTHER) >= TOTAL_ROWS) /* the last row is for STATUS_OTHER */
        return row_of(t, STATUS_OTHER);
    memmove(&t->status[i + 1], &t->status[i], (t->n_rows - i) * sizeof t->status[0]);
    memmove(&t->requests[i + 1], &t->requests[i], (t->n_rows - i) * sizeof t->requests[0]);
    memset(t->requests[i], 0, sizeof t->requests[i]);
    t->status[i] = (uint16_t)status;
    t->n_rows++;
    return t->requests[i];
}

static void sum_column(const struct counts *c, unsigned column, unsigned slots, uint64_t out[MK_METHODS])
{
    for (unsigned i = 0; i < slots; i++)
        for (unsigned m = 0; m < MK_METHODS; m++)
            out[m] += get(&c->slot[i].requests[column][m]);
}

static void sum_slot(const struct slot *s, struct totals *out)
{
    out->bytes += get(&s->bytes);
    out->duration_us += get(&s->duration_us);
    for (unsigned e = 0; e < MK_ENDINGS; e++)
        out->endings[e] += get(&s->endings[e]);
    for (unsigned b = 0; b < BUCKETS; b++)
        out->buckets[b] += get(&s->buckets[b]);
}

void metrics_counts_sum(const struct counts *c, struct totals *out)
{
    unsigned slots = atomic_load_explicit(&c->slots, memory_order_relaxed);
    bool others = false;
    for (unsigned status = 0; status < STATUS_MAX; status++) {
        unsigned column = atomic_load_explicit(&c->column_of[status], memory_order_relaxed);
        others = others || column == STATUS_OTHER;
        if (column > STATUS_OTHER)
            sum_column(c, column, slots, row_of(out, status));
    }
    if (others)
        sum_column(c, STATUS_OTHER, slots, row_of(out, STATUS_OTHER));
    for (unsigned i = 0; i < slots; i++)
        sum_slot(&c->slot[i], out);
}

void metrics_totals_add(const struct totals *t, struct totals *out)
{
    for (unsigned row = 0; row < t->n_rows; row++) {
        uint64_t *to = row_of(out, t->status[row]);
        for (unsigned m = 0; m < MK_METHODS; m++)
            to[m] += t->requests[row][m];
    }
    for (unsigned e = 0; e < MK_ENDINGS; e++)
        out->endings[e] += t->endings[e];
    for (unsigned b = 0; b < BUCKETS; b++)
        out->buckets[b] += t->buckets[b];
    out->bytes += t->bytes;
    out->duration_us += t->duration_us;
}

uint64_t metrics_totals_of_row(const struct totals *t, unsigned row)
{
    uint64_t n = 0;
    for (unsigned m = 0; m < MK_METHODS; m++)
        n += t->requests[row][m];
    return n;
}

uint64_t metrics_totals_of_method(const struct totals *t, unsigned method)
{
    uint64_t n = 0;
    for (unsigned row = 0; row < t->n_rows; row++)
        n += t->requests[row][method];
    return n;
}

uint64_t metrics_totals_requests(const struct totals *t)
{
    uint64_t n = 0;
    for (unsigned m = 0; m < MK_METHODS; m++)
        n += metrics_totals_of_method(t, m);
    return n;
}

void metrics_totals_by_class(const struct totals *t, uint64_t out[CLASSES])
{
    memset(out, 0, CLASSES * sizeof out[0]);
    for (unsigned row = 0; row < t->n_rows; row++)
        out[t->status[row] / 100 % CLASSES] += metrics_totals_of_row(t, row);
}

const char *metrics_method_label(unsigned method)
{
    static const char *const names[MK_METHODS] = {
        [MK_METHOD_UNKNOWN] = "other",   [MK_METHOD_GET] = "GET",         [MK_METHOD_HEAD] = "HEAD",
        [MK_METHOD_POST] = "POST",       [MK_METHOD_PUT] = "PUT",         [MK_METHOD_DELETE] = "DELETE",
        [MK_METHOD_CONNECT] = "CONNECT", [MK_METHOD_OPTIONS] = "OPTIONS", [MK_METHOD_TRACE] = "TRACE",
        [MK_METHOD_PATCH] = "PATCH"};
    return names[method];
}

const char *metrics_status_label(unsigned status, char *room)
{
    if (status == STATUS_OTHER)
        return "other";
    struct mk_buf b = mk_buf_fixed(room, 8);
    mk_buf_add_num(&b, status);
    mk_buf_add_char(&b, '\0');
    return room;
}
