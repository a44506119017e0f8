/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/daemon.h"
#include "os/fd.h"
#include "os/fd_passing.h"
#include "os/proc.h"
#include "os/sandbox.h"

enum { SOCKET = STDERR_FILENO + 1, SIGNALS }; /* our two fixed descriptors */

struct child {
    uint32_t id;
    pid_t pid;
};

struct spawner {
    const struct mk_spawner_policy *policy;
    char *room; /* buffer for one message */
    struct child *children;
    size_t n, cap;
};

/* ---- Starting ---- */

/* Returns the next string of *rest; NULL: unterminated. */
static char *next_string(mk_str *rest)
{
    size_t len = mk_str_find(*rest, '\0');
    char *text = (char *)(uintptr_t)rest->p;
    *rest = mk_str_skip(*rest, len + 1);
    return len == MK_STR_NONE ? NULL : text;
}

static bool next_strings(mk_str *rest, char **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(list[i] = next_string(rest)))
            return false;
    return true;
}

static pid_t spawn_program(const struct mk_spawner_policy *policy, const struct mk_spawner_request *q,
                           mk_str text, const int *fds)
{
    struct mk_spawn s = {.cwd = next_string(&text), .fds = {-1, -1, -1}};
    if (!s.cwd || q->argc < 1 || q->argc > text.len || q->envc > text.len)
        return -EINVAL;
    char **list = mk_mem_zalloc((size_t)q->argc + q->envc + 2, sizeof *list);
    if (!list)
        return -ENOMEM;
    s.argv = list;
    s.envp = list + q->argc + 1;
    memcpy(s.limits, q->limits, sizeof s.limits);
    for (unsigned i = 0; i < 3; i++)
        if (q->fds & 1u << i) {
            s.fds[i] = *fds++;
            if (!q->keeps_nonblocking)
                (void)!mk_fd_set_block(s.fds[i]); /* programs expect blocking streams */
        }
    pid_t pid = -EINVAL;
    if (next_strings(&text, list, q->argc) && next_strings(&text, list + q->argc + 1, q->envc))
        pid = policy->allows(policy->ctx, s.argv, s.envp) ? mk_spawn(&s) : -EPERM;
    mk_mem_free(list);
    return pid;
}

static bool grow_children(struct spawner *s)
{
    if (s->n < s->cap)
        return true;
    size_t cap = s->cap ? 2 * s->cap : 16;
    struct child *more = mk_mem_realloc(s->children, cap * sizeof *more);
    if (!more)
        return false;
    s->children = more;
    s->cap = cap;
    return true;
}

static _Noreturn void kill_all_and_exit(const struct spawner *s)
{
    for (size_t i = 0; i < s->n; i++)
        kill(-s->children[i].pid, SIGKILL);
    _exit(0);
}

/* Sends the exit status to the worker. Blocks while the socket is full, because a busy worker reads it
 * later. */
static void send_exit_status(const struct spawner *s, uint32_t id, int status)
{
    const struct mk_spawner_answer a = {.id = id, .status = status};
    struct pollfd p = {.fd = SOCKET, .events = POLLOUT};
    while (send(SOCKET, &a, sizeof a, MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN)
            (void)poll(&p, 1, -1);
        else if (errno != EINTR)
            kill_all_and_exit(s);
    }
}

static void start_child(struct spawner *s, const struct mk_spawner_request *q, mk_str text, const int *fds)
{
    pid_t pid = grow_children(s) ? spawn_program(s->policy, q, text, fds) : -ENOMEM;
    if (pid < 0)
        send_exit_status(s, q->id, pid);
    else
        s->children[s->n++] = (struct child){.id = q->id, .pid = pid};
}

static void signal_child(const struct spawner *s, const struct mk_spawner_request *q)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->children[i].id == q->id)
            kill(-s->children[i].pid, q->signal);
}

/* ---- Serving ---- */

