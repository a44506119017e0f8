/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <string.h>
#include <time.h>

#include "options.h"
#include "print.h"
#include "screen.h"
#include "stats.h"

enum {
    LAST_MS = 10000,
    INTERVAL_MS = 1000,
    INTERVAL_MIN_MS = 100,
    INTERVAL_MAX_MS = 3600000,
    PAGE_MAX = 4 << 20
};

struct top {
    struct top_options options;
    enum top_view view;
    enum top_column sort;
    uint64_t interval_ms, limit; /* limit 0: none */
    bool once, paused;
    const char *error; /* of the last reading */
    struct top_stats stats;
};

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

static int print_usage(FILE *to, int code)
{
    fputs("usage: monkey top [OPTION...] [FILE]\n"
          "\n"
          "Shows the requests per second by host, route, client or backend, and slow, failed and open "
          "requests, from the\n"
          "recording of the plugin recorder in FILE (" MK_RECORDER_FILE ").\n"
          "\n"
          "      --by VIEW            hosts (default), routes, clients, backends, slow, failed or open\n"
          "      --sort COLUMN        rate (default), requests, failed, open, mean, max, bytes or name\n"
          "  -l, --last DURATION      statistics of the last 10s (default), 500ms or 5m\n"
          "      --interval DURATION  time between two updates: 1s (default)\n"
          "  -n, --limit N            show only the first N\n"
          "      --once               print one plain page, as without a terminal\n"
          "  -h, --help               this text\n"
          "\n"
          "Only requests for which all given conditions hold are counted:\n"
          "\n" TOP_OPTIONS_HELP "\n"
          "Keys: 1 to 7, Tab or arrows choose a view, s the column to sort by, space pauses, and q quits.\n"
          "Exit codes: 0 success, 1 failure, 2 wrong usage.\n",
          to);
    return code;
}

/* ---- Options ---- */

static bool set_view(void *ctx, mk_str value)
{
    struct top *t = ctx;
    for (unsigned i = 0; i < TOP_VIEWS; i++)
        if (mk_str_eq(value, mk_str_from_c(views[i].name))) {
            t->view = (enum top_view)i;
            return true;
        }
    return false;
}

static bool set_sort(void *ctx, mk_str value)
{
    struct top *t = ctx;
    for (unsigned i = 0; i < TOP_COLUMNS; i++)
        if (mk_str_eq(value, mk_str_from_c(columns[i]))) {
            t->sort = (enum top_column)i;
            return true;
        }
    return false;
}

static bool set_interval(void *ctx, mk_str value)
{
    struct top *t = ctx;
    return top_filter_parse_ms(value, &t->interval_ms) && t->interval_ms >= INTERVAL_MIN_MS &&
           t->interval_ms <= INTERVAL_MAX_MS;
}

static bool set_limit(void *ctx, mk_str value)
{
    struct top *t = ctx;
    return mk_num_parse(value, &t->limit) && t->limit > 0;
}

static bool set_once(void *ctx, mk_str value)
{
    struct top *t = ctx;
    (void)value;
    return t->once = true;
}

static const struct top_option own_options[] = {
    {"--by", "", true, set_view},           {"--sort", "", true, set_sort},
    {"--interval", "", true, set_interval}, {"--limit", "-n", true, set_limit},
    {"--once", "", false, set_once},
};

/* ---- Pages ---- */

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

static void append_time(struct mk_buf *out, uint64_t ms)
{
    char buf[16];
    struct tm t;
    time_t s = (time_t)(ms / 1000);
    if (localtime_r(&s, &t) && strftime(buf, sizeof buf, "%H:%M:%S", &t))
        mk_buf_add(out, mk_str_from_c(buf));
    else
        mk_buf_add(out, MK_STR("--:--:--"));
}

static void append_summary(const struct top *t, struct mk_buf *out)
{
    const struct top_row *total = &t->stats.total;
    mk_buf_add(out, MK_STR("monkey top "));
    append_time(out, t->stats.now_ms);
    mk_buf_addf(out, "  %llu.%llu requests/s, %llu.%llu failed/s, %llu in flight, ", TENTHS_ARG(total->rate),
                TENTHS_ARG(total->failed_rate), (unsigned long long)total->in_flight);
    char text[32];
    struct mk_buf bytes = mk_buf_fixed(text, sizeof text);
    append_bytes(&bytes, total->bytes_rate);
    mk_buf_add(out, mk_str_trim(mk_buf_str(&bytes)));
    mk_buf_addf(out, " bytes/s, last %llu.%llu s%s\n", TENTHS_ARG((double)t->options.filter.last_ms / 1000),
                t->paused ? "  [paused]" : "");
    if (!t->error)
        return;
    mk_buf_addf(out, "error: %s: ", t->error);
    append_safe(out, mk_str_from_c(t->options.path));
    mk_buf_add_char(out, '\n');
}

