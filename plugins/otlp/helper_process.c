/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <monkey/clock.h>
#include <monkey/stats.h>
#include <monkey/subprocess.h>
#include <monkey/timer.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_MS = 200, /* delay of the first start; a `monkey explain` process exits before it */
    AGAIN_MS = 1000,
    AGAIN_MAX_MS = 60 * 1000,
    STABLE_MS = 60 * 1000, /* a helper that has run for so long was started successfully */
    STOP_MS = 1000,
    ENVIRONMENT_MAX = 96 * 1024,
    VARIABLES_MAX = 24,
};

struct otlp_helper_process {
    struct mk_worker *worker;
    const struct otlp_helper_job *job;
    uint64_t *cells;
    struct mk_timer timer; /* time of the next start; while the helper runs, when it counts as stable */
    struct mk_subprocess *child;
    struct mk_watcher *watcher;
    int fd; /* read end of the helper's output */
    uint32_t again_ms;
    bool is_draining;
    uint64_t read, exported, lost; /* spans, as the helper has reported them */
    size_t len;
    char line[2048];
};

/* ---- Output ---- */

static void count(struct otlp_helper_process *h, unsigned metric, uint64_t *total, uint64_t now)
{
    if (now > *total && h->cells)
        mk_stat_add(&h->cells[metric], now - *total);
    *total = now;
}

/* Parses `READ EXPORTED LOST`: the number of spans since the helper was started. */
static void handle_counters(struct otlp_helper_process *h, mk_str line)
{
    uint64_t n[3];
    for (size_t i = 0; i < MK_LEN(n); i++)
        if (!mk_num_parse(mk_str_cut(&line, ' '), &n[i]))
            return;
    h->read = n[0];
    count(h, OTLP_STAT_EXPORTED, &h->exported, n[1]);
    count(h, OTLP_STAT_LOST, &h->lost, n[2]);
}

static void handle_line(struct otlp_helper_process *h, mk_str line)
{
    static const char letters[] = "EWID";
    char first = line.len > 2 && line.p[1] == ' ' ? line.p[0] : '\0';
    const char *level = first ? strchr(letters, first) : NULL;
    if (first == 'C')
        handle_counters(h, mk_str_skip(line, 2));
    else if (level)
        mk_worker_log(h->worker, (enum mk_log_level)(level - letters), "otlp: %.*s",
                      MK_STR_ARG(mk_str_skip(line, 2)));
    else if (line.len) /* a library's message */
        mk_worker_log(h->worker, MK_LOG_WARN, "otlp: %.*s", MK_STR_ARG(line));
}

static void split_lines(struct otlp_helper_process *h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n' && h->len < sizeof h->line)
            h->line[h->len++] = p[i] ? p[i] : '?';
        if (p[i] != '\n')
            continue;
        handle_line(h, mk_str_of(h->line, h->len));
        h->len = 0;
    }
}

