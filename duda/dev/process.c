/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child after fork(), and so must not allocate memory before exec(). */
static void exec_program(char **argv, char **envp, int out, int err, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    if (envp)
        environ = envp;
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

enum { PATIENCE_S = 300 };

static int interrupt_fd = -1;

void dev_process_set_interrupt_fd(int fd)
{
    interrupt_fd = fd;
}

int dev_process_interrupt_fd(void)
{
    return interrupt_fd;
}

static pid_t fork_and_exec(char **argv, char **envp, int out, int err)
{
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        exec_program(argv, envp, out, err, parent);
    return pid;
}

static bool report_start_error(const char *problem)
{
    fprintf(stderr, "monkey: cannot start a program: %s\n", problem);
    return false;
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

bool dev_process_start(struct dev_process *c, struct dev_argv *args)
{
    char *argv[DEV_ARGV_MAX + 1];
    int out[2], err[2];
    *c = (struct dev_process){.out = -1, .err = -1};
    if (!dev_argv_to_array(args, argv))
        return report_start_error("its command line is too long");
    if (pipe2(out, O_CLOEXEC) < 0)
        return report_start_error(strerror(errno));
    if (pipe2(err, O_CLOEXEC) < 0) {
        close_pair(out);
        return report_start_error(strerror(errno));
    }
    c->pid = fork_and_exec(argv, args->envp, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    c->out = out[0];
    c->err = err[0];
    (void)fcntl(c->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(c->err, F_SETFL, O_NONBLOCK);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    dev_process_close_pipes(c);
    return report_start_error(strerror(errno));
}

bool dev_process_start_stdout_to(struct dev_process *c, struct dev_argv *args, int out)
{
    char *argv[DEV_ARGV_MAX + 1];
    *c = (struct dev_process){.out = -1, .err = -1};
    if (!dev_argv_to_array(args, argv))
        return report_start_error("its command line is too long");
    c->pid = fork_and_exec(argv, args->envp, out, STDERR_FILENO);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    return report_start_error(strerror(errno));
}

int dev_process_try_wait(struct dev_process *c)
{
    int status;
    if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return -1;
    c->pid = 0;
    return status;
}

void dev_process_close_pipes(struct dev_process *c)
{
    if (c->out >= 0)
        close(c->out);
    if (c->err >= 0)
        close(c->err);
    c->out = c->err = -1;
    mk_buf_free(&c->rest[0]);
    mk_buf_free(&c->rest[1]);
}

void dev_process_stop(struct dev_process *c, int signal)
{
    if (c->pid > 0) {
        (void)kill(c->pid, signal);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        c->pid = 0;
    }
    dev_process_close_pipes(c);
}

/* ---- Run to completion ---- */

/* Kills the process and its children. */
static void kill_process_group(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
}

enum { RUNNING_MAX = 16, NOT_STARTED = 127 };

/* The running processes. */
struct running {
    struct {
        pid_t pid;
        int fd;
        struct dev_process_job *job;
    } at[RUNNING_MAX];
    size_t n;
};

static void fail_to_start(struct dev_process_job *job, const char *program, const char *problem)
{
    mk_buf_addf(&job->output, "%s: %s\n", program, problem);
    job->code = NOT_STARTED;
}

static void start_job(struct running *r, struct dev_process_job *job)
{
    char *argv[DEV_ARGV_MAX + 1];
    int fds[2];
    if (!dev_argv_to_array(&job->args, argv)) {
        fail_to_start(job, "cannot start a program", "its command line is too long");
    } else if (pipe2(fds, O_CLOEXEC) < 0) {
        fail_to_start(job, argv[0], strerror(errno));
    } else {
        pid_t pid = fork_and_exec(argv, job->args.envp, fds[1], fds[1]);
        int e = errno;
        close(fds[1]);
        if (pid < 0) {
            close(fds[0]);
            fail_to_start(job, argv[0], strerror(e));
            return;
        }
        r->at[r->n].pid = pid;
        r->at[r->n].fd = fds[0];
        r->at[r->n++].job = job;
    }
}

static void finish_job(struct running *r, size_t i)
{
    int status = 0;
    while (waitpid(r->at[i].pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(r->at[i].fd);
    r->at[i].job->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    r->at[i] = r->at[--r->n];
}

static void kill_running_jobs(struct running *r, bool was_slow)
{
    while (r->n) {
        kill_process_group(r->at[0].pid);
        if (was_slow)
            mk_buf_addf(&r->at[0].job->output, "killed after %d s without progress\n", PATIENCE_S);
        finish_job(r, 0);
    }
}

/* Waits for output of the running jobs, and reads it. Returns false after an interrupt or a timeout, when all
 * jobs have been killed. */
static bool read_running_jobs(struct running *r)
{
    struct pollfd fds[RUNNING_MAX + 1];
    char buf[4096];
    const size_t n = r->n;
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = r->at[i].fd, .events = POLLIN};
    fds[n] = (struct pollfd){.fd = interrupt_fd, .events = POLLIN};
    int ready = poll(fds, n + 1, PATIENCE_S * 1000);
    if (ready < 0 && errno == EINTR)
        return true;
    if (ready <= 0 || fds[n].revents) {
        kill_running_jobs(r, ready == 0);
        return false;
    }
    for (size_t i = n; i-- > 0;) { /* backwards, because finish_job() moves the last job */
        ssize_t len = fds[i].revents ? read(fds[i].fd, buf, sizeof buf) : 1;
        if (fds[i].revents && len > 0)
            mk_buf_add(&r->at[i].job->output, mk_str_of(buf, (size_t)len));
        else if (len == 0 || (len < 0 && errno != EINTR))
            finish_job(r, i);
    }
    return true;
}

void dev_process_run_all(struct dev_process_job *jobs, size_t n)
{
    struct running r = {.n = 0};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t max = cpus < 1 ? 1 : cpus > RUNNING_MAX ? RUNNING_MAX : (size_t)cpus;
    bool goes_on = true;
    for (size_t i = 0; i < n; i++)
        jobs[i].code = NOT_STARTED;
    for (size_t next = 0; goes_on && (next < n || r.n);) {
        while (next < n && r.n < max)
            start_job(&r, &jobs[next++]);
        goes_on = r.n == 0 || read_running_jobs(&r);
    }
}

int dev_process_run(struct dev_argv *args, struct mk_buf *output)
{
    struct dev_process_job job = {.args = *args, .output = *output};
    dev_process_run_all(&job, 1);
    *args = job.args;
    *output = job.output;
    return job.code;
}
