/* SPDX-License-Identifier: Apache-2.0 */
#include "request_counts.h"

enum { BYTES, DURATION }; /* the cells of a host */

static const struct mk_stat_metric requests[] = {
    {.name = "monkey_http_requests_total", .help = "Finished requests; code 0: no response was started."},
};
static const struct mk_stat_table requests_table = {.name = "http_requests",
                                                    .labels = {"host", "method", "code"},
                                                    .metrics = requests,
                                                    .n_metrics = MK_LEN(requests)};

static const struct mk_stat_metric outcomes[] = {
    {.name = "monkey_http_outcomes_total", .help = "Requests by outcome."},
};
static const struct mk_stat_table outcomes_table = {.name = "http_outcomes",
                                                    .labels = {"host", "outcome"},
                                                    .metrics = outcomes,
                                                    .n_metrics = MK_LEN(outcomes)};

static const struct mk_stat_metric hosts[] = {
    {.name = "monkey_http_response_bytes_total", .help = "Bytes of response bodies sent."},
    {.name = "monkey_http_request_duration_seconds",
     .help = "Time from the end of the request head to the end of the request, without event streams of the "
             "live page.",
     .kind = MK_STAT_FINE_HISTOGRAM},
};
static const struct mk_stat_table hosts_table = {
    .name = "http_hosts", .labels = {"host"}, .metrics = hosts, .n_metrics = MK_LEN(hosts)};

static const struct mk_stat_metric loop[] = {
    {.name = "monkey_event_loop_iteration_seconds",
     .help = "Duration of the iterations of the event loop; other events of the worker wait meanwhile.",
     .kind = MK_STAT_HISTOGRAM},
};
static const struct mk_stat_table loop_table = {
    .name = "event_loop", .metrics = loop, .n_metrics = MK_LEN(loop)};

bool metrics_request_counts_init(struct counts *c, struct mk_config *config)
{
    c->registry = mk_config_statistics(config);
    if (!c->registry)
        return false;
    c->requests = mk_stat_register_table(c->registry, &requests_table);
    c->outcomes = mk_stat_register_table(c->registry, &outcomes_table);
    c->hosts = mk_stat_register_table(c->registry, &hosts_table);
    c->loop = mk_stat_series(c->registry, mk_stat_register_table(c->registry, &loop_table), NULL);
    return true;
}

static void create_host_series(struct counts *c, struct mk_config *config, struct label *l)
{
    l->host = mk_stat_series(c->registry, c->hosts, &l->name);
    bool is_full = !l->host;
    for (unsigned e = 0; e < OUTCOMES; e++) {
        const mk_str values[] = {l->name, mk_str_from_c(mk_outcome_name((enum mk_outcome)e))};
        l->outcomes[e] = mk_stat_series(c->registry, c->outcomes, values);
        is_full |= !l->outcomes[e];
    }
    if (is_full && !c->is_full)
        mk_config_warn(config, NULL, NULL,
                       "too many metrics (%d series): requests of `%.*s` and hosts after it are not counted",
                       MK_STAT_SERIES_MAX, MK_STR_ARG(l->name));
    c->is_full |= is_full;
}

struct label *metrics_request_counts_label(struct counts *c, struct mk_config *config, mk_str name)
{
    struct label **at = &c->labels;
    while (*at && !mk_str_eq((*at)->name, name))
        at = &(*at)->next;
    if (*at)
        return *at;
    struct label *l = mk_config_alloc(config, sizeof *l);
    if (!l || !(l->name = mk_config_copy(config, name)).p)
        return NULL;
    l->index = c->n_labels++;
    create_host_series(c, config, l);
    return *at = l;
}

/* ---- Counting ---- */

/* The counts of a status. */
struct seen {
    unsigned status;
    uint64_t *cells[METHODS]; /* NULL: not counted yet */
};

/* The counts of a label. */
struct counter {
    uint64_t *host, *outcomes[OUTCOMES];
    struct seen *seen;
    unsigned n, room;
};

struct counters {
    struct mk_worker *worker;
    const struct counts *counts;
    bool has_complained;
    uint64_t lost; /* number of requests that had no series left */
    struct counter of[];
};

