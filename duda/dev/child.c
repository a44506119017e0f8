/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

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

/* In the child: no memory may be allocated here, the program must only become another one. */
static void become(char **argv, int out, int err, pid_t parent)
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

static int ending = -1;

void dev_child_end_with(int fd)
{
    ending = fd;
}

int dev_child_ending(void)
{
    return ending;
}

static pid_t start(char **argv, int out, int err)
{
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(argv, out, err, parent);
    return pid;
}

static bool complain(const char *what)
{
    fprintf(stderr, "monkey: cannot start a program: %s\n", what);
    return false;
}

static void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

bool dev_child_start(struct dev_child *c, struct dev_words *words)
{
    char *argv[DEV_WORDS_MAX + 1];
    int out[2], err[2];
    *c = (struct dev_child){.out = -1, .err = -1};
    if (!dev_words_argv(words, argv))
        return complain("its command line is too long");
    if (pipe2(out, O_CLOEXEC) < 0)
        return complain(strerror(errno));
    if (pipe2(err, O_CLOEXEC) < 0) {
        close_pair(out);
        return complain(strerror(errno));
    }
    c->pid = start(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    c->out = out[0];
    c->err = err[0];
    (void)fcntl(c->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(c->err, F_SETFL, O_NONBLOCK);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    dev_child_close(c);
    return complain(strerror(errno));
}

bool dev_child_start_to(struct dev_child *c, struct dev_words *words, int out)
{
    char *argv[DEV_WORDS_MAX + 1];
    *c = (struct dev_child){.out = -1, .err = -1};
    if (!dev_words_argv(words, argv))
        return complain("its command line is too long");
    c->pid = start(argv, out, STDERR_FILENO);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    return complain(strerror(errno));
}

bool dev_child_start_heard(struct dev_child *c, struct dev_words *words)
{
    char *argv[DEV_WORDS_MAX + 1];
    int err[2];
    *c = (struct dev_child){.out = -1, .err = -1};
    if (!dev_words_argv(words, argv))
        return complain("its command line is too long");
    if (pipe2(err, O_CLOEXEC) < 0)
        return complain(strerror(errno));
    c->pid = start(argv, STDOUT_FILENO, err[1]);
    close(err[1]);
    c->err = err[0];
    (void)fcntl(c->err, F_SETFL, O_NONBLOCK);
    if (c->pid > 0)
        return true;
    c->pid = 0;
    dev_child_close(c);
    return complain(strerror(errno));
}

int dev_child_status(struct dev_child *c)
{
    int status;
    if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return -1;
    c->pid = 0;
    return status;
}

void dev_child_close(struct dev_child *c)
{
    if (c->out >= 0)
        close(c->out);
    if (c->err >= 0)
        close(c->err);
    c->out = c->err = -1;
    mk_buf_free(&c->rest[0]);
    mk_buf_free(&c->rest[1]);
}

void dev_child_stop(struct dev_child *c, int signal)
{
    if (c->pid > 0) {
        (void)kill(c->pid, signal);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        c->pid = 0;
    }
    dev_child_close(c);
}

/* ---- To the end ---- */

/* What it started ends, too. */
static void kill_group(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
}

/* False: there is nothing to wait for any more. */
static bool wait_for(int fd, pid_t pid, struct mk_buf *said)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = ending, .events = POLLIN}};
    int n = poll(fds, 2, PATIENCE_S * 1000);
    if (n < 0)
        return errno == EINTR;
    if (n > 0 && !fds[1].revents)
        return true;
    kill_group(pid);
    if (n == 0)
        mk_buf_addf(said, "it took more than %d s, and was ended\n", PATIENCE_S);
    return false;
}

static void read_all(int fd, pid_t pid, struct mk_buf *said)
{
    char room[4096];
    ssize_t n = -1;
    while (n && wait_for(fd, pid, said))
        if ((n = read(fd, room, sizeof room)) > 0)
            mk_buf_add(said, mk_str_of(room, (size_t)n));
        else if (n < 0 && errno != EINTR)
            return;
}

int dev_child_run(struct dev_words *words, struct mk_buf *said)
{
    char *argv[DEV_WORDS_MAX + 1];
    int fds[2], status = 0;
    if (!dev_words_argv(words, argv)) {
        mk_buf_add(said, MK_STR("the command line of the program is too long\n"));
        return 127;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        mk_buf_addf(said, "%s: %s\n", argv[0], strerror(errno));
        return 127;
    }
    pid_t pid = start(argv, fds[1], fds[1]);
    close(fds[1]);
    if (pid < 0)
        mk_buf_addf(said, "%s: %s\n", argv[0], strerror(errno));
    else
        read_all(fds[0], pid, said);
    close(fds[0]);
    if (pid < 0)
        return 127;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
