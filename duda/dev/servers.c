/* SPDX-License-Identifier: Apache-2.0 */
#include "servers.h"

#include "config_include.h"
#include "crash.h"
#include "env_file.h"
#include "inputs.h"
#include "messages.h"
#include "options.h"
#include "private_dir.h"
#include "run_state.h"
#include "sanitizer.h"
#include "server_config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024, TAIL_MAX = 32 * 1024, START_S = 60, END_STEP_MS = 20, DEATH_MS = 300 };

static bool report_server_error(const char *problem, const char *error)
{
    fprintf(stderr, "monkey run: %s: %s\n", problem, error);
    return false;
}

/* ---- Log output ---- */

static bool line_contains_any(mk_str line, const char *const *texts, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || memmem(line.p, line.len, texts[i], strlen(texts[i]));
    return any;
}

/* Returns whether developers need not see the message. Such messages report that a server starts or stops,
 * which happens after each saved file; that a service exited during a request, which another message reports
 * with more details; or the reference of an error page, which only helps to find the log message for an error
 * that a user has seen. */
static bool is_routine_message(mk_str line)
{
    static const char *const known[] = {
        " serves with ", "workers run as root", "shutting down when all open requests",
        ": upstream service: the server unix:", ": upstream service, server unix:"};
    static const char *const info[] = {" [info] "}, *const reference[] = {", reference ", ": status 5"};
    return line_contains_any(line, known, MK_LEN(known)) || mk_str_ends(line, MK_STR(": shutting down")) ||
           (line_contains_any(line, info, 1) && line_contains_any(line, reference, 2));
}

/* Returns whether the line is the watchdog's message about a handler that was already reported with source
 * lines. */
static bool is_watchdog_message(mk_str line)
{
    static const char *const known[] = {" serves nothing: it has been blocked for ", " serves again"};
    return line_contains_any(line, known, MK_LEN(known));
}

/* Returns whether the line is the server's message about a crash that was already reported with source
 * lines. */
static bool is_crash_message(mk_str line)
{
    static const char *const known[] = {
        " was killed by signal ",           " crashed with SIG",      ":   #",
        ": source lines of that stack in ", " terminated its worker", " exited unexpectedly with code "};
    return line_contains_any(line, known, MK_LEN(known));
}

/* Returns whether the line is the message that the master logs about every dead worker, whatever the
 * cause. */
static bool is_worker_death_message(mk_str line)
{
    static const char *const known[] = {" was killed by signal ", " exited unexpectedly with code "};
    return line_contains_any(line, known, MK_LEN(known));
}

/* Returns whether the line is the message of a new worker about the handler that ended its predecessor. It can
 * arrive during the next request, whose output it is not. */
static bool is_predecessor_message(mk_str line)
{
    static const char *const known[] = {" terminated its worker"};
    return line_contains_any(line, known, 1);
}

static void record_worker_death(struct dev_servers *s)
{
    struct mk_buf args = s->last_words;
    s->was_blocked = s->watchdog_expired && s->stderr_reader.has_held;
    s->watchdog_expired = false;
    s->n_last_words = s->n_logged;
    dev_stderr_reader_worker_died(&s->stderr_reader);
    s->last_words = s->tail;
    mk_buf_clear(&args);
    s->tail = args;
}

static void append_to_tail(struct dev_servers *s, mk_str line)
{
    if (s->tail.len + line.len > TAIL_MAX)
        mk_buf_consume(&s->tail, s->tail.len / 2);
    mk_buf_addf(&s->tail, "%.*s\n", MK_STR_ARG(line));
    s->n_logged += line.len + 1;
}

static void on_back_stderr_line(void *ctx, mk_str line)
{
    struct dev_servers *s = ctx;
    bool dies = is_worker_death_message(line);
    bool is_held =
        s->stderr_reader.has_crashed && is_crash_message(line) && !(dies && s->stderr_reader.has_died);
    static const char *const killed[] = {": WatchdogTimeout has expired"};
    s->watchdog_expired = s->watchdog_expired || line_contains_any(line, killed, 1);
    if (dies && !is_held)
        append_to_tail(s, line);
    if (dies)
        record_worker_death(s);
    if (is_routine_message(line) || is_held || (s->stderr_reader.has_held && is_watchdog_message(line)))
        return;
    dev_print_text(stderr, line);
    fputc('\n', stderr);
    if (!dies && !is_predecessor_message(line))
        append_to_tail(s, line);
}

