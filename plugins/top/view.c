/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/text.h>
#include <string.h>
#include <unistd.h>

#include "page.h"
#include "remote.h"
#include "screen.h"

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MIN_MS = 100,
    INTERVAL_MAX_MS = 3600000,
    TEXT_MAX = 512 << 20, /* of a JSON document: a recording may have a million clients */
    ROWS_MAX = 1000       /* of a page of the control socket */
};

struct top {
    struct top_page page;
    const char *socket; /* NULL: reads a file */
    uint64_t interval_ms;
    bool once, paused;
    struct mk_buf text; /* the last page */
    char error[TOP_REMOTE_ERROR_MAX];
};

static int print_usage(FILE *to, int code)
{
    fputs("usage: monkey top [OPTION...] [FILE]\n"
          "\n"
          "Shows the requests per second by host, route, client or backend, and slow, failed and open "
          "requests, from the\n"
          "recording of the plugin recorder in FILE (" MK_RECORDER_FILE "), or from a running server.\n"
          "\n"
          "      --socket PATH        ask the server at this control socket, not FILE\n"
          "      --by VIEW            hosts (default), routes, clients, backends, slow, failed or open\n"
          "      --sort COLUMN        rate (default), requests, failed, open, mean, max, bytes or name\n"
          "  -l, --last DURATION      statistics of the last 10s (default), 500ms or 5m\n"
          "      --interval DURATION  time between two updates: 1s (default)\n"
          "  -n, --limit N            show only the first N\n"
          "  -j, --json               print a JSON document for each update, on one line\n"
          "      --once               print one page or document, as without a terminal\n"
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

static bool set_interval(void *ctx, mk_str value)
{
    struct top *t = MK_CONTAINER(ctx, struct top, page);
    return top_filter_parse_ms(value, &t->interval_ms) && t->interval_ms >= INTERVAL_MIN_MS &&
           t->interval_ms <= INTERVAL_MAX_MS;
}

static bool set_once(void *ctx, mk_str value)
{
    struct top *t = MK_CONTAINER(ctx, struct top, page);
    (void)value;
    return t->once = true;
}

static bool set_socket(void *ctx, mk_str value)
{
    struct top *t = MK_CONTAINER(ctx, struct top, page);
    t->socket = value.p;
    return value.len > 0;
}

static const struct top_option own_options[] = {
    TOP_PAGE_OPTIONS,
    {"--interval", "", true, set_interval},
    {"--once", "", false, set_once},
    {"--socket", "", true, set_socket},
};

/* ---- Reading ---- */

static size_t min_rows(const struct top_page *p, size_t rows)
{
    return p->limit && p->limit < rows ? (size_t)p->limit : rows;
}

/* Reads a page of at most `rows` rows, or a document, from the control socket. */
static bool read_remote(struct top *t, size_t rows, unsigned tries)
{
    char buf[TOP_REMOTE_TARGET_MAX];
    struct mk_buf target = mk_buf_fixed(buf, sizeof buf);
    const struct top_page *p = &t->page;
    mk_buf_addf(&target, "/top?%sby=%s&sort=%s&limit=%zu", p->is_json ? "" : "format=text&",
                top_page_view_name(p->view), top_page_column_name(p->sort), min_rows(p, rows));
    mk_buf_add(&target, mk_buf_str(&p->options.query));
    return top_remote_get(t->socket, &target, tries, &t->text, t->error);
}

static bool read_statistics(struct top *t)
{
    const struct top_recording from = {.path = t->page.options.path};
    bool is_missing;
    const char *error = top_page_read(&t->page, &from, &is_missing);
    if (error && t->once)
        (void)top_options_report(&t->page.options, from.path, error, is_missing);
    if (error)
        snprintf(t->error, sizeof t->error, "%s: %s", error, from.path);
    return !error;
}

/* Reads the page for a screen. On failure, the page has the error. */
static void read_screen(struct top *t, size_t rows)
{
    mk_buf_clear(&t->text);
    bool ok = t->socket ? read_remote(t, rows < ROWS_MAX ? rows : ROWS_MAX, 1) : read_statistics(t);
    if (ok && !t->socket) {
        size_t n = min_rows(&t->page, top_page_count_lines(&t->page));
        top_page_append_head(&t->page, &t->text);
        for (size_t i = 0; i < n && i < rows; i++)
            top_page_append_line(&t->page, i, &t->text);
    }
    if (ok)
        return;
    mk_buf_clear(&t->text);
    mk_buf_add(&t->text, MK_STR("monkey top "));
    top_page_append_time(&t->text, mk_clock_unix_ms());
    mk_buf_add(&t->text, MK_STR("\nerror: "));
    mk_log_escape(&t->text, mk_str_from_c(t->error));
    mk_buf_add_char(&t->text, '\n');
}

/* ---- Output ---- */

static bool print_text(struct top *t)
{
    bool ok = !t->text.failed && top_remote_print("top", mk_buf_str(&t->text));
    if (t->text.failed)
        fputs("monkey top: out of memory\n", stderr);
    mk_buf_clear(&t->text);
    return ok;
}

/* Prints line by line: there may be a million clients. */
static bool print_rows(struct top *t)
{
    size_t n = top_page_count_lines(&t->page);
    top_page_append_head(&t->page, &t->text);
    bool ok = print_text(t);
    for (size_t i = 0; ok && i < n; i++) {
        top_page_append_line(&t->page, i, &t->text);
        ok = print_text(t);
    }
    return ok;
}

static bool print_update(struct top *t)
{
    mk_buf_clear(&t->text);
    if (t->socket) {
        if (read_remote(t, ROWS_MAX, TOP_REMOTE_TRIES))
            return print_text(t);
        fprintf(stderr, "monkey top: %s\n", t->error);
        return false;
    }
    if (!read_statistics(t))
        return false;
    if (!t->page.is_json)
        return print_rows(t);
    top_page_append_json(&t->page, &t->text);
    return print_text(t);
}

static int print_updates(struct top *t, bool once)
{
    t->once = true;
    while (print_update(t)) {
        if (once)
            return 0;
        usleep((useconds_t)t->interval_ms * 1000);
    }
    return TOP_FAILURE;
}

/* ---- The screen ---- */

static void append_tabs(const struct top *t, struct mk_buf *out)
{
    for (unsigned i = 0; i < TOP_VIEWS; i++)
        mk_buf_addf(out, i == t->page.view ? "[%u %s]" : " %u %s ", i + 1,
                    top_page_view_name((enum top_view)i));
    mk_buf_addf(out, "  q quit  s sort by: %s  space %s\n", top_page_column_name(t->page.sort),
                t->paused ? "continue" : "pause");
}

/* Adds the tabs to the page. */
static bool show_page(const struct top *t)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    mk_str rest = mk_buf_str(&t->text);
    mk_buf_add(&out, mk_str_cut(&rest, '\n'));
    mk_buf_addf(&out, "%s\n", t->paused ? "  [paused]" : "");
    if (mk_str_starts(rest, MK_STR("error: "))) {
        mk_buf_add(&out, mk_str_cut(&rest, '\n'));
        mk_buf_add_char(&out, '\n');
    }
    append_tabs(t, &out);
    if (rest.len) {
        mk_buf_add_char(&out, TOP_REVERSED);
        mk_buf_add(&out, rest);
    }
    bool ok = top_screen_show(mk_buf_str(&out));
    mk_buf_free(&out);
    return ok;
}

/* Returns false to quit. */
static bool handle_key(struct top *t, char key)
{
    enum { VIEWS = TOP_VIEWS };
    struct top_page *p = &t->page;
    if (key == 'q' || key == 'Q')
        return false;
    if (key >= '1' && key < '1' + VIEWS)
        p->view = (enum top_view)(key - '1');
    else if (key == '\t' || key == '>')
        p->view = (enum top_view)((p->view + 1) % VIEWS);
    else if (key == '<')
        p->view = (enum top_view)((p->view + VIEWS - 1) % VIEWS);
    else if (key == 's')
        p->sort = (enum top_column)((p->sort + 1) % TOP_COLUMNS);
    else if (key == ' ')
        t->paused = !t->paused;
    return true;
}

static void run_screen(struct top *t)
{
    bool must_read = true;
    uint64_t next_ms = 0;
    for (;;) {
        unsigned width, height;
        top_screen_size(&width, &height);
        if (must_read) {
            read_screen(t, height);
            next_ms = mk_clock_ms() + t->interval_ms;
        }
        if (!show_page(t))
            return;
        char key = 0;
        uint64_t now_ms = mk_clock_ms();
        enum top_view view = t->page.view;
        enum top_column sort = t->page.sort;
        enum top_event event = top_screen_wait(next_ms > now_ms ? (unsigned)(next_ms - now_ms) : 0, &key);
        if (event == TOP_QUIT || (event == TOP_KEY && !handle_key(t, key)))
            return;
        bool is_due = mk_clock_ms() >= next_ms;
        if (is_due && t->paused)
            next_ms = mk_clock_ms() + t->interval_ms;
        must_read =
            t->page.view != view || t->page.sort != sort || event == TOP_RESIZED || (is_due && !t->paused);
    }
}

static int show_screen(struct top *t)
{
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

/* A failure of the first reading ends the program before it changes the screen. */
static bool is_readable(struct top *t)
{
    t->once = true;
    if (!t->socket)
        return read_statistics(t);
    bool ok = read_remote(t, ROWS_MAX, TOP_REMOTE_TRIES);
    if (!ok)
        fprintf(stderr, "monkey top: %s\n", t->error);
    return ok;
}

static int run_top(struct top *t)
{
    bool once = t->once, has_screen = !t->page.is_json && !once && top_screen_is_possible();
    if (t->socket && t->page.options.has_path) {
        fputs("monkey top: expected --socket or FILE, not both\n", stderr);
        return TOP_USAGE;
    }
    if (!has_screen)
        return print_updates(t, once || !t->page.is_json);
    return is_readable(t) ? show_screen(t) : TOP_FAILURE;
}

int top_view_run(int argc, char **argv)
{
    struct top t = {.page = {.options = {.command = "top",
                                         .print_usage = print_usage,
                                         .own = own_options,
                                         .n_own = MK_LEN(own_options),
                                         .path = MK_RECORDER_FILE,
                                         .filter = {.last_ms = TOP_LAST_MS},
                                         .query = mk_buf_growing(TOP_REMOTE_TARGET_MAX)}},
                    .interval_ms = INTERVAL_MS,
                    .text = mk_buf_growing(TEXT_MAX)};
    t.page.options.ctx = &t.page;
    int code = top_options_read(&t.page.options, argc, argv);
    if (code == TOP_CONTINUE)
        code = run_top(&t);
    top_stats_free(&t.page.stats);
    mk_buf_free(&t.page.options.query);
    mk_buf_free(&t.text);
    return code;
}
