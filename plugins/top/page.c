/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <monkey/clock.h>
#include <monkey/json.h>
#include <time.h>

#include "print.h"

static const struct {
    const char *name, *title;
} views[TOP_VIEWS] = {
    [TOP_BY_HOST] = {"hosts", "HOST"},       [TOP_BY_ROUTE] = {"routes", "ROUTE"},
    [TOP_BY_CLIENT] = {"clients", "CLIENT"}, [TOP_BY_BACKEND] = {"backends", "BACKEND"},
    [TOP_LIST_SLOW] = {"slow", "REQUEST"},   [TOP_LIST_FAILED] = {"failed", "REQUEST"},
    [TOP_LIST_OPEN] = {"open", "REQUEST"},
};

static const char *const columns[TOP_COLUMNS] = {
    [TOP_RATE] = "rate", [TOP_REQUESTS] = "requests", [TOP_FAILED] = "failed", [TOP_IN_FLIGHT] = "open",
    [TOP_MEAN] = "mean", [TOP_MAX] = "max",           [TOP_BYTES] = "bytes",   [TOP_NAME] = "name",
};

const char *top_page_view_name(enum top_view view)
{
    return views[view].name;
}

const char *top_page_column_name(enum top_column column)
{
    return columns[column];
}

/* ---- Options ---- */

bool top_page_set_view(void *ctx, mk_str value)
{
    struct top_page *p = ctx;
    for (unsigned i = 0; i < TOP_VIEWS; i++)
        if (mk_str_eq(value, mk_str_from_c(views[i].name))) {
            p->view = (enum top_view)i;
            return true;
        }
    return false;
}

bool top_page_set_sort(void *ctx, mk_str value)
{
    struct top_page *p = ctx;
    for (unsigned i = 0; i < TOP_COLUMNS; i++)
        if (mk_str_eq(value, mk_str_from_c(columns[i]))) {
            p->sort = (enum top_column)i;
            return true;
        }
    return false;
}

bool top_page_set_limit(void *ctx, mk_str value)
{
    struct top_page *p = ctx;
    return mk_num_parse(value, &p->limit) && p->limit > 0;
}

bool top_page_set_json(void *ctx, mk_str value)
{
    struct top_page *p = ctx;
    (void)value;
    return p->is_json = true;
}

/* ---- Text ---- */

/* Clients control this text: only printable ASCII characters reach the terminal. */
static void append_safe(struct mk_buf *out, mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c >= ' ' && c <= '~' && c != '\\')
            mk_buf_add_char(out, (char)c);
        else
            mk_buf_addf(out, "\\x%02x", c);
    }
}

/* Two arguments of the format "%llu.%llu": a number with one decimal. */
static unsigned long long tenths(double n)
{
    return n > 0 && n < 1e15 ? (unsigned long long)(n * 10 + 0.5) : 0;
}
#define TENTHS_ARG(n) tenths(n) / 10, tenths(n) % 10

static void append_bytes(struct mk_buf *out, double n)
{
    static const char units[] = " KMGTPE";
    unsigned unit = 0;
    for (; n >= 1000 && unit < sizeof units - 2; unit++)
        n /= 1024;
    if (unit)
        mk_buf_addf(out, "%6llu.%llu%c", TENTHS_ARG(n), units[unit]);
    else
        mk_buf_addf(out, "%9llu", tenths(n) / 10);
}

void top_page_append_time(struct mk_buf *out, uint64_t ms)
{
    char buf[16];
    struct tm t;
    time_t s = (time_t)(ms / 1000);
    if (localtime_r(&s, &t) && strftime(buf, sizeof buf, "%H:%M:%S", &t))
        mk_buf_add(out, mk_str_from_c(buf));
    else
        mk_buf_add(out, MK_STR("--:--:--"));
}

static void append_summary(const struct top_page *p, struct mk_buf *out)
{
    const struct top_row *total = &p->stats.total;
    mk_buf_add(out, MK_STR("monkey top "));
    top_page_append_time(out, p->stats.now_ms);
    mk_buf_addf(out, "  %llu.%llu requests/s, %llu.%llu failed/s, %llu in flight, ", TENTHS_ARG(total->rate),
                TENTHS_ARG(total->failed_rate), (unsigned long long)total->in_flight);
    char text[32];
    struct mk_buf bytes = mk_buf_fixed(text, sizeof text);
    append_bytes(&bytes, total->bytes_rate);
    mk_buf_add(out, mk_str_trim(mk_buf_str(&bytes)));
    mk_buf_addf(out, " bytes/s, last %llu.%llu s\n", TENTHS_ARG((double)p->options.filter.last_ms / 1000));
}

static void append_row(const struct top_row *r, struct mk_buf *out)
{
    double mean_us = r->requests ? r->total_us / (double)r->requests : 0;
    mk_buf_addf(out, "%7llu.%llu %8llu %7llu %5llu %8llu.%llu %8llu.%llu ", TENTHS_ARG(r->rate),
                (unsigned long long)r->requests, (unsigned long long)r->failed,
                (unsigned long long)r->in_flight, TENTHS_ARG(mean_us / 1000),
                TENTHS_ARG((double)r->max_us / 1000));
    append_bytes(out, r->bytes_rate);
    mk_buf_add(out, MK_STR("  "));
    append_safe(out, mk_str_of(r->name, r->name_len));
    mk_buf_add_char(out, '\n');
}

static void append_word(struct mk_buf *out, const char *name, mk_str text)
{
    if (!text.len)
        return;
    mk_buf_addf(out, " %s=", name);
    append_safe(out, text);
}

