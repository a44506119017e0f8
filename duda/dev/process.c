/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child after fork(), and so must not allocate memory before exec(). */
static void exec_program(char **argv, int out, int err, pid_t parent)
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

static pid_t fork_and_exec(char **argv, int out, int err)
{
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        exec_program(argv, out, err, parent);
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
    c->pid = fork_and_exec(argv, out[1], err[1]);
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
    c->pid = fork_and_exec(argv, out, STDERR_FILENO);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    return report_start_error(strerror(errno));
}

bool dev_process_start_piped_stderr(struct dev_process *c, struct dev_argv *args)
{
    char *argv[DEV_ARGV_MAX + 1];
    int err[2];
    *c = (struct dev_process){.out = -1, .err = -1};
    if (!dev_argv_to_array(args, argv))
        return report_start_error("its command line is too long");
    if (pipe2(err, O_CLOEXEC) < 0)
        return report_start_error(strerror(errno));
    c->pid = fork_and_exec(argv, STDOUT_FILENO, err[1]);
    close(err[1]);
    c->err = err[0];
    (void)fcntl(c->err, F_SETFL, O_NONBLOCK);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    dev_process_close_pipes(c);
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

/* Waits for output. Returns false if there is nothing more to wait for. */
static bool wait_readable(int fd, pid_t pid, struct mk_buf *output)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = interrupt_fd, .events = POLLIN}};
    int n = poll(fds, 2, PATIENCE_S * 1000);
    if (n < 0)
        return errno == EINTR;
    if (n > 0 && !fds[1].revents)
        return true;
    kill_process_group(pid);
    if (n == 0)
        mk_buf_addf(output, "killed after %d s without progress\n", PATIENCE_S);
    return false;
}

static void read_all_output(int fd, pid_t pid, struct mk_buf *output)
{
    char buf[4096];
    ssize_t n = -1;
    while (n && wait_readable(fd, pid, output))
        if ((n = read(fd, buf, sizeof buf)) > 0)
            mk_buf_add(output, mk_str_of(buf, (size_t)n));
        else if (n < 0 && errno != EINTR)
            return;
}

int dev_process_run(struct dev_argv *args, struct mk_buf *output)
{
    char *argv[DEV_ARGV_MAX + 1];
    int fds[2], status = 0;
    if (!dev_argv_to_array(args, argv)) {
        mk_buf_add(output, MK_STR("the command line of the program is too long\n"));
        return 127;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        mk_buf_addf(output, "%s: %s\n", argv[0], strerror(errno));
        return 127;
    }
    pid_t pid = fork_and_exec(argv, fds[1], fds[1]);
    close(fds[1]);
    if (pid < 0)
        mk_buf_addf(output, "%s: %s\n", argv[0], strerror(errno));
    else
        read_all_output(fds[0], pid, output);
    close(fds[0]);
    if (pid < 0)
        return 127;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