static void print_crash(void *ctx)
{
    const struct dev_servers *s = ctx;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    mk_buf_add(&text, MK_STR("The service crashed: "));
    dev_stderr_reader_format_crash(&s->stderr_reader, &text);
    dev_print_text(stderr, mk_buf_str(&text));
    mk_buf_free(&text);
}

static void print_stall(void *ctx)
{
    struct dev_servers *s = ctx;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    dev_stderr_reader_format_stall(&s->stderr_reader, &text);
    dev_print_text(stderr, mk_buf_str(&text));
    mk_buf_free(&text);
}

bool dev_servers_init(struct dev_servers *s, const struct dev_paths *paths, const char *project)
{
    char none[PATH_MAX];
    *s = (struct dev_servers){.paths = paths,
                              .front = {.out = -1, .err = -1},
                              .back = {.out = -1, .err = -1},
                              .tail = mk_buf_growing(2 * TAIL_MAX),
                              .last_words = mk_buf_growing(2 * TAIL_MAX)};
    dev_stderr_reader_init(&s->stderr_reader, on_back_stderr_line, print_crash, s);
    s->stderr_reader.on_stall = print_stall;
    for (size_t i = 0; i < DEV_DRAINING_MAX; i++)
        s->draining[i] = (struct dev_process){.out = -1, .err = -1};
    if (!dev_private_dir_create(s->folder))
        return false;
    dev_run_state_export(paths, s->folder, project);
    return (dev_paths_format(none, "%s/none", s->folder) && mkdir(none, 0700) == 0) ||
           report_server_error(s->folder, strerror(errno));
}

/* ---- Start ---- */

static bool write_config_file(const char *path, const struct mk_buf *text)
{
    FILE *f = text->failed ? NULL : fopen(path, "we");
    bool ok = f && fwrite(text->p, 1, text->len, f) == text->len;
    ok = f && fclose(f) == 0 && ok;
    return ok || report_server_error(path, text->failed ? "the configuration is too long" : strerror(errno));
}

static bool start_server(struct dev_process *c, const struct dev_servers *s, const char *config,
                         const char *const *options, const char *sanitizer, char **envp)
{
    struct dev_argv args;
    dev_argv_init(&args);
    dev_sanitizer_add_preload(&args, sanitizer);
    dev_argv_add(&args, mk_str_from_c(s->paths->program));
    dev_argv_add(&args, MK_STR("-c"));
    dev_argv_add(&args, mk_str_from_c(config));
    while (options && *options)
        dev_argv_add(&args, mk_str_from_c(*options++));
    args.envp = envp;
    bool ok = dev_process_start(c, &args);
    dev_argv_free(&args);
    return ok;
}

static void print_messages(mk_str text)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        if (line.len && !is_routine_message(line)) {
            dev_print_text(stderr, line);
            fputc('\n', stderr);
        }
    }
}

static bool has_printed_address(const struct mk_buf *out)
{
    mk_str rest = mk_buf_str(out);
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (rest.p && mk_str_starts(line, MK_STR("  ")))
            return true;
    }
    return false;
}

/* Returns true when the server accepts connections; `out` then contains its address. */
static bool wait_until_serving(struct dev_process *c, struct mk_buf *out, struct mk_buf *err)
{
    struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};
    while (!has_printed_address(out)) {
        fds[0].fd = c->out;
        fds[1].fd = c->err;
        fds[2].fd = dev_process_interrupt_fd();
        if (c->out < 0 || poll(fds, 3, START_S * 1000) == 0 || fds[2].revents)
            return false;
        dev_stderr_reader_append_to(&c->err, err);
        dev_stderr_reader_append_to(&c->out, out);
    }
    return true;
}