struct counters *metrics_counters_new(struct mk_worker *w, const struct counts *c)
{
    struct counters *all = mk_mem_zalloc(1, sizeof *all + c->n_labels * sizeof all->of[0]);
    if (!all)
        return NULL;
    all->worker = w;
    all->counts = c;
    mk_worker_measure_loop(w, mk_worker_cells(w, c->loop));
    for (const struct label *l = c->labels; l; l = l->next) {
        struct counter *of = &all->of[l->index];
        of->host = mk_worker_cells(w, l->host);
        for (unsigned e = 0; e < OUTCOMES; e++)
            of->outcomes[e] = mk_worker_cells(w, l->outcomes[e]);
    }
    return all;
}

void metrics_counters_free(struct counters *c)
{
    if (c)
        mk_worker_measure_loop(c->worker, NULL);
    for (unsigned i = 0; c && i < c->counts->n_labels; i++)
        mk_mem_free(c->of[i].seen);
    mk_mem_free(c);
}

/* Returns NULL if out of memory. */
static struct seen *add_seen_status(struct counter *c, unsigned status)
{
    if (c->n == c->room) {
        struct seen *more = mk_mem_realloc(c->seen, (c->room + 8) * sizeof *more);
        if (!more)
            return NULL;
        c->seen = more;
        c->room += 8;
    }
    c->seen[c->n] = (struct seen){.status = status};
    return &c->seen[c->n++];
}

static struct seen *find_or_add_status(struct counter *c, unsigned status)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->seen[i].status == status)
            return &c->seen[i];
    return c->n >= STATUSES && status != STATUS_OTHER ? find_or_add_status(c, STATUS_OTHER)
                                                      : add_seen_status(c, status);
}

/* Increments a cell of a series that is known to have cells, so it needs no check. */
static inline void increment_cell(uint64_t *cell, uint64_t n)
{
    __atomic_store_n(cell, *cell + n, __ATOMIC_RELAXED);
}

/* Returns NULL while another worker creates the series; the next request retries. */
static uint64_t *find_cell(struct counters *all, const struct label *l, unsigned status, unsigned method)
{
    char buf[8];
    const struct counts *c = all->counts;
    const mk_str values[] = {l->name, mk_str_from_c(metrics_method_label(method)),
                             mk_str_from_c(metrics_status_label(status, buf))};
    uint32_t series = mk_stat_series(c->registry, c->requests, values);
    if (series == MK_STAT_RETRY)
        return NULL;
    uint64_t *cell = mk_worker_cells(all->worker, series);
    if (!cell && !all->has_complained)
        mk_worker_log(all->worker, MK_LOG_WARN,
                      "metrics: too many metrics (%d series): some requests are not counted",
                      MK_STAT_SERIES_MAX);
    all->has_complained |= !cell;
    return cell ? cell : &all->lost;
}

void metrics_counters_add(struct counters *all, const struct label *l, const struct mk_access_record *record,
                          bool timed)
{
    struct counter *c = &all->of[l->index];
    unsigned method = mk_request_method(mk_access_record_request(record)),
             status = mk_access_record_status(record);
    struct seen *s = c->n && c->seen[0].status == status ? c->seen : find_or_add_status(c, status);
    method = method < METHODS ? method : MK_METHOD_UNKNOWN;
    if (s && !s->cells[method])
        s->cells[method] = find_cell(all, l, s->status, method);
    if (s && s->cells[method])
        increment_cell(s->cells[method], 1);
    if ((unsigned)mk_access_record_outcome(record) < OUTCOMES)
        mk_stat_add(c->outcomes[mk_access_record_outcome(record)], 1);
    if (!c->host)
        return;
    increment_cell(&c->host[BYTES], mk_access_record_sent(record));
    if (!timed)
        return;
    uint64_t us = mk_access_record_duration_us(record);
    increment_cell(&c->host[DURATION + mk_stat_fine_bucket(us)], 1);
    increment_cell(&c->host[DURATION + BUCKETS], us);
}

/* ---- Sums ---- */

/* Returns the row of a status, and creates it if missing. If there are too many rows, returns that of
 * STATUS_OTHER. */
static uint64_t *find_or_add_row(struct totals *t, unsigned status)
{
    unsigned i = 0;
    while (i < t->n_rows && t->status[i] < status)
        i++;
    if (i < t->n_rows && t->status[i] == status)
        return t->requests[i];
    if (t->n_rows + (status != STATUS_OTHER) >= TOTAL_ROWS) /* the last row is reserved for STATUS_OTHER */
        return find_or_add_row(t, STATUS_OTHER);
    memmove(&t->status[i + 1], &t->status[i], (t->n_rows - i) * sizeof t->status[0]);
    memmove(&t->requests[i + 1], &t->requests[i], (t->n_rows - i) * sizeof t->requests[0]);
    memset(t->requests[i], 0, sizeof t->requests[i]);
    t->status[i] = (uint16_t)status;
    t->n_rows++;
    return t->requests[i];
}

