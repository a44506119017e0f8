/* SPDX-License-Identifier: Apache-2.0 */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/clock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../hook_file.h"

enum { POLL_MS = 50, GRACE_MS = 2000, LINES_MAX = 20, LINE_SIZE = 400, NAME_SIZE = 300, READS_MAX = 64 };

/* A running hook. */
struct hook {
    pid_t pid;
    int fd; /* read end of its output; -1: it closed the other end */
    unsigned lines;
    size_t len;
    char line[LINE_SIZE], last[LINE_SIZE];
};

/* ---- Start ---- */

/* Texts of one call, which live until exec. */
struct call {
    const char *argv[ACME_HOOK_WORDS_MAX + 4], *envp[ACME_HOOK_ENV_MAX + 6];
    char record[NAME_SIZE], env[4][NAME_SIZE + 32];
};

static void fill_call(struct call *c, const struct acme_job *job, const char *action, const char *domain,
                      const char *value)
{
    size_t n = 0, e = 0;
    (void)snprintf(c->record, sizeof c->record, "_acme-challenge.%s.", domain);
    for (; n < job->n_hook; n++)
        c->argv[n] = job->hook[n];
    c->argv[n++] = action;
    c->argv[n++] = c->record;
    c->argv[n++] = value;
    c->argv[n] = NULL;
    (void)snprintf(c->env[0], sizeof c->env[0], "ACME_ACTION=%s", action);
    (void)snprintf(c->env[1], sizeof c->env[1], "ACME_DOMAIN=%s", domain);
    (void)snprintf(c->env[2], sizeof c->env[2], "ACME_RECORD=%s", c->record);
    (void)snprintf(c->env[3], sizeof c->env[3], "ACME_VALUE=%s", value);
    for (size_t i = 0; i < job->n_hook_env; i++)
        c->envp[e++] = job->hook_env[i];
    c->envp[e++] =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"; /* the first PATH counts */
    for (size_t i = 0; i < MK_LEN(c->env); i++)
        c->envp[e++] = c->env[i];
    c->envp[e] = NULL;
}

/* Runs in the child. The process group lets the parent kill everything that the hook started. */
_Noreturn static void exec_hook(const struct call *c, int out)
{
    int null = open("/dev/null", O_RDONLY);
    if (setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != 1 && null >= 0 &&
        dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0 &&
        chdir("/") == 0)
        execve(c->argv[0], (char *const *)(uintptr_t)c->argv, (char *const *)(uintptr_t)c->envp);
    dprintf(out, "%s\n", strerror(errno));
    _exit(127);
}

static bool start_hook(struct hook *h, const struct call *c)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    h->fd = ends[0];
    h->pid = fork();
    if (h->pid == 0)
        exec_hook(c, ends[1]);
    int e = errno;
    close(ends[1]);
    if (h->pid < 0 || fcntl(h->fd, F_SETFL, O_NONBLOCK) < 0) {
        close(h->fd);
        errno = e;
        return false;
    }
    (void)setpgid(h->pid, h->pid); /* the child does the same; the first call counts */
    return true;
}

/* ---- Output ---- */

static void end_line(struct hook *h, const char *record)
{
    if (!h->len)
        return;
    h->line[h->len] = '\0';
    memcpy(h->last, h->line, h->len + 1);
    h->len = 0;
    if (h->lines++ < LINES_MAX)
        acme_report_log(MK_LOG_DEBUG, "%s: DNSHook: %s", record, h->last);
}

/* Reads a bounded part, so that endless output does not prevent the timeout. */
static void read_output(struct hook *h, const char *record)
{
    char piece[4096];
    ssize_t n;
    for (unsigned i = 0; i < READS_MAX && h->fd >= 0 && (n = read(h->fd, piece, sizeof piece)) >= 0; i++) {
        if (n == 0) {
            close(h->fd);
            h->fd = -1;
        }
        for (ssize_t k = 0; k < n; k++) {
            if (piece[k] == '\n')
                end_line(h, record);
            else if (h->len < LINE_SIZE - 1)
                h->line[h->len++] = piece[k] ? piece[k] : '?';
        }
    }
}

/* ---- End ---- */

static bool has_ended(struct hook *h, int *status)
{
    pid_t pid;
    while ((pid = waitpid(h->pid, status, WNOHANG)) < 0 && errno == EINTR)
        ;
    return pid == h->pid;
}

/* Waits until the hook has ended. Returns false on timeout; the hook is then killed. */
static bool await_hook(struct hook *h, const char *record, uint64_t timeout_s, int *status)
{
    int64_t until = (int64_t)mk_clock_ms() + (int64_t)timeout_s * 1000;
    bool in_time = true;
    while (!has_ended(h, status)) {
        struct pollfd p = {.fd = h->fd, .events = POLLIN};
        (void)poll(&p, 1, POLL_MS);
        read_output(h, record);
        int64_t late = (int64_t)mk_clock_ms() - until;
        if (late > 0)
            (void)kill(-h->pid, late < GRACE_MS && in_time ? SIGTERM : late < GRACE_MS ? 0 : SIGKILL);
        in_time &= late <= 0;
    }
    (void)kill(-h->pid, SIGKILL); /* whatever it left running */
    read_output(h, record);
    end_line(h, record);
    if (h->fd >= 0)
        close(h->fd);
    return in_time;
}

static bool check_status(const struct hook *h, const char *program, const char *action, const char *record,
                         int status, struct acme_error *f)
{
    const char *colon = h->last[0] ? ": " : "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status))
        return acme_error_set(f, "DNSHook %s %s %s was killed by signal %d%s%s", program, action, record,
                              WTERMSIG(status), colon, h->last);
    return acme_error_set(f, "DNSHook %s %s %s failed with status %d%s%s", program, action, record,
                          WEXITSTATUS(status), colon, h->last);
}

bool acme_hook_run(const struct acme_job *job, const char *action, const char *domain, const char *value,
                   struct acme_error *f)
{
    struct hook h = {.fd = -1};
    struct call c;
    int status = 0;
    const char *program = job->n_hook ? job->hook[0] : "";
    const char *problem =
        job->n_hook ? acme_hook_file_problem(program, geteuid()) : "no program is configured";
    if (problem)
        return acme_error_set(f, "DNSHook %s is not started: %s", program, problem);
    fill_call(&c, job, action, domain, value);
    if (!start_hook(&h, &c))
        return acme_error_set(f, "DNSHook %s cannot be started: %s", program, strerror(errno));
    if (!await_hook(&h, c.record, job->hook_timeout_s, &status))
        return acme_error_set(f, "DNSHook %s %s %s was killed: it ran for more than %llu s", program, action,
                              c.record, (unsigned long long)job->hook_timeout_s);
    return check_status(&h, program, action, c.record, status, f);
}