bool dev_servers_start_front(struct dev_servers *s, const char *listen, const char *names, bool quiet)
{
    char config[PATH_MAX];
    struct mk_buf text = mk_buf_growing(TEXT_MAX), out = mk_buf_growing(TEXT_MAX),
                  err = mk_buf_growing(TEXT_MAX);
    dev_server_config_write_front(&text, s->folder, listen, names, quiet);
    bool ok = dev_paths_format(config, "%s/front.conf", s->folder) && write_config_file(config, &text) &&
              start_server(&s->front, s, config, NULL, "", NULL);
    bool serves = ok && wait_until_serving(&s->front, &out, &err);
    print_messages(mk_buf_str(&err));
    mk_str rest = mk_buf_str(&out);
    (void)mk_str_cut(&rest, '\n'); /* skips the address, which `monkey run` prints itself */
    if (serves)
        dev_print_text(stdout, rest);
    fflush(stdout);
    mk_buf_free(&text);
    mk_buf_free(&out);
    mk_buf_free(&err);
    return serves;
}

/* Lets the old server finish its requests in the background. */
static void retire_back_server(struct dev_servers *s)
{
    size_t i = 0;
    while (i < DEV_DRAINING_MAX - 1 && s->draining[i].pid)
        i++;
    if (s->draining[i].pid)
        dev_process_stop(&s->draining[i], SIGKILL);
    if (s->back.pid)
        (void)kill(s->back.pid, SIGQUIT);
    s->draining[i] = s->back;
    s->draining[i].rest[1] = s->stderr_reader.line; /* the incomplete last line */
    s->stderr_reader.line = (struct mk_buf){0};
}

/* Removes the socket that a killed server has left. */
static void remove_unused_socket(const struct dev_servers *s)
{
    char path[PATH_MAX];
    if (dev_paths_format(path, "%s/back-%u", s->folder, s->number + 1))
        (void)unlink(path);
}

/* Prints what services have written during startup, without the lines of the server itself. */
static void print_startup_output(struct dev_process *c, mk_str text)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        bool is_ours = mk_str_starts(line, MK_STR("  unix:")) || mk_str_starts(line, MK_STR("Monkey "));
        if (!text.p) { /* the rest of the line has not arrived yet */
            c->rest[0] = mk_buf_growing(TEXT_MAX);
            mk_buf_add(&c->rest[0], line);
        } else if (!is_ours) {
            dev_print_text(stdout, line);
            dev_print_text(stdout, MK_STR("\n"));
        }
    }
}

/* Starts the back server, which serves static files only from html/. It has one worker unless the developer
 * configures more: logs and debuggers then show one process. */
static bool start_back_server(struct dev_servers *s, struct dev_process *c, const struct dev_source_set *u,
                              const char *extra, struct mk_buf *error)
{
    char config[PATH_MAX], none[PATH_MAX], listen[PATH_MAX];
    struct dev_env env;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const char *options[] = {
        "-p", listen, "-o", u->html[0] ? u->html : none, "-w", s->workers ? s->workers : "1", NULL};
    if (!s->workers && extra && dev_config_include_has(extra, "SERVER", "Workers"))
        options[4] = NULL;
    dev_server_config_write_back(&text, u, extra);
    bool ok = dev_paths_format(config, "%s/back.conf", s->folder) &&
              dev_paths_format(none, "%s/none", s->folder) &&
              dev_paths_format(listen, "unix:%s/back-%u", s->folder, s->number + 1) &&
              write_config_file(config, &text) && dev_env_read(&env, u->env_path, error) &&
              start_server(c, s, config, options, dev_source_set_sanitizer(u), env.vars);
    dev_env_free(&env);
    mk_buf_free(&text);
    return ok;
}

/* Replaces the report of a crash during startup with source lines. The master starts the worker several
 * times; only the first report is kept. */
static void format_startup_crash(struct mk_buf *text)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    struct dev_stderr_reader reader = {.crash = mk_buf_growing(TEXT_MAX)};
    mk_str rest = mk_buf_str(text);
    bool in_report = false, is_done = false;
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        bool ends = mk_str_eq(line, MK_STR(DEV_CRASH_END));
        in_report = in_report || mk_str_starts(line, MK_STR(DEV_CRASH_HEAD));
        if (in_report && !is_done)
            mk_buf_addf(&reader.crash, "%.*s\n", MK_STR_ARG(line));
        if (ends && !is_done) {
            mk_buf_add(&out, MK_STR("The service crashed when it was started: "));
            dev_stderr_reader_format_crash(&reader, &out);
            is_done = true;
        }
        if (!in_report && !(is_done && is_crash_message(line)) && !is_routine_message(line))
            mk_buf_addf(&out, "%.*s\n", MK_STR_ARG(line));
        in_report = in_report && !ends;
    }
    mk_buf_free(&reader.crash);
    mk_buf_free(text);
    *text = out;
}

