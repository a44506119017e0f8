/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/recording.h>

#include "matches.h"
#include "page.h"
#include "print.h"

enum { ARGS_MAX = 64, ROWS_MAX = 1000, CONTENT_MAX = 3 << 20 };

static const mk_str no_thread = MK_STR_INIT("the server is busy, or this process exits");

/* A command: another thread runs it, because a recording may be large. */
struct job {
    struct job *next;
    struct top_server *server;
    struct mk_command_end end;
    struct top_recording recording;
    bool is_list, has_lines; /* `requests`; one JSON object per line */
    struct top_page page;    /* and the options of both */
    int code;
    struct mk_buf out;
    int argc;
    char *argv[ARGS_MAX];
    char text[]; /* of the arguments */
};

/* At most one thread of a worker reads the recording. */
struct top_server {
    struct mk_worker *worker;
    struct job *first, **last; /* the first one is running */
};

/* ---- Options ---- */

static bool set_lines(void *ctx, mk_str value)
{
    struct job *j = MK_CONTAINER(ctx, struct job, page);
    (void)value;
    return j->has_lines = true;
}

static const struct top_option page_options[] = {TOP_PAGE_OPTIONS};
static const struct top_option list_options[] = {{"--limit", "-n", true, top_page_set_limit},
                                                 {"--json", "-j", false, top_page_set_json},
                                                 {"--lines", "", false, set_lines}};

static bool split_words(struct job *j, mk_str words)
{
    memcpy(j->text, words.p, words.len);
    for (mk_str rest = mk_str_of(j->text, words.len), word; (word = mk_str_word(&rest)).len;) {
        if (j->argc == ARGS_MAX)
            return false;
        j->argv[j->argc++] = j->text + (word.p - j->text);
    }
    for (size_t i = 0; i < words.len; i++)
        if (j->text[i] == ' ' || j->text[i] == '\t')
            j->text[i] = '\0';
    return true;
}

static int parse_words(struct job *j, mk_str words, struct mk_buf *error)
{
    struct top_options *o = &j->page.options;
    if (!split_words(j, words) || !j->argc) {
        mk_buf_add(error, MK_STR("expected `top` or `requests`, and at most 63 arguments"));
        return -EINVAL;
    }
    j->is_list = mk_str_eq(mk_str_from_c(j->argv[0]), MK_STR("requests"));
    o->own = j->is_list ? list_options : page_options;
    o->n_own = j->is_list ? MK_LEN(list_options) : MK_LEN(page_options);
    o->ctx = &j->page;
    o->has_no_file = true;
    o->filter.last_ms = j->is_list ? 0 : TOP_LAST_MS;
    j->page.limit = ROWS_MAX;
    int code = top_options_parse(o, j->argc - 1, j->argv + 1, error);
    if (code == TOP_HELP)
        mk_buf_add(error, MK_STR("see the documentation of the plugin top"));
    if (j->page.limit > ROWS_MAX && code == TOP_CONTINUE) {
        mk_buf_addf(error, "the limit is at most %d", ROWS_MAX);
        code = TOP_USAGE;
    }
    return code == TOP_CONTINUE ? 0 : -EINVAL;
}

/* ---- Requests ---- */

struct selection {
    const struct top_filter *filter;
    struct top_matches matches;
};

static bool select_entry(void *ctx, const struct top_entry *e)
{
    struct selection *s = ctx;
    return !top_filter_match(s->filter, e) || top_matches_add(&s->matches, e);
}

static void append_requests(const struct job *j, struct top_matches *m, struct mk_buf *out)
{
    bool is_array = j->page.is_json && !j->has_lines;
    struct mk_json_writer w = mk_json_writer_to(out);
    top_matches_sort(m);
    if (is_array)
        mk_json_begin_array(&w);
    for (size_t i = m->n > j->page.limit ? m->n - (size_t)j->page.limit : 0; i < m->n; i++) {
        struct top_entry *e = &m->at[i].entry;
        (void)top_reader_set_texts(e);
        if (is_array)
            mk_json_newline(&w);
        if (j->has_lines)
            w = mk_json_writer_to(out);
        if (is_array || j->has_lines)
            top_print_json(e, &w);
        else
            top_print_line(e, out);
        if (!is_array)
            mk_buf_add_char(out, '\n');
    }
    if (is_array)
        mk_json_end_array(&w);
}