static void handle_request(struct spawner *s)
{
    struct mk_spawner_request q;
    int fds[MK_FD_PASSING_MAX] = {-1, -1, -1};
    ssize_t n =
        mk_fd_passing_receive(SOCKET, s->room, sizeof q + MK_SPAWNER_TEXT, fds); /* poll() has reported a
                                                                                    message */
    if (n == -EPIPE)
        kill_all_and_exit(s);
    if (n < 0 && n != -EMSGSIZE)
        return;
    memcpy(&q, s->room, sizeof q); /* the header is valid even if its descriptors could not be received */
    if (n == -EMSGSIZE)
        send_exit_status(s, q.id, -EMFILE);
    else if ((size_t)n < sizeof q)
        kill_all_and_exit(s);
    else if (q.kind == MK_SPAWNER_START)
        start_child(s, &q, mk_str_of(s->room + sizeof q, (size_t)n - sizeof q), fds);
    else
        signal_child(s, &q);
    for (size_t i = 0; i < MK_FD_PASSING_MAX; i++)
        mk_fd_close(&fds[i]);
}

static void reap_children(struct spawner *s)
{
    struct signalfd_siginfo info;
    int status;
    (void)!read(SIGNALS, &info, sizeof info);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < s->n; i++)
            if (s->children[i].pid == pid) {
                uint32_t id = s->children[i].id;
                s->children[i] = s->children[--s->n];
                send_exit_status(s, id, status);
                break;
            }
}

/* Opens /dev/null as the standard streams, blocks signals, and closes all other descriptors, so that none
 * leaks into a program. */
static mk_err isolate_spawner_process(int socket)
{
    sigset_t all, children;
    sigfillset(&all);
    signal(SIGCHLD, SIG_DFL);             /* otherwise children could not be waited for */
    sigprocmask(SIG_SETMASK, &all, NULL); /* signals are meant for our worker, or for the whole session */
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    int null = mk_daemon_open_null();
    if (null < 0)
        return null;
    int high = fcntl(socket, F_DUPFD_CLOEXEC, SIGNALS + 1); /* above the descriptor numbers used below */
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (dup2(null, i) < 0)
            return mk_err_last();
    if (high < 0 || dup3(high, SOCKET, O_CLOEXEC) < 0)
        return mk_err_last();
    mk_err e = mk_fd_set_block(SOCKET); /* sending blocks while the worker is busy */
    if (e)
        return e;
    mk_fd_close_from(SIGNALS);
    int fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd == SIGNALS ? 0 : -EBADF;
}

static _Noreturn void run_spawner(int socket, char *buf, const struct mk_spawner_policy *policy)
{
    struct spawner s = {.policy = policy, .room = buf};
    mk_proc_protect_memory(); /* our memory is a copy of the worker's, and programs, which run as the same
                               * user, must not read it */
    if (isolate_spawner_process(socket))
        _exit(1);
    mk_proc_set_name("monkey: spawner");
    if (policy->is_confined)
        mk_sandbox_scope_signals();
    for (;;) {
        struct pollfd p[] = {{.fd = SOCKET, .events = POLLIN}, {.fd = SIGNALS, .events = POLLIN}};
        if (poll(p, MK_LEN(p), -1) < 0)
            continue;
        if (p[1].revents)
            reap_children(&s);
        if (p[0].revents)
            handle_request(&s);
    }
}

static mk_err fork_spawner(struct mk_spawner *s, char *buf, const struct mk_spawner_policy *policy)
{
    int theirs;
    mk_err e = mk_fd_passing_pair(&s->fd, &theirs);
    if (e)
        return e;
    s->pid = fork();
    if (s->pid == 0)
        run_spawner(theirs, buf, policy);
    e = s->pid < 0 ? mk_err_last() : 0;
    mk_fd_close(&theirs);
    if (e)
        mk_fd_close(&s->fd);
    return e;
}

/* Allocates the message buffer of the spawner before the fork, so that this function can report a lack of
 * memory. */
mk_err mk_spawner_start(struct mk_spawner *s, const struct mk_spawner_policy *policy)
{
    char *buf = mk_mem_alloc(sizeof(struct mk_spawner_request) + MK_SPAWNER_TEXT);
    if (!buf)
        return -ENOMEM;
    mk_err e = fork_spawner(s, buf, policy);
    mk_mem_free(buf);
    return e;
}