static void replace_text(struct mk_buf *text, mk_str from, const char *to)
{
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    mk_str all = mk_buf_str(text);
    const char *at;
    while (from.len && all.len && (at = memmem(all.p, all.len, from.p, from.len))) {
        mk_buf_addf(&out, "%.*s%s", (int)(at - all.p), all.p, to);
        all = mk_str_skip(all, (size_t)(at - all.p) + from.len);
    }
    mk_buf_add(&out, all);
    mk_buf_free(text);
    *text = out;
}

/* Replaces the paths of objects, which are in the cache, with those of their sources. Some messages contain
 * only the file name of a long path. */
static void name_sources(struct mk_buf *text, const struct dev_source_set *u)
{
    for (size_t i = 0; i < u->n; i++) {
        mk_str object = mk_str_from_c(dev_source_set_object_path(u->at[i]));
        replace_text(text, object, u->at[i]->path);
        replace_text(text, mk_str_skip(object, mk_str_find_last(object, '/') + 1), u->at[i]->path);
    }
}

bool dev_servers_replace_back(struct dev_servers *s, const struct dev_source_set *u, const char *extra,
                              struct mk_buf *error)
{
    char next[PATH_MAX], path[PATH_MAX];
    struct dev_process back = {.out = -1, .err = -1};
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    bool ok = start_back_server(s, &back, u, extra, error) && wait_until_serving(&back, &out, error);
    print_startup_output(&back, mk_buf_str(&out));
    mk_buf_free(&out);
    ok = ok && dev_paths_format(next, "%s/back-%u", s->folder, s->number + 1) &&
         dev_paths_format(path, "%s/back", s->folder);
    format_startup_crash(error);
    name_sources(error, u);
    dev_messages_strip_internal_paths(error, s->folder);
    /* From here on, new connections go to the new server. */
    if (!ok || rename(next, path) < 0) {
        dev_process_stop(&back, SIGKILL);
        remove_unused_socket(s);
        return false;
    }
    print_messages(mk_buf_str(error));
    retire_back_server(s);
    s->back = back;
    s->number++;
    dev_stderr_reader_reset(&s->stderr_reader);
    mk_buf_clear(&s->tail);
    mk_buf_clear(&s->last_words);
    s->watchdog_expired = s->was_blocked = false;
    return true;
}

/* ---- Output ---- */

static void print_output_line(void *ctx, mk_str line)
{
    FILE *to = ctx;
    if (to == stderr && (!line.len || is_routine_message(line) || is_watchdog_message(line)))
        return;
    dev_print_text(to, line);
    fputc('\n', to);
    (void)fflush(to);
}

/* Forwards the output of the server. The standard output of services appears on our standard output. */
static void read_server_output(struct dev_servers *s, struct dev_process *c)
{
    dev_stderr_reader_read_lines(&c->out, &c->rest[0], print_output_line, stdout);
    if (c == &s->back)
        dev_stderr_reader_read(&s->stderr_reader, &c->err);
    else
        dev_stderr_reader_read_lines(&c->err, &c->rest[1], print_output_line, stderr);
}

void dev_servers_read_output(struct dev_servers *s)
{
    read_server_output(s, &s->front);
    read_server_output(s, &s->back);
    for (size_t i = 0; i < DEV_DRAINING_MAX; i++) {
        bool has_ended = dev_process_try_wait(&s->draining[i]) >= 0;
        read_server_output(s, &s->draining[i]);
        if (has_ended)
            dev_process_close_pipes(&s->draining[i]);
    }
}

