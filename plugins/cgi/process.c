/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILL_MS = 1000, AFTERLIFE_MS = 30000 };

/* ---- Memory and descriptors ---- */

static void close_fd_and_watcher(int *fd, struct mk_watcher **watcher)
{
    mk_watcher_free(*watcher);
    *watcher = NULL;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void free_process(struct cgi_process *p)
{
    close_fd_and_watcher(&p->in, &p->in_ready);
    close_fd_and_watcher(&p->out, &p->out_ready);
    cgi_stderr_fini(&p->errors);
    mk_request_log_copy_free(p->past);
    mk_timer_stop(&p->timer);
    mk_mem_free(p->name);
    mk_mem_free(p);
}

static void resume_request(struct cgi_process *p)
{
    if (p->request)
        mk_request_resume(p->request);
}

/* ---- Exit ---- */

static size_t unread_bytes(const struct cgi_process *p)
{
    int n = 0;
    return p->out >= 0 && ioctl(p->out, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

static void unlink_ended_process(struct cgi_process *p, int status)
{
    p->subprocess = NULL;
    p->status = status;
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    mk_timer_stop(&p->timer);
    p->rest = unread_bytes(p);
    cgi_stderr_read(&p->errors);
    cgi_pool_release_slot(p->pool, p->client);
    if (p->request)
        resume_request(p);
    else
        free_process(p);
}

static void on_child_exit(void *ctx, int status)
{
    unlink_ended_process(ctx, status);
}

/* Kills a script that ignores SIGTERM or runs too long after its response. */
static void on_process_timeout(struct mk_timer *t)
{
    struct cgi_process *p = MK_CONTAINER(t, struct cgi_process, timer);
    if (!p->sigterm_sent) {
        mk_worker_log(p->pool->worker, MK_LOG_WARN,
                      "cgi: %s: terminated, because it was still running %d s after its response", p->name,
                      AFTERLIFE_MS / 1000);
        cgi_process_stop(p);
        return;
    }
    mk_subprocess_kill(p->subprocess);
    unlink_ended_process(p, SIGKILL);
}

void cgi_process_stop(struct cgi_process *p)
{
    if (!p->subprocess || p->sigterm_sent)
        return;
    p->sigterm_sent = true;
    mk_subprocess_signal(p->subprocess, SIGTERM);
    mk_timer_set(&p->timer, p->pool->worker, KILL_MS);
}

void cgi_process_detach(struct cgi_process *p, bool has_answered)
{
    if (p->subprocess)
        p->past = mk_request_log_copy(p->request);
    p->request = NULL;
    close_fd_and_watcher(&p->in, &p->in_ready);
    close_fd_and_watcher(&p->out, &p->out_ready);
    if (!p->subprocess)
        free_process(p);
    else if (!has_answered)
        cgi_process_stop(p);
    else if (!p->sigterm_sent)
        mk_timer_set(&p->timer, p->pool->worker, AFTERLIFE_MS);
}

void cgi_process_kill(struct cgi_process *p)
{
    p->request = NULL;
    mk_subprocess_kill(p->subprocess);
    unlink_ended_process(p, SIGKILL);
}

void cgi_process_describe_exit(const struct cgi_process *p, struct mk_buf *out)
{
    if (p->subprocess)
        mk_buf_add(out, MK_STR("closed its output"));
    else if (p->status == -EPIPE)
        mk_buf_add(out, MK_STR("was lost together with its parent process"));
    else if (p->status < 0)
        mk_buf_addf(out, "could not be started: %s", strerror(-p->status));
    else if (WIFSIGNALED(p->status))
        mk_buf_addf(out, "was killed by signal %d (%s)", WTERMSIG(p->status), strsignal(WTERMSIG(p->status)));
    else
        mk_buf_addf(out, "exited with status %d", WEXITSTATUS(p->status));
}

/* ---- Output ---- */

static void log_stderr_line(void *ctx, mk_str line)
{
    const struct cgi_process *p = ctx;
    struct mk_request *request = p->request ? p->request : p->past;
    if (request)
        mk_request_log(request, MK_LOG_WARN, "cgi: %.*s", MK_STR_ARG(line));
    else
        mk_worker_log(p->pool->worker, MK_LOG_WARN, "cgi: %s: %.*s", p->name, MK_STR_ARG(line));
}

static ssize_t read_retrying(int fd, char *buf, size_t cap)
{
    ssize_t n;
    do
        n = read(fd, buf, cap);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t cgi_process_read(struct cgi_process *p, char *buf, size_t cap)
{
    bool ended = !p->subprocess;
    if (ended && p->rest < cap)
        cap = p->rest;
    ssize_t n = p->out >= 0 && cap ? read_retrying(p->out, buf, cap) : 0;
    if (n > 0 && ended)
        p->rest -= (size_t)n;
    if (n == 0)
        close_fd_and_watcher(&p->out, &p->out_ready);
    return n;
}

bool cgi_process_has_output(const struct cgi_process *p)
{
    return unread_bytes(p) > 0;
}

/* ---- Input ---- */

ssize_t cgi_process_write(struct cgi_process *p, mk_str text)
{
    ssize_t n;
    if (p->in < 0)
        return -EPIPE;
    do
        n = write(p->in, text.p, text.len);
    while (n < 0 && errno == EINTR);
    if (n >= 0 || errno == EAGAIN)
        return n < 0 ? -EAGAIN : n;
    close_fd_and_watcher(&p->in, &p->in_ready);
    return -EPIPE;
}

void cgi_process_close_stdin(struct cgi_process *p)
{
    close_fd_and_watcher(&p->in, &p->in_ready);
}

/* ---- Start ---- */

/* The script's pipe ends. */
struct ends {
    int in, out, err;
};

static void close_child_ends(struct ends *theirs)
{
    int *all[] = {&theirs->in, &theirs->out, &theirs->err};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

/* The worker's end is non-blocking; the script's end is blocking, as programs expect. */
static bool open_pipe(int *ours, int *theirs, bool we_read)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    *ours = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

static void on_pipe_ready(void *ctx, unsigned which)
{
    (void)which;
    resume_request(ctx);
}

static bool open_pipes(struct cgi_process *p, struct ends *theirs, bool has_input)
{
    struct mk_worker *w = p->pool->worker;
    int errors = -1;
    if (!open_pipe(&p->out, &theirs->out, true) || (has_input && !open_pipe(&p->in, &theirs->in, false)))
        return false;
    p->out_ready = mk_watcher_new(w, p->out, MK_READABLE, on_pipe_ready, p);
    if (has_input)
        p->in_ready = mk_watcher_new(w, p->in, MK_WRITABLE, on_pipe_ready, p);
    if (!p->out_ready || (has_input && !p->in_ready)) {
        errno = ENOMEM;
        return false;
    }
    if (!p->settings->errors)
        return true;
    bool ok = open_pipe(&errors, &theirs->err, true);
    if (!ok && errors >= 0)
        close(errors);
    return ok && cgi_stderr_init(&p->errors, w, errors, p->settings->errors, log_stderr_line, p);
}

static bool start_child(struct cgi_process *p, const struct ends *theirs, const struct cgi_start *start)
{
    const struct cgi_settings *s = p->settings;
    const struct mk_subprocess_options o = {
        .argv = start->environ->argv,
        .envp = start->environ->envp,
        .cwd = start->script->folder.p,
        .in = start->piped ? theirs->in : start->content_fd,
        .out = theirs->out,
        .err = theirs->err,
        .cpu_s = (s->cpu_ms + 999) / 1000,
        .memory = s->memory,
        .file_size = s->file_size,
    };
    p->subprocess = mk_subprocess_start(p->pool->worker, &o, on_child_exit, p);
    return p->subprocess;
}

static struct cgi_process *new_process(struct cgi_pool *pool, mk_str name)
{
    struct cgi_process *p = mk_mem_zalloc(1, sizeof *p);
    char *copy = mk_mem_zalloc(name.len + 1, 1);
    if (!p || !copy) {
        mk_mem_free(copy);
        mk_mem_free(p);
        return NULL;
    }
    memcpy(copy, name.p, name.len);
    p->pool = pool;
    p->name = copy;
    mk_timer_init(&p->timer, on_process_timeout);
    p->in = p->out = p->errors.fd = -1;
    return p;
}

static void link_process(struct cgi_pool *pool, struct cgi_process *p)
{
    p->next = pool->processes;
    p->at = &pool->processes;
    if (p->next)
        p->next->at = &p->next;
    pool->processes = p;
}

struct cgi_process *cgi_process_start(struct cgi_pool *pool, struct cgi_queue_entry *queue_entry,
                                      const struct cgi_start *start, int *error)
{
    struct ends theirs = {-1, -1, -1};
    struct cgi_process *p = new_process(pool, start->script->file);
    *error = -ENOMEM;
    if (!p)
        return NULL;
    p->settings = start->settings;
    p->request = queue_entry->request;
    errno = EAGAIN;
    bool ok = open_pipes(p, &theirs, start->piped) && start_child(p, &theirs, start);
    *error = -errno;
    close_child_ends(&theirs);
    if (!ok) {
        free_process(p);
        return NULL;
    }
    link_process(pool, p);
    p->client = cgi_pool_use_slot(queue_entry);
    return p;
}