static void append_request(const struct top_page *p, const struct top_entry *e, struct mk_buf *out)
{
    const struct mk_recorder_record *r = &e->record;
    uint64_t now_ms = p->stats.now_ms, age_ms = r->began_ms < now_ms ? now_ms - r->began_ms : 0;
    char text[64];
    struct mk_buf client = mk_buf_fixed(text, sizeof text);
    struct mk_addr address = r->client;
    address.port = 0;
    mk_addr_format(&address, &client);
    top_page_append_time(out, r->began_ms);
    if (r->state == MK_RECORDER_ENDED)
        mk_buf_addf(out, " %6u %11.1f ", r->status, (double)r->duration_us / 1000);
    else
        mk_buf_addf(out, " %6s %11.1f ", r->state == MK_RECORDER_OPEN ? "open" : "lost", (double)age_ms);
    mk_buf_addf(out, "%-15.*s %s ", MK_STR_ARG(mk_buf_str(&client)), top_print_method(r->method));
    append_safe(out, e->text[MK_RECORDER_HOST]);
    append_safe(out, e->text[MK_RECORDER_PATH]);
    if (e->is_path_cut)
        mk_buf_add(out, MK_STR("..."));
    append_word(out, "upstream", e->text[MK_RECORDER_UPSTREAM]);
    append_word(out, "reason", e->text[MK_RECORDER_REASON]);
    mk_buf_add_char(out, '\n');
}

static bool is_list(const struct top_page *p)
{
    return p->view >= TOP_LIST_SLOW;
}

void top_page_append_head(struct top_page *p, struct mk_buf *out)
{
    append_summary(p, out);
    if (is_list(p)) {
        mk_buf_addf(out, "%-8s %6s %11s %-15s %s\n", "TIME", "STATUS", "MS", "CLIENT", views[p->view].title);
        return;
    }
    top_stats_sort(&p->stats, p->sort);
    mk_buf_addf(out, "%9s %8s %7s %5s %10s %10s %9s  %s\n", "REQ/S", "REQUESTS", "FAILED", "OPEN", "MEAN MS",
                "MAX MS", "BYTES/S", views[p->view].title);
}

static size_t count_all_lines(const struct top_page *p)
{
    return is_list(p) ? p->stats.n_list : p->stats.n_rows;
}

size_t top_page_count_lines(const struct top_page *p)
{
    size_t n = count_all_lines(p);
    return p->limit && p->limit < n ? (size_t)p->limit : n;
}

void top_page_append_line(const struct top_page *p, size_t i, struct mk_buf *out)
{
    if (is_list(p))
        append_request(p, &p->stats.list[i], out);
    else
        append_row(&p->stats.rows[i], out);
}

/* ---- JSON ---- */

/* Without mk_json_fixed(), which programs with MK_SMALL_LIBC lack. */
static void write_rate(struct mk_json_writer *w, const char *key, double rate)
{
    char text[32];
    uint64_t thousandths = (uint64_t)(rate * 1000 + 0.5);
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    mk_buf_addf(&out, "%llu.%03u", (unsigned long long)(thousandths / 1000), (unsigned)(thousandths % 1000));
    mk_json_raw(mk_json_key(w, key), mk_buf_str(&out));
}

static void write_numbers(struct mk_json_writer *w, const struct top_row *r)
{
    double mean_us = r->requests ? r->total_us / (double)r->requests : 0;
    mk_json_uint(mk_json_key(w, "requests"), r->requests);
    mk_json_uint(mk_json_key(w, "failed"), r->failed);
    mk_json_uint(mk_json_key(w, "open"), r->in_flight);
    write_rate(w, "requests_per_second", r->rate);
    write_rate(w, "failed_per_second", r->failed_rate);
    write_rate(w, "bytes_per_second", r->bytes_rate);
    mk_json_uint(mk_json_key(w, "mean_us"), (uint64_t)mean_us);
    mk_json_uint(mk_json_key(w, "max_us"), r->max_us);
}

static void write_row(const struct top_page *p, size_t i, struct mk_json_writer *w)
{
    if (is_list(p)) {
        top_print_json(&p->stats.list[i], w);
        return;
    }
    const struct top_row *r = &p->stats.rows[i];
    mk_json_begin_object(w);
    mk_json_string(mk_json_key(w, "name"), mk_str_of(r->name, r->name_len));
    write_numbers(w, r);
    mk_json_end_object(w);
}

void top_page_append_json(struct top_page *p, struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    size_t n = top_page_count_lines(p);
    if (!is_list(p))
        top_stats_sort(&p->stats, p->sort);
    mk_json_begin_object(&w);
    mk_json_uint(mk_json_key(&w, "time_ms"), p->stats.now_ms);
    mk_json_uint(mk_json_key(&w, "last_ms"), p->options.filter.last_ms);
    mk_json_begin_object(mk_json_key(&w, "total"));
    write_numbers(&w, &p->stats.total);
    mk_json_end_object(&w);
    mk_json_cstr(mk_json_key(&w, "by"), views[p->view].name);
    mk_json_uint(mk_json_key(&w, "n_rows"), count_all_lines(p));
    mk_json_begin_array(mk_json_key(&w, "rows"));
    for (size_t i = 0; i < n; i++)
        write_row(p, i, &w);
    mk_json_end_array(&w);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

/* ---- Reading ---- */

const char *top_page_read(struct top_page *p, const struct top_recording *from, bool *is_missing)
{
    return top_stats_read(&p->stats, from, p->view, &p->options.filter, mk_clock_unix_ms(), is_missing);
}