static void read_output(struct otlp_helper_process *h)
{
    char piece[4096];
    ssize_t n;
    while (h->fd >= 0 && ((n = read(h->fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            split_lines(h, piece, (size_t)n);
}

static void close_output(struct otlp_helper_process *h)
{
    mk_watcher_free(h->watcher);
    h->watcher = NULL;
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
    h->len = 0;
}

static void on_readable(void *ctx, unsigned which)
{
    (void)which;
    read_output(ctx);
}

/* ---- End ---- */

/* Spans that an exited helper has read but neither exported nor counted are lost. */
static void count_unfinished(struct otlp_helper_process *h)
{
    if (h->read > h->exported + h->lost)
        count(h, OTLP_STAT_LOST, &h->lost, h->read - h->exported);
    h->read = h->exported = h->lost = 0;
}

static void report_exit(const struct otlp_helper_process *h, int status)
{
    const char *program = h->job->program;
    if (status < 0)
        mk_worker_log(h->worker, MK_LOG_ERROR, "otlp: cannot start %s: %s", program, strerror(-status));
    else if (WIFSIGNALED(status))
        mk_worker_log(h->worker, MK_LOG_ERROR, "otlp: %s was killed by signal %d (%s); restarting it",
                      program, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        mk_worker_log(h->worker, MK_LOG_ERROR, "otlp: %s exited with status %d; restarting it", program,
                      WEXITSTATUS(status));
}

static void schedule_restart(struct otlp_helper_process *h)
{
    mk_timer_set(&h->timer, h->worker, h->again_ms);
    h->again_ms = h->again_ms * 2 < AGAIN_MAX_MS ? h->again_ms * 2 : AGAIN_MAX_MS;
}

static void on_exit_of_helper(void *ctx, int status)
{
    struct otlp_helper_process *h = ctx;
    h->child = NULL;
    read_output(h);
    close_output(h);
    count_unfinished(h);
    if (h->is_draining) {
        mk_timer_stop(&h->timer);
        mk_worker_unref(h->worker);
        return;
    }
    report_exit(h, status);
    schedule_restart(h);
}

/* ---- Start ---- */

enum { PASSED = 9 };

const char *const otlp_helper_arguments[] = {NULL};

/* The first ones come from the environment of the server. */
const char *const otlp_helper_variables[] = {
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    [PASSED] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_SERVICE_NAME",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "MONKEY_OTLP_HEADERS",
    NULL,
};

/* The environment of the helper, which only the user of the workers can read, unlike arguments: headers may be
 * secret. */
struct environment {
    struct mk_buf text;
    const char *variables[VARIABLES_MAX + 1];
    size_t n;
};

static void add_variable(struct environment *e, const char *name, mk_str value)
{
    size_t from = e->text.len;
    mk_buf_addf(&e->text, "%s=%.*s", name, MK_STR_ARG(value));
    mk_buf_add_char(&e->text, '\0');
    if (!e->text.failed && e->n < VARIABLES_MAX)
        e->variables[e->n++] = e->text.p + from;
}

static void add_number(struct environment *e, const char *name, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    add_variable(e, name, mk_str_from_c(text));
}

static void add_headers(struct environment *e, const struct otlp_settings *s)
{
    size_t from = e->text.len;
    mk_buf_add(&e->text, MK_STR("MONKEY_OTLP_HEADERS="));
    for (size_t i = 0; i < s->n_headers; i++)
        mk_buf_addf(&e->text, "%.*s: %.*s\n", MK_STR_ARG(s->headers[i].name),
                    MK_STR_ARG(s->headers[i].value));
    mk_buf_add_char(&e->text, '\0');
    if (!e->text.failed)
        e->variables[e->n++] = e->text.p + from;
}

static void fill_environment(struct environment *e, const struct otlp_settings *s)
{
    const char *const *passed = otlp_helper_variables;
    add_variable(e, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s->endpoint);
    add_variable(e, "OTEL_SERVICE_NAME", s->service);
    if (s->certificate.len)
        add_variable(e, "OTEL_EXPORTER_OTLP_CERTIFICATE", s->certificate);
    add_number(e, "OTEL_EXPORTER_OTLP_TIMEOUT", s->timeout_ms);
    add_number(e, "OTEL_BSP_SCHEDULE_DELAY", s->interval_ms);
    add_number(e, "OTEL_BSP_MAX_QUEUE_SIZE", s->queue);
    for (size_t i = 0; i < PASSED; i++)
        if (getenv(passed[i]))
            add_variable(e, passed[i], mk_str_from_c(getenv(passed[i])));
    add_headers(e, s);
}

static bool spawn_helper(struct otlp_helper_process *h, int out)
{
    char *buf = mk_mem_zalloc(1, ENVIRONMENT_MAX);
    struct environment e = {.text = mk_buf_fixed(buf, buf ? ENVIRONMENT_MAX : 0)};
    fill_environment(&e, h->job->settings);
    const char *argv[] = {h->job->program, NULL};
    /* All helpers read from the same open file description: a helper that is draining must not block in read() when
     * the next one starts. */
    const struct mk_subprocess_options o = {.argv = argv,
                                            .envp = e.variables,
                                            .in = h->job->read_fd,
                                            .out = out,
                                            .err = out,
                                            .keeps_nonblocking = true};
    h->child = e.text.failed ? NULL : mk_subprocess_start(h->worker, &o, on_exit_of_helper, h);
    mk_mem_free(buf);
    return h->child;
}

static bool start_helper(struct otlp_helper_process *h)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    h->fd = ends[0];
    bool ok = fcntl(h->fd, F_SETFL, O_NONBLOCK) == 0 &&
              (h->watcher = mk_watcher_new(h->worker, h->fd, MK_READABLE, on_readable, h)) &&
              spawn_helper(h, ends[1]);
    close(ends[1]);
    return ok;
}

static void on_timer(struct mk_timer *t)
{
    struct otlp_helper_process *h = MK_CONTAINER(t, struct otlp_helper_process, timer);
    if (h->child) {
        h->again_ms = AGAIN_MS;
    } else if (start_helper(h)) {
        mk_timer_set(&h->timer, h->worker, STABLE_MS);
    } else {
        close_output(h);
        mk_worker_log(h->worker, MK_LOG_ERROR, "otlp: cannot start %s", h->job->program);
        schedule_restart(h);
    }
}

struct otlp_helper_process *otlp_helper_process_start(struct mk_worker *worker,
                                                      const struct otlp_helper_job *job, uint64_t *cells)
{
    struct otlp_helper_process *h = mk_mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    *h = (struct otlp_helper_process){
        .worker = worker, .job = job, .cells = cells, .fd = -1, .again_ms = AGAIN_MS};
    mk_timer_init(&h->timer, on_timer);
    mk_timer_set(&h->timer, h->worker, FIRST_MS);
    return h;
}

void otlp_helper_process_drain(struct otlp_helper_process *h)
{
    if (!h || h->is_draining)
        return;
    h->is_draining = true;
    mk_timer_stop(&h->timer);
    if (!h->child)
        return;
    mk_worker_ref(h->worker);
    mk_subprocess_signal(h->child, SIGTERM);
}

/* The worker stops without having drained: gives the helper a moment to export what it has. */
static void wait_for_exit(struct otlp_helper_process *h)
{
    uint64_t end = mk_clock_us() / 1000 + STOP_MS;
    mk_subprocess_signal(h->child, SIGTERM);
    for (uint64_t now; (now = mk_clock_us() / 1000) < end;) {
        struct pollfd p = {.fd = h->fd, .events = POLLIN};
        if (poll(&p, 1, (int)(end - now)) < 0 && errno != EINTR)
            return;
        read_output(h);
        if (p.revents & POLLHUP)
            return;
    }
}

void otlp_helper_process_stop(struct otlp_helper_process *h)
{
    if (!h)
        return;
    mk_timer_stop(&h->timer);
    if (h->child && !h->is_draining)
        wait_for_exit(h);
    mk_subprocess_kill(h->child);
    read_output(h);
    close_output(h);
    count_unfinished(h);
    mk_mem_free(h);
}
