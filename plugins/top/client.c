/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "print.h"

enum { POLL_US = 250000, LINE_MAX_LEN = 16384, CLOCK_ERROR_MS = 60000 };

/* A matching request. */
struct match {
    struct top_entry entry;
    uint64_t order_ms;
};

struct client {
    struct top_options options;
    uint64_t limit; /* print only the last ones; 0: all */
    bool json, follow;
    struct match *matches;
    size_t n, cap;
    bool has_memory;
    struct top_damage damage;
    /* With --follow: the requests that were printed, per slot. */
    uint64_t inode;
    uint64_t printed[MK_RECORDER_SLOTS_MAX], seen[MK_RECORDER_SLOTS_MAX];
    bool only_new, is_old_file;
};

static int print_usage(FILE *to, int code)
{
    fputs("usage: monkey recorder [OPTION...] [FILE]\n"
          "\n"
          "Prints the requests that the plugin recorder has recorded in FILE (" MK_RECORDER_FILE
          "), oldest first.\n"
          "The server need not run. All given conditions must hold:\n"
          "\n"
          "  -l, --last DURATION      ended in the last 500ms, 30s, 5m, 2h or 1d\n" TOP_OPTIONS_HELP "\n"
          "  -n, --limit N            print only the last N\n"
          "  -j, --json               one JSON object per line\n"
          "  -f, --follow             wait for more requests, and print them when they end\n"
          "  -h, --help               this text\n"
          "\n"
          "Exit codes: 0 success, 1 failure, 2 wrong usage.\n",
          to);
    return code;
}

/* ---- Options ---- */

static bool set_limit(void *ctx, mk_str value)
{
    struct client *c = ctx;
    return mk_num_parse(value, &c->limit) && c->limit > 0;
}

static bool set_json(void *ctx, mk_str value)
{
    struct client *c = ctx;
    (void)value;
    return c->json = true;
}

static bool set_follow(void *ctx, mk_str value)
{
    struct client *c = ctx;
    (void)value;
    return c->follow = true;
}

static const struct top_option own_options[] = {
    {"--limit", "-n", true, set_limit},
    {"--json", "-j", false, set_json},
    {"--follow", "-f", false, set_follow},
};

/* ---- Reading ---- */

static bool is_new(struct client *c, const struct top_entry *e)
{
    uint64_t serial = e->end_serial;
    if (serial > c->seen[e->slot] && !c->is_old_file)
        c->seen[e->slot] = serial;
    return !c->only_new || (e->record.state != MK_RECORDER_OPEN && serial > c->printed[e->slot]);
}

static bool collect_entry(void *ctx, const struct top_entry *e)
{
    struct client *c = ctx;
    if (!is_new(c, e) || !top_filter_match(&c->options.filter, e))
        return true;
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 256;
        struct match *more = mk_mem_realloc(c->matches, cap * sizeof *more);
        c->has_memory = more != NULL;
        if (!more)
            return false;
        c->matches = more;
        c->cap = cap;
    }
    c->matches[c->n++].entry = *e;
    return true;
}

/* Requests in flight come first: their serial is 0. */
static int compare_serials(const void *a, const void *b)
{
    const struct top_entry *x = &((const struct match *)a)->entry, *y = &((const struct match *)b)->entry;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->end_serial < y->end_serial ? -1 : x->end_serial > y->end_serial;
}

static int compare_times(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    if (x->order_ms != y->order_ms)
        return x->order_ms < y->order_ms ? -1 : 1;
    return compare_serials(a, b);
}

/* Sorts requests by the time when they ended. The worker reads a clock of low resolution, so the order of the requests of
 * one slot is that of their serials, unless the clock was set back. */
static void sort_matches(struct match *at, size_t n)
{
    if (n == 0)
        return;
    qsort(at, n, sizeof *at, compare_serials);
    for (size_t i = 0; i < n; i++) {
        bool follows = i > 0 && at[i - 1].entry.slot == at[i].entry.slot && at[i - 1].entry.end_serial;
        uint64_t ended = top_entry_ended_ms(&at[i].entry), last = follows ? at[i - 1].order_ms : 0;
        at[i].order_ms = last > ended && last - ended < CLOCK_ERROR_MS ? last : ended;
    }
    qsort(at, n, sizeof *at, compare_times);
}

