/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <duda/request.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/package.h"

enum { ERRORS_MAX = 16 << 10, PIPE = 64 << 10, PIECE = 1024 };

static void close_pipe(int *fd, struct mk_watcher **watcher)
{
    mk_watcher_free(*watcher);
    *watcher = NULL;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- Metrics ---- */

static void record_process_start(struct duda_subprocess *c)
{
    c->meter = mk_worker_data(duda_worker(c->d), &MK_PLUGIN_OF(duda_subprocess));
    c->began_us = package_meter_begin(c->meter);
}

/* Only a failed start and a process that we have killed count as failures; any exit code is a regular
 * result. */
static void meter_process_end(struct duda_subprocess *c, int e)
{
    if (!c->is_counted)
        mk_meter_end(c->meter, mk_clock_us() - c->began_us, e < 0);
    c->is_counted = true;
}

/* ---- Events ---- */

static void on_pipe_ready(void *ctx, unsigned events)
{
    struct duda_subprocess *c = ctx;
    (void)events;
    duda_wait_wake(&c->wait);
}

static void log_stderr_line(void *ctx, mk_str line)
{
    const struct duda_subprocess *c = ctx;
    duda_log(c->d, MK_LOG_WARN, "duda-subprocess: %.*s", MK_STR_ARG(line));
}

/* Reads one piece per call; the watcher calls again if there is more. Returns false if no data is available
 * now. */
static bool read_stderr(struct duda_subprocess *c)
{
    char buf[PIECE];
    ssize_t n = c->err >= 0 ? read(c->err, buf, sizeof buf) : -1;
    if (n > 0)
        mk_cgi_stderr_add(&c->errors, mk_str_of(buf, (size_t)n));
    if (n == 0)
        close_pipe(&c->err, &c->err_ready);
    return n > 0;
}

static void on_stderr_readable(void *ctx, unsigned events)
{
    (void)events;
    (void)read_stderr(ctx);
}

static void on_child_exit(void *ctx, int status)
{
    struct duda_subprocess *c = ctx;
    c->process = NULL;
    c->ended = true;
    c->status = status;
    meter_process_end(c, status);
    for (size_t i = 0; i < PIPE / PIECE && read_stderr(c); i++)
        continue;
    mk_cgi_stderr_flush(&c->errors);
    duda_wait_wake(&c->wait);
}

static void on_process_timeout(struct mk_timer *t)
{
    struct duda_subprocess *c = MK_CONTAINER(t, struct duda_subprocess, timer);
    c->failure = -ETIME;
    duda_process_close(c);
    duda_wait_wake(&c->wait);
}

/* ---- Start ---- */

/* The ends of the pipes that the child uses. */
struct ends {
    int in, out, err;
};

/* Our end is non-blocking; the end of the child blocks, as programs expect. */
static int open_pipe(int *ours, int *theirs, int which_is_ours)
{
    int both[2];
    if (pipe2(both, O_CLOEXEC))
        return -errno;
    *ours = both[which_is_ours];
    *theirs = both[1 - which_is_ours];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int open_pipes(struct duda_subprocess *c, struct ends *theirs, bool joins)
{
    int e = open_pipe(&c->in, &theirs->in, 1);
    if (!e)
        e = open_pipe(&c->out, &theirs->out, 0);
    if (!e && !joins)
        e = open_pipe(&c->err, &theirs->err, 0);
    return e;
}

static int watch_pipes(struct duda_subprocess *c, const struct duda_subprocess_options *o)
{
    struct mk_worker *w = duda_worker(c->d);
    c->in_ready = mk_watcher_new(w, c->in, MK_WRITABLE, on_pipe_ready, c);
    c->out_ready = mk_watcher_new(w, c->out, MK_READABLE, on_pipe_ready, c);
    if (c->err >= 0)
        c->err_ready = mk_watcher_new(w, c->err, MK_READABLE | MK_LEVEL, on_stderr_readable, c);
    if (!c->in_ready || !c->out_ready || (c->err >= 0 && !c->err_ready))
        return -ENOMEM;
    mk_timer_init(&c->timer, on_process_timeout);
    if (o->timeout_ms)
        mk_timer_set(&c->timer, w, o->timeout_ms);
    return 0;
}

static int spawn_process(struct duda_subprocess *c, const struct duda_subprocess_options *o,
                         const struct ends *theirs)
{
    static const char *const usual[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    const struct mk_subprocess_options options = {.argv = o->argv,
                                                  .envp = o->envp ? o->envp : usual,
                                                  .cwd = o->cwd,
                                                  .in = theirs->in,
                                                  .out = theirs->out,
                                                  .err = o->merge_stderr ? theirs->out : theirs->err,
                                                  .cpu_s = o->cpu_s,
                                                  .memory = o->memory};
    c->process = mk_subprocess_start(duda_worker(c->d), &options, on_child_exit, c);
    return c->process ? 0 : -EAGAIN;
}

static void close_child_ends(const struct ends *theirs)
{
    const int all[] = {theirs->in, theirs->out, theirs->err};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (all[i] >= 0)
            close(all[i]);
}

static size_t string_list_size(const char *const *list)
{
    size_t n = 0;
    for (; list && *list; list++)
        n += strlen(*list) + 1;
    return n;
}

/* Rejects invalid options here, because the spawner would only log them, without telling the caller why it
 * failed. */
static int check_subprocess_options(const struct duda_subprocess_options *o)
{
    enum { TEXT_MAX = 120 << 10 };
    if (!o->argv || !o->argv[0] || !strchr(o->argv[0], '/'))
        return -EINVAL;
    return string_list_size(o->argv) + string_list_size(o->envp) > TEXT_MAX ? -EMSGSIZE : 0;
}

int duda_process_start(struct duda_subprocess *c, struct duda_ctx *d, const struct duda_subprocess_options *o)
{
    struct ends theirs = {-1, -1, -1};
    *c = (struct duda_subprocess){.d = d, .in = -1, .out = -1, .err = -1};
    c->errors = (struct mk_cgi_stderr){.on_line = log_stderr_line,
                                       .ctx = c,
                                       .remaining = ERRORS_MAX,
                                       .limit_message = "(further output is not logged)"};
    record_process_start(c);
    int e = check_subprocess_options(o);
    if (!e)
        e = open_pipes(c, &theirs, o->merge_stderr);
    if (!e)
        e = watch_pipes(c, o);
    if (!e)
        e = spawn_process(c, o, &theirs);
    close_child_ends(&theirs);
    if (e)
        duda_process_close(c);
    return e;
}

/* ---- End ---- */

void duda_process_close(struct duda_subprocess *c)
{
    mk_subprocess_kill(c->process);
    c->process = NULL;
    if (!c->failure)
        c->failure = -ECANCELED;
    meter_process_end(c, c->failure);
    close_pipe(&c->in, &c->in_ready);
    close_pipe(&c->out, &c->out_ready);
    close_pipe(&c->err, &c->err_ready);
    mk_timer_stop(&c->timer);
}

/* ---- Pipes ---- */

/* After the exit of the child, its background processes may keep the pipe open, so an empty pipe then means
 * the end of the output. */
ssize_t duda_process_read(struct duda_subprocess *c, char *buf, size_t cap)
{
    bool ended = c->ended;
    ssize_t n = -1;
    if (c->out < 0)
        return 0;
    do
        n = read(c->out, buf, cap);
    while (n < 0 && errno == EINTR);
    if (n < 0 && !(ended && errno == EAGAIN))
        return -errno;
    if (n > 0)
        return n;
    close_pipe(&c->out, &c->out_ready);
    return 0;
}

ssize_t duda_process_write(struct duda_subprocess *c, mk_str text)
{
    ssize_t n = -1;
    if (c->in < 0)
        return -EPIPE;
    do
        n = write(c->in, text.p, text.len);
    while (n < 0 && errno == EINTR);
    if (n >= 0 || errno == EAGAIN)
        return n >= 0 ? n : -EAGAIN;
    close_pipe(&c->in, &c->in_ready);
    return -EPIPE;
}

void duda_process_close_stdin(struct duda_subprocess *c)
{
    close_pipe(&c->in, &c->in_ready);
}
