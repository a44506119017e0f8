/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_run.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <monkey/subprocess.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { JOB_MAX = 64 * 1024 * 1024 };

struct acme_helper_run {
    struct mk_worker *worker;
    const struct acme_helper_job *job;
    struct mk_subprocess *child;
    struct mk_watcher *watcher;
    void (*on_report)(void *ctx, enum acme_helper_report report, mk_str text);
    void (*on_end)(void *ctx, int status);
    void *ctx;
    int fd; /* read end of the program's output */
    size_t len;
    char line[2048];
};

/* ---- Output ---- */

static void handle_helper_line(struct acme_helper_run *r, mk_str line)
{
    static const char letters[] = "EWID";
    char first = line.len > 2 && line.p[1] == ' ' ? line.p[0] : '\0';
    const char *level = first ? strchr(letters, first) : NULL;
    if (first == ACME_HELPER_NEXT || first == ACME_HELPER_ISSUED || first == ACME_HELPER_DUE ||
        first == ACME_HELPER_DELAYED)
        r->on_report(r->ctx, (enum acme_helper_report)first, mk_str_skip(line, 2));
    else if (level && *level)
        mk_worker_log(r->worker, (enum mk_log_level)(level - letters), "acme: %.*s",
                      MK_STR_ARG(mk_str_skip(line, 2)));
    else if (line.len) /* a library's message */
        mk_worker_log(r->worker, MK_LOG_WARN, "acme: %.*s", MK_STR_ARG(line));
}

static void split_lines(struct acme_helper_run *r, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n' && r->len < sizeof r->line)
            r->line[r->len++] = p[i] ? p[i] : '?';
        if (p[i] != '\n')
            continue;
        handle_helper_line(r, mk_str_of(r->line, r->len));
        r->len = 0;
    }
}

static void close_helper_output(struct acme_helper_run *r)
{
    mk_watcher_free(r->watcher);
    r->watcher = NULL;
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->len = 0;
}

static void read_helper_output(struct acme_helper_run *r)
{
    char piece[4096];
    ssize_t n;
    while (r->fd >= 0 && ((n = read(r->fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            split_lines(r, piece, (size_t)n);
}

static void on_helper_readable(void *ctx, unsigned which)
{
    (void)which;
    read_helper_output(ctx);
}

/* ---- End ---- */

void acme_helper_run_free(struct acme_helper_run *r)
{
    if (!r)
        return;
    mk_subprocess_kill(r->child);
    close_helper_output(r);
    mk_mem_free(r);
}

static void on_helper_exit(void *ctx, int status)
{
    struct acme_helper_run *r = ctx;
    r->child = NULL;
    read_helper_output(r);
    close_helper_output(r);
    r->on_end(r->ctx, status);
    acme_helper_run_free(r);
}

void acme_helper_run_time_out(struct acme_helper_run *r)
{
    mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s timed out", r->job->program);
    if (r->child)
        mk_subprocess_signal(r->child, SIGKILL);
}

/* ---- Start ---- */

/* Uses a memory file, because it holds text of any length and is complete before the helper starts. */
static int open_job_file(const struct acme_helper_job *job, mk_str name)
{
    struct mk_buf text = mk_buf_growing(JOB_MAX);
    acme_helper_job_write_json(job, name, &text);
    int fd = text.failed ? -1 : memfd_create("acme", MFD_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text.p, text.len) == (ssize_t)text.len && lseek(fd, 0, SEEK_SET) == 0;
    mk_buf_free(&text);
    if (fd >= 0 && !ok) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool spawn_helper(struct acme_helper_run *r, int in, int out)
{
    const char *argv[] = {r->job->program, NULL}, *envp[ACME_VARIABLES_MAX + 1] = {NULL};
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    size_t n = 0;
    for (const char *const *each = r->job->variables; *each && !text.failed; each++) {
        const char *value = strchr(*each, '=') ? NULL : getenv(*each);
        size_t from = text.len;
        if (strchr(*each, '='))
            envp[n++] = *each;
        if (!value)
            continue;
        mk_buf_addf(&text, "%s=%s", *each, value);
        mk_buf_add_char(&text, '\0');
        if (!text.failed)
            envp[n++] = buf + from;
    }
    const struct mk_subprocess_options o = {
        .argv = argv, .envp = envp, .cwd = r->job->folder, .in = in, .out = out, .err = out};
    r->child = mk_subprocess_start(r->worker, &o, on_helper_exit, r);
    return r->child;
}

static bool connect_and_spawn(struct acme_helper_run *r, mk_str name)
{
    int ends[2] = {-1, -1}, in = open_job_file(r->job, name);
    bool ok = in >= 0 && pipe2(ends, O_CLOEXEC) == 0;
    if (ok) {
        r->fd = ends[0];
        ok = fcntl(r->fd, F_SETFL, O_NONBLOCK) == 0 &&
             (r->watcher = mk_watcher_new(r->worker, r->fd, MK_READABLE, on_helper_readable, r)) &&
             spawn_helper(r, in, ends[1]);
        close(ends[1]);
    }
    if (in >= 0)
        close(in);
    return ok;
}

struct acme_helper_run *
acme_helper_run_start(struct mk_worker *worker, const struct acme_helper_job *job, mk_str name,
                      void (*on_report)(void *ctx, enum acme_helper_report report, mk_str text),
                      void (*on_end)(void *ctx, int status), void *ctx)
{
    struct acme_helper_run *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct acme_helper_run){
        .worker = worker, .job = job, .on_report = on_report, .on_end = on_end, .ctx = ctx, .fd = -1};
    if (connect_and_spawn(r, name))
        return r;
    acme_helper_run_free(r);
    return NULL;
}
