/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_MS = 300,  /* delay of the first run; a `monkey explain` process exits before it */
    BUSY_MS = 10000, /* retry delay while the helper of an older configuration has the lock */
    AGAIN_MS = 10000,
    AGAIN_MAX_MS = 3600 * 1000,
    LOOK_S = 12 * 3600,       /* maximum interval between two runs, in case the clock is set */
    RUN_MS = 4 * 3600 * 1000, /* each step of a run has a timeout, so a longer run is a bug */
    JOB_MAX = 64 * 1024 * 1024,
    EXIT_BUSY = 75,
};

struct acme_helper_process {
    struct mk_worker *worker;
    const struct acme_helper_job *job;
    struct mk_timer timer; /* time of the next start; while the helper runs, its timeout */
    struct mk_subprocess *child;
    struct mk_watcher *watcher;
    int fd; /* read end of the helper's output */
    uint32_t again_ms;
    uint64_t next_s; /* delay until the next run, as the helper requested; 0: none yet */
    size_t len;
    char line[2048];
};

/* ---- Output ---- */

static void handle_helper_line(struct acme_helper_process *r, mk_str line)
{
    static const char letters[] = "EWID";
    char first = line.len > 2 && line.p[1] == ' ' ? line.p[0] : '\0';
    const char *level = first ? strchr(letters, first) : NULL;
    uint64_t n;
    if (first == 'N' && mk_num_parse(mk_str_skip(line, 2), &n))
        r->next_s = n ? n : 1;
    else if (level && *level)
        mk_worker_log(r->worker, (enum mk_log_level)(level - letters), "acme: %.*s",
                      MK_STR_ARG(mk_str_skip(line, 2)));
    else if (line.len) /* a library's message */
        mk_worker_log(r->worker, MK_LOG_WARN, "acme: %.*s", MK_STR_ARG(line));
}

static void split_lines(struct acme_helper_process *r, const char *p, size_t n)
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

static void close_helper_output(struct acme_helper_process *r)
{
    mk_watcher_free(r->watcher);
    r->watcher = NULL;
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->len = 0;
}

static void read_helper_output(struct acme_helper_process *r)
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

/* A draining worker renews nothing: its successor has its own helper process. */
static bool is_worker_draining(const struct mk_worker *w)
{
    struct mk_worker_stats s;
    for (size_t i = 0; mk_worker_stats_at(w, i, &s); i++)
        if (s.pid == getpid())
            return s.draining;
    return false;
}

static void schedule_retry(struct acme_helper_process *r)
{
    uint32_t by_chance;
    mk_random(&by_chance, sizeof by_chance);
    mk_timer_set(&r->timer, r->worker, r->again_ms + by_chance % (r->again_ms / 4));
    r->again_ms = r->again_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : r->again_ms * 2;
}

static void report_exit_status(const struct acme_helper_process *r, int status)
{
    const char *program = r->job->program;
    const char *state = r->job->settings->state.p;
    if (status == -EACCES && access(state, R_OK | W_OK | X_OK) < 0)
        mk_worker_log(r->worker, MK_LOG_ERROR,
                      "acme: workers cannot access the folder %s: %s; their user must own it", state,
                      strerror(errno));
    else if (status < 0)
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: cannot start %s: %s", program, strerror(-status));
    else if (WIFSIGNALED(status))
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s was killed by signal %d (%s)", program,
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s exited with status %d", program,
                      WEXITSTATUS(status));
}

static void on_helper_exit(void *ctx, int status)
{
    struct acme_helper_process *r = ctx;
    r->child = NULL;
    read_helper_output(r);
    close_helper_output(r);
    bool has_ended = status >= 0 && WIFEXITED(status);
    if (has_ended && WEXITSTATUS(status) == 0 && r->next_s) {
        r->again_ms = AGAIN_MS;
        mk_timer_set(&r->timer, r->worker, (uint32_t)(r->next_s < LOOK_S ? r->next_s : LOOK_S) * 1000);
    } else if (has_ended && WEXITSTATUS(status) == EXIT_BUSY) {
        mk_timer_set(&r->timer, r->worker, BUSY_MS);
    } else {
        report_exit_status(r, status);
        schedule_retry(r);
    }
}

/* ---- Start ---- */

/* Uses a memory file, because it holds text of any length and is complete before the helper starts. */
static int open_job_file(const struct acme_helper_job *job)
{
    struct mk_buf text = mk_buf_growing(JOB_MAX);
    acme_helper_job_write_json(job, &text);
    int fd = text.failed ? -1 : memfd_create("acme", MFD_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text.p, text.len) == (ssize_t)text.len && lseek(fd, 0, SEEK_SET) == 0;
    mk_buf_free(&text);
    if (fd >= 0 && !ok) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool spawn_helper(struct acme_helper_process *r, int in, int out)
{
    static const char *const passed[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",     "ALL_PROXY",
                                         "no_proxy",    "NO_PROXY",    "SSL_CERT_FILE", "SSL_CERT_DIR"};
    enum { PASSED = MK_LEN(passed) };
    const char *argv[] = {r->job->program, NULL}, *envp[PASSED + 2] = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    for (size_t i = 0, n = 1; i < PASSED && !text.failed; i++) {
        const char *value = getenv(passed[i]);
        size_t from = text.len;
        if (!value)
            continue;
        mk_buf_addf(&text, "%s=%s", passed[i], value);
        mk_buf_add_char(&text, '\0');
        if (!text.failed)
            envp[n++] = buf + from;
    }
    const struct mk_subprocess_options o = {
        .argv = argv, .envp = envp, .cwd = r->job->settings->state.p, .in = in, .out = out, .err = out};
    r->child = mk_subprocess_start(r->worker, &o, on_helper_exit, r);
    return r->child;
}

static bool start_helper(struct acme_helper_process *r)
{
    int ends[2] = {-1, -1}, in = open_job_file(r->job);
    bool ok = in >= 0 && pipe2(ends, O_CLOEXEC) == 0;
    r->next_s = 0;
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

static void on_start_timer(struct mk_timer *t)
{
    struct acme_helper_process *r = MK_CONTAINER(t, struct acme_helper_process, timer);
    if (r->child) {
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: %s timed out", r->job->program);
        mk_subprocess_signal(r->child, SIGKILL);
    } else if (is_worker_draining(r->worker)) {
        return;
    } else if (start_helper(r)) {
        mk_timer_set(&r->timer, r->worker, RUN_MS);
    } else {
        close_helper_output(r);
        mk_worker_log(r->worker, MK_LOG_ERROR, "acme: cannot start %s", r->job->program);
        schedule_retry(r);
    }
}

struct acme_helper_process *acme_helper_process_start(struct mk_worker *worker,
                                                      const struct acme_helper_job *job)
{
    struct acme_helper_process *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct acme_helper_process){.worker = worker, .job = job, .fd = -1, .again_ms = AGAIN_MS};
    mk_timer_init(&r->timer, on_start_timer);
    mk_timer_set(&r->timer, r->worker, FIRST_MS);
    return r;
}

void acme_helper_process_stop(struct acme_helper_process *r)
{
    if (!r)
        return;
    mk_timer_stop(&r->timer);
    mk_subprocess_kill(r->child);
    close_helper_output(r);
    mk_mem_free(r);
}