static unsigned parse_method_label(mk_str label)
{
    for (unsigned m = 0; m < METHODS; m++)
        if (mk_str_eq(label, mk_str_from_c(metrics_method_label(m))))
            return m;
    return MK_METHOD_UNKNOWN;
}

static unsigned parse_status_label(mk_str label)
{
    uint64_t n;
    return mk_num_parse(label, &n) ? (unsigned)n : STATUS_OTHER;
}

void metrics_request_counts_sum(const struct counts *c, const struct label *l, struct totals *out)
{
    const struct mk_stat_registry *r = c->registry;
    for (uint32_t s = 0; (s = mk_stat_next(r, c->requests, s));)
        if (mk_str_eq(mk_stat_label(r, s, 0), l->name))
            find_or_add_row(out, parse_status_label(
                                     mk_stat_label(r, s, 2)))[parse_method_label(mk_stat_label(r, s, 1))] +=
                mk_stat_sum(r, s, 0);
    for (unsigned e = 0; e < OUTCOMES; e++)
        out->outcomes[e] += mk_stat_sum(r, l->outcomes[e], 0);
    out->bytes += mk_stat_sum(r, l->host, BYTES);
    for (unsigned b = 0; b < BUCKETS; b++)
        out->buckets[b] += mk_stat_sum(r, l->host, DURATION + b);
    out->duration_us += mk_stat_sum(r, l->host, DURATION + BUCKETS);
}

void metrics_totals_add(const struct totals *t, struct totals *out)
{
    for (unsigned row = 0; row < t->n_rows; row++) {
        uint64_t *to = find_or_add_row(out, t->status[row]);
        for (unsigned m = 0; m < METHODS; m++)
            to[m] += t->requests[row][m];
    }
    for (unsigned e = 0; e < OUTCOMES; e++)
        out->outcomes[e] += t->outcomes[e];
    for (unsigned b = 0; b < BUCKETS; b++)
        out->buckets[b] += t->buckets[b];
    out->bytes += t->bytes;
    out->duration_us += t->duration_us;
}

uint64_t metrics_totals_row_sum(const struct totals *t, unsigned row)
{
    uint64_t n = 0;
    for (unsigned m = 0; m < METHODS; m++)
        n += t->requests[row][m];
    return n;
}

uint64_t metrics_totals_method_sum(const struct totals *t, unsigned method)
{
    uint64_t n = 0;
    for (unsigned row = 0; row < t->n_rows; row++)
        n += t->requests[row][method];
    return n;
}

uint64_t metrics_totals_requests(const struct totals *t)
{
    uint64_t n = 0;
    for (unsigned m = 0; m < METHODS; m++)
        n += metrics_totals_method_sum(t, m);
    return n;
}

void metrics_totals_sum_by_class(const struct totals *t, uint64_t out[CLASSES])
{
    memset(out, 0, CLASSES * sizeof out[0]);
    for (unsigned row = 0; row < t->n_rows; row++)
        out[t->status[row] / 100 % CLASSES] += metrics_totals_row_sum(t, row);
}

const char *metrics_method_label(unsigned method)
{
    static const char *const names[METHODS] = {
        [MK_METHOD_UNKNOWN] = "other",   [MK_METHOD_GET] = "GET",         [MK_METHOD_HEAD] = "HEAD",
        [MK_METHOD_POST] = "POST",       [MK_METHOD_PUT] = "PUT",         [MK_METHOD_DELETE] = "DELETE",
        [MK_METHOD_CONNECT] = "CONNECT", [MK_METHOD_OPTIONS] = "OPTIONS", [MK_METHOD_TRACE] = "TRACE",
        [MK_METHOD_PATCH] = "PATCH"};
    return names[method];
}

const char *metrics_status_label(unsigned status, char *buf)
{
    if (status == STATUS_OTHER)
        return "other";
    struct mk_buf b = mk_buf_fixed(buf, 8);
    mk_buf_add_num(&b, status);
    mk_buf_add_char(&b, '\0');
    return buf;
}