/* Another file, such as that of a server with a larger recording, has other serials. */
static void note_file(struct client *c, uint64_t inode)
{
    if (inode == c->inode)
        return;
    c->inode = inode;
    memset(c->printed, 0, sizeof c->printed);
    memset(c->seen, 0, sizeof c->seen);
}

/* Reads one file. A missing file is an error unless it is optional. */
static int collect_file(struct client *c, const char *path, bool is_optional)
{
    const struct top_visitor visitor = {.each = collect_entry, .ctx = c};
    struct stat st;
    bool is_missing;
    if (!is_optional && stat(path, &st) == 0)
        note_file(c, st.st_ino);
    c->is_old_file = is_optional;
    const char *error = top_reader_file(path, &visitor, &c->damage, &is_missing);
    if (error && is_missing && (is_optional || c->only_new)) /* it may be replaced just now */
        return 0;
    if (!error && !c->has_memory)
        error = "out of memory";
    return error ? top_options_report(&c->options, path, error, is_missing) : 0;
}

/* ---- Printing ---- */

/* Copying an entry has left its texts in the old copy. */
static void print_entry(const struct client *c, struct top_entry *e)
{
    char buf[LINE_MAX_LEN];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&line);
    (void)top_reader_set_texts(e);
    if (c->json)
        top_print_json(e, &w);
    else
        top_print_line(e, &line);
    mk_buf_add_char(&line, '\n');
    (void)fwrite(line.p, 1, line.len, stdout);
}

static int print_entries(struct client *c)
{
    size_t first = c->limit && c->n > c->limit && !c->only_new ? c->n - (size_t)c->limit : 0;
    sort_matches(c->matches, c->n);
    for (size_t i = first; i < c->n; i++)
        print_entry(c, &c->matches[i].entry);
    c->n = 0;
    memcpy(c->printed, c->seen, sizeof c->printed);
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    fprintf(stderr, "monkey recorder: cannot write: %s\n", strerror(errno));
    return TOP_FAILURE;
}

static void report_damage(const struct client *c)
{
    if (c->damage.torn)
        fprintf(stderr, "monkey recorder: %llu incomplete records were skipped\n",
                (unsigned long long)c->damage.torn);
    if (c->damage.missing)
        fprintf(stderr, "monkey recorder: the file is too short: %llu records are missing\n",
                (unsigned long long)c->damage.missing);
}

static int follow(struct client *c)
{
    int code = 0;
    c->only_new = true;
    while (!code) {
        usleep(POLL_US);
        code = collect_file(c, c->options.path, false);
        if (!code)
            code = print_entries(c);
    }
    return code;
}

static int print_recording(struct client *c)
{
    char old[PATH_MAX];
    int code = collect_file(c, c->options.path, false);
    if (!code && snprintf(old, sizeof old, "%s.1", c->options.path) < (int)sizeof old)
        code = collect_file(c, old, true);
    if (code)
        return code;
    code = print_entries(c);
    report_damage(c);
    return code || !c->follow ? code : follow(c);
}

int top_client_run(int argc, char **argv)
{
    struct client *c = mk_mem_zalloc(1, sizeof *c);
    if (!c) {
        fputs("monkey recorder: out of memory\n", stderr);
        return TOP_FAILURE;
    }
    c->options = (struct top_options){.command = "recorder",
                                      .print_usage = print_usage,
                                      .own = own_options,
                                      .n_own = MK_LEN(own_options),
                                      .ctx = c,
                                      .path = MK_RECORDER_FILE};
    c->has_memory = true;
    int code = top_options_read(&c->options, argc, argv);
    if (code < 0)
        code = print_recording(c);
    mk_mem_free(c->matches);
    mk_mem_free(c);
    return code;
}