size_t dev_servers_add_pollfds(const struct dev_servers *s, struct pollfd *fds)
{
    size_t n = 0;
    for (size_t i = 0; i < DEV_DRAINING_MAX + 2; i++) {
        const struct dev_process *c = i == 0 ? &s->front : i == 1 ? &s->back : &s->draining[i - 2];
        if (c->out >= 0)
            fds[n++] = (struct pollfd){.fd = c->out, .events = POLLIN};
        if (c->err >= 0)
            fds[n++] = (struct pollfd){.fd = c->err, .events = POLLIN};
    }
    return n;
}

static uint64_t hash_request(mk_str method, mk_str target)
{
    return dev_inputs_hash_text(method) * 31 + dev_inputs_hash_text(target);
}

void dev_servers_mark_request(struct dev_servers *s, mk_str method, mk_str target)
{
    dev_servers_read_output(s);
    s->marks[s->n_marks++ % DEV_MARKS] =
        (struct dev_request_mark){.request = hash_request(method, target), .n_logged = s->n_logged};
}

/* Returns the part of the output that was written after the request had begun. `end` is the value of n_logged
 * at the end of the output. */
static mk_str output_since(const struct dev_servers *s, mk_str output, uint64_t end, uint64_t request)
{
    for (unsigned i = 1; i <= DEV_MARKS && i <= s->n_marks; i++) {
        const struct dev_request_mark *mark = &s->marks[(s->n_marks - i) % DEV_MARKS];
        uint64_t n = mark->n_logged < end ? end - mark->n_logged : 0;
        if (mark->request == request)
            return n < output.len ? mk_str_skip(output, output.len - n) : output;
    }
    return output;
}

/* The report of a crash or of exit() arrives before the connection closes; the master logs any other death a
 * moment later. A death that is already known usually belongs to an earlier request, so this function waits
 * for another report. If two workers died at the same time, no other report arrives: after DEATH_MS, the
 * function returns the known one. */
mk_str dev_servers_await_crash_output(struct dev_servers *s, mk_str method, mk_str target)
{
    const struct dev_stderr_reader *h = &s->stderr_reader;
    dev_servers_read_output(s);
    bool is_fresh = h->has_crashed && !h->has_died;
    struct pollfd ready = {.fd = s->back.err, .events = POLLIN};
    for (int left = DEATH_MS; !is_fresh && left > 0 && s->back.err >= 0; left -= 50) {
        size_t before = s->last_words.len;
        bool had = h->has_crashed;
        (void)poll(&ready, 1, 50);
        dev_servers_read_output(s);
        is_fresh = had != h->has_crashed || before != s->last_words.len;
        ready.fd = s->back.err;
    }
    bool is_alive = h->has_crashed && !h->has_died;
    return output_since(s, mk_buf_str(is_alive ? &s->tail : &s->last_words),
                        is_alive ? s->n_logged : s->n_last_words, hash_request(method, target));
}

bool dev_servers_is_front_running(struct dev_servers *s)
{
    if (dev_process_try_wait(&s->back) >= 0)
        fprintf(stderr,
                "monkey run: the server of the services has exited; the next change starts a new one\n");
    return dev_process_try_wait(&s->front) < 0;
}

/* ---- Stop ---- */

/* Reads the output of the server until it exits, because a full pipe would block a server that writes while
 * it exits. */
static void stop_server(struct dev_servers *s, struct dev_process *c)
{
    if (c->pid > 0)
        (void)kill(c->pid, SIGTERM);
    while (c->pid > 0 && dev_process_try_wait(c) < 0) {
        struct pollfd fds[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->err, .events = POLLIN}};
        (void)poll(fds, 2, END_STEP_MS);
        read_server_output(s, c);
    }
    read_server_output(s, c);
    dev_process_close_pipes(c);
}

void dev_servers_stop(struct dev_servers *s)
{
    if (!*s->folder)
        return; /* not started */
    for (size_t i = 0; i < DEV_DRAINING_MAX; i++)
        stop_server(s, &s->draining[i]);
    stop_server(s, &s->front);
    stop_server(s, &s->back);
    dev_private_dir_remove(s->folder);
    dev_stderr_reader_free(&s->stderr_reader);
    mk_buf_free(&s->tail);
    mk_buf_free(&s->last_words);
}