static void append_tabs(const struct top *t, struct mk_buf *out)
{
    for (unsigned i = 0; i < TOP_VIEWS; i++)
        mk_buf_addf(out, i == t->view ? "[%u %s]" : " %u %s ", i + 1, views[i].name);
    mk_buf_addf(out, "  q quit  s sort by: %s  space %s\n", columns[t->sort],
                t->paused ? "continue" : "pause");
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

static void append_request(const struct top *t, const struct top_entry *e, struct mk_buf *out)
{
    const struct mk_recorder_record *r = &e->record;
    uint64_t now_ms = t->stats.now_ms, age_ms = r->began_ms < now_ms ? now_ms - r->began_ms : 0;
    char text[64];
    struct mk_buf client = mk_buf_fixed(text, sizeof text);
    struct mk_addr address = r->client;
    address.port = 0;
    mk_addr_format(&address, &client);
    append_time(out, r->began_ms);
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

static bool is_list(const struct top *t)
{
    return t->view >= TOP_LIST_SLOW;
}

/* Appends all lines above the rows, which are then in order. */
static void append_head(struct top *t, bool has_tabs, struct mk_buf *out)
{
    append_summary(t, out);
    if (has_tabs)
        append_tabs(t, out);
    if (has_tabs)
        mk_buf_add_char(out, TOP_REVERSED);
    if (is_list(t)) {
        mk_buf_addf(out, "%-8s %6s %11s %-15s %s\n", "TIME", "STATUS", "MS", "CLIENT", views[t->view].title);
        return;
    }
    top_stats_sort(&t->stats, t->sort);
    mk_buf_addf(out, "%9s %8s %7s %5s %10s %10s %9s  %s\n", "REQ/S", "REQUESTS", "FAILED", "OPEN", "MEAN MS",
                "MAX MS", "BYTES/S", views[t->view].title);
}

static size_t count_lines(const struct top *t)
{
    size_t n = is_list(t) ? t->stats.n_list : t->stats.n_rows;
    return t->limit && t->limit < n ? (size_t)t->limit : n;
}

static void append_line(const struct top *t, size_t i, struct mk_buf *out)
{
    if (is_list(t))
        append_request(t, &t->stats.list[i], out);
    else
        append_row(&t->stats.rows[i], out);
}

/* ---- Running ---- */

static bool read_recording(struct top *t)
{
    bool is_missing;
    t->error = top_stats_read(&t->stats, t->options.path, t->view, &t->options.filter, mk_clock_unix_ms(),
                              &is_missing);
    if (t->error && t->once)
        (void)top_options_report(&t->options, t->options.path, t->error, is_missing);
    return !t->error;
}

static int print_page(struct top *t)
{
    struct mk_buf out = mk_buf_growing(PAGE_MAX);
    size_t n = count_lines(t);
    append_head(t, false, &out);
    bool ok = !out.failed && fwrite(out.p, 1, out.len, stdout) == out.len;
    for (size_t i = 0; ok && i < n; i++) { /* line by line: there may be a million clients */
        mk_buf_clear(&out);
        append_line(t, i, &out);
        ok = !out.failed && fwrite(out.p, 1, out.len, stdout) == out.len;
    }
    ok = ok && fflush(stdout) == 0;
    if (!ok)
        fprintf(stderr, "monkey top: cannot write: %s\n", out.failed ? "out of memory" : strerror(errno));
    mk_buf_free(&out);
    return ok ? 0 : TOP_FAILURE;
}

static bool show_page(struct top *t)
{
    unsigned width, height;
    struct mk_buf out = mk_buf_growing(PAGE_MAX);
    top_screen_size(&width, &height);
    append_head(t, true, &out);
    size_t n = count_lines(t);
    for (size_t i = 0; i < n && i < height; i++)
        append_line(t, i, &out);
    bool ok = top_screen_show(mk_buf_str(&out));
    mk_buf_free(&out);
    return ok;
}

/* Returns false to quit. */
static bool handle_key(struct top *t, char key)
{
    enum { VIEWS = TOP_VIEWS };
    if (key == 'q' || key == 'Q')
        return false;
    if (key >= '1' && key < '1' + VIEWS)
        t->view = (enum top_view)(key - '1');
    else if (key == '\t' || key == '>')
        t->view = (enum top_view)((t->view + 1) % VIEWS);
    else if (key == '<')
        t->view = (enum top_view)((t->view + VIEWS - 1) % VIEWS);
    else if (key == 's')
        t->sort = (enum top_column)((t->sort + 1) % TOP_COLUMNS);
    else if (key == ' ')
        t->paused = !t->paused;
    return true;
}

static void run_screen(struct top *t)
{
    bool must_read = true;
    uint64_t next_ms = mk_clock_ms();
    for (;;) {
        if (must_read)
            (void)read_recording(t);
        if (must_read)
            next_ms = mk_clock_ms() + t->interval_ms;
        if (!show_page(t))
            return;
        char key = 0;
        uint64_t now_ms = mk_clock_ms();
        enum top_view before = t->view;
        switch (top_screen_wait(next_ms > now_ms ? (unsigned)(next_ms - now_ms) : 0, &key)) {
        case TOP_QUIT:
            return;
        case TOP_KEY:
            if (!handle_key(t, key))
                return;
            break;
        case TOP_TIMEOUT:
        case TOP_RESIZED:
            break;
        }
        bool is_due = mk_clock_ms() >= next_ms;
        if (is_due && t->paused)
            next_ms = mk_clock_ms() + t->interval_ms;
        must_read = t->view != before || (is_due && !t->paused);
    }
}

static int run_top(struct top *t)
{
    bool is_plain = t->once || !top_screen_is_possible();
    t->once = true;
    if (!read_recording(t))
        return TOP_FAILURE;
    if (is_plain)
        return print_page(t);
    t->once = false;
    int e = top_screen_open();
    if (e) {
        fprintf(stderr, "monkey top: cannot use the terminal: %s\n", strerror(-e));
        return TOP_FAILURE;
    }
    run_screen(t);
    top_screen_close();
    return 0;
}

int top_view_run(int argc, char **argv)
{
    struct top t = {.options = {.command = "top",
                                .print_usage = print_usage,
                                .own = own_options,
                                .n_own = MK_LEN(own_options),
                                .path = MK_RECORDER_FILE,
                                .filter = {.last_ms = LAST_MS}},
                    .interval_ms = INTERVAL_MS};
    t.options.ctx = &t;
    int code = top_options_read(&t.options, argc, argv);
    if (code < 0)
        code = run_top(&t);
    top_stats_free(&t.stats);
    return code;
}
