/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "matches.h"
#include "options.h"
#include "print.h"
#include "remote.h"

enum { POLL_US = 250000, LINE_MAX_LEN = 16384 };

struct client {
    struct top_options options;
    uint64_t limit; /* print only the last ones; 0: all */
    bool json, follow;
    const char *socket; /* NULL: reads a file */
    struct top_matches matches;
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
          "      --socket PATH        ask the server at this control socket, not FILE\n"
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

static bool set_socket(void *ctx, mk_str value)
{
    struct client *c = ctx;
    c->socket = value.p;
    return value.len > 0;
}

static const struct top_option own_options[] = {
    {"--limit", "-n", true, set_limit},
    {"--json", "-j", false, set_json},
    {"--socket", "", true, set_socket},
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
    return top_matches_add(&c->matches, e);
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
    const struct top_recording from = {.path = path};
    const char *error = top_reader_read(&from, &visitor, &c->damage, &is_missing);
    if (error && is_missing && (is_optional || c->only_new)) /* it may be replaced just now */
        return 0;
    if (!error && c->matches.no_memory)
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
    size_t n = c->matches.n, first = c->limit && n > c->limit && !c->only_new ? n - (size_t)c->limit : 0;
    top_matches_sort(&c->matches);
    for (size_t i = first; i < n; i++)
        print_entry(c, &c->matches.at[i].entry);
    c->matches.n = 0;
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

/* ---- The control socket ---- */

static int print_remote(struct client *c)
{
    char buf[TOP_REMOTE_TARGET_MAX], error[TOP_REMOTE_ERROR_MAX];
    struct mk_buf target = mk_buf_fixed(buf, sizeof buf), text = mk_buf_growing(TOP_REMOTE_CONTENT_MAX);
    mk_buf_addf(&target, "/requests?format=%s", c->json ? "lines" : "text");
    if (c->limit)
        mk_buf_addf(&target, "&limit=%llu", (unsigned long long)c->limit);
    mk_buf_add(&target, mk_buf_str(&c->options.query));
    bool ok = top_remote_get(c->socket, &target, TOP_REMOTE_TRIES, &text, error);
    if (!ok)
        fprintf(stderr, "monkey recorder: %s\n", error);
    else
        ok = top_remote_print("recorder", mk_buf_str(&text));
    mk_buf_free(&text);
    return ok ? 0 : TOP_FAILURE;
}

static int run_client(struct client *c)
{
    if (!c->socket)
        return print_recording(c);
    if (!c->follow && !c->options.has_path)
        return print_remote(c);
    fprintf(stderr, "monkey recorder: --socket goes with neither FILE nor --follow\n");
    return TOP_USAGE;
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
                                      .path = MK_RECORDER_FILE,
                                      .query = mk_buf_growing(TOP_REMOTE_TARGET_MAX)};
    int code = top_options_read(&c->options, argc, argv);
    if (code < 0)
        code = run_client(c);
    mk_buf_free(&c->options.query);
    top_matches_free(&c->matches);
    mk_mem_free(c);
    return code;
}