static const char *run_requests(struct job *j)
{
    struct selection s = {.filter = &j->page.options.filter, .matches = {.max = (size_t)j->page.limit}};
    const struct top_visitor visitor = {.each = select_entry, .ctx = &s};
    struct top_damage damage = {0};
    bool is_missing;
    top_filter_set_now(&j->page.options.filter, mk_clock_unix_ms());
    const char *error = top_reader_read(&j->recording, &visitor, &damage, &is_missing);
    if (!error && s.matches.no_memory)
        error = "out of memory";
    if (!error)
        append_requests(j, &s.matches, &j->out);
    top_matches_free(&s.matches);
    return error;
}

static const char *run_page(struct job *j)
{
    bool is_missing;
    const char *error = top_page_read(&j->page, &j->recording, &is_missing);
    if (!error && j->page.is_json) {
        top_page_append_json(&j->page, &j->out);
    } else if (!error) {
        top_page_append_head(&j->page, &j->out);
        size_t n = top_page_count_lines(&j->page);
        for (size_t i = 0; i < n; i++)
            top_page_append_line(&j->page, i, &j->out);
    }
    top_stats_free(&j->page.stats);
    return error;
}

/* ---- Jobs ---- */

static void work(void *ctx)
{
    struct job *j = ctx;
    const char *error = j->is_list ? run_requests(j) : run_page(j);
    if (!error && j->out.failed)
        error = "the response is too large";
    if (!error)
        return;
    j->code = -EIO;
    mk_buf_clear(&j->out);
    mk_buf_addf(&j->out, "cannot read the recording: %s", error);
}

static void free_job(struct job *j)
{
    mk_buf_free(&j->out);
    mk_mem_free(j);
}

static void on_job_done(void *ctx);

/* Returns false if no thread is available, because the worker stops or is busy. */
static bool start_job(struct job *j)
{
    return mk_worker_offload(j->server->worker, work, on_job_done, j) == 0;
}

/* Removes all jobs from the queue, because none can be started. */
static struct job *fail_jobs(struct top_server *s)
{
    struct job *jobs = s->first;
    s->first = NULL;
    s->last = &s->first;
    for (struct job *j = jobs; j; j = j->next) {
        j->code = -EIO;
        mk_buf_add(&j->out, no_thread);
    }
    return jobs;
}

/* Starts the next job before it calls done(), which may run the client's next command at once, and thus
 * top_command_run(). */
static void on_job_done(void *ctx)
{
    struct job *j = ctx;
    struct top_server *s = j->server;
    s->first = j->next;
    j->next = NULL;
    if (!s->first)
        s->last = &s->first;
    else if (!start_job(s->first))
        j->next = fail_jobs(s);
    for (struct job *next; j; j = next) {
        next = j->next;
        j->end.done(j->end.ctx, j->code, mk_buf_str(&j->out));
        free_job(j);
    }
}

int top_command_run(struct top_server *s, mk_str words, struct mk_buf *out, const struct mk_command_end *end)
{
    struct top_recording recording = {.fd = mk_worker_recording(s->worker)};
    struct job *j = recording.fd >= 0 ? mk_mem_zalloc(1, sizeof *j + words.len + 1) : NULL;
    if (!j) {
        mk_buf_add(out, recording.fd >= 0 ? MK_STR("out of memory") : MK_STR("this server records nothing"));
        return -EIO;
    }
    j->server = s;
    j->end = *end;
    j->recording = recording;
    j->out = mk_buf_growing(CONTENT_MAX);
    int e = parse_words(j, words, out);
    if (e) {
        mk_mem_free(j);
        return e;
    }
    if (!s->first && !start_job(j)) {
        free_job(j);
        mk_buf_add(out, no_thread);
        return -EIO;
    }
    *s->last = j;
    s->last = &j->next;
    return -EINPROGRESS;
}

struct top_server *top_server_new(struct mk_worker *worker)
{
    struct top_server *s = mk_mem_zalloc(1, sizeof *s);
    if (s) {
        s->worker = worker;
        s->last = &s->first;
    }
    return s;
}

void top_server_free(struct top_server *s)
{
    mk_mem_free(s);
}
