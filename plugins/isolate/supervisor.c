/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "group_record.h"
#include "inner_server.h"
#include "lifecycle.h"
#include "log_forwarder.h"
#include "process.h"
#include "runtime_dir.h"

enum { SETTLED_MS = 60000, IDLE_CHECK_MS = 60000, CHECK_MS = 250, READS = 16 };

struct supervisor {
    const struct isolate_group *group;
    struct isolate_log_forwarder lines;
    int control, signals, ready,
        output; /* `ready`: socket for the readiness messages of the group's server */
    char ready_name[108];
    pid_t pid; /* pid of the group's server; 0: none */
    struct isolate_lifecycle life;
    uint64_t first_ms;
    bool settled; /* the master has detached from its terminal, or never will */
};

static uint64_t now_ms(void)
{
    return (uint64_t)isolate_process_now_ms();
}

static void reply_to_master(struct supervisor *k, bool serves)
{
    const struct isolate_supervisor_reply a = {.order = isolate_lifecycle_pop_reply(&k->life),
                                               .serves = serves};
    if (a.order)
        (void)!send(k->control, &a, sizeof a, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Sends SIGKILL to the whole process group, any other signal to the group's server. 0 sends no signal. */
static void signal_group(const struct supervisor *k, int signal)
{
    if (k->pid && signal)
        (void)kill(signal == SIGKILL ? -k->pid : k->pid, signal);
}

/* ---- Starting the server of the group ---- */

/* The address is in the abstract namespace, so that the group's user needs no writable folder. */
static socklen_t notify_socket_address(const struct isolate_record *r, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "%s/%d", isolate_runtime_dir_name(r),
                     (int)getpid());
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(n > 0 ? n : 0));
}

/* Receives the credentials of senders, because other processes can also write to the socket. */
static int open_notify_socket(const struct isolate_record *r)
{
    struct sockaddr_un at;
    socklen_t len = notify_socket_address(r, &at);
    int on = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&at, len) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static char **build_environment(const struct supervisor *k)
{
    extern char **environ;
    static char buf[5][160];
    (void)snprintf(buf[0], sizeof buf[0], "LISTEN_FDS=1");
    (void)snprintf(buf[1], sizeof buf[1], "LISTEN_PID=%d", (int)getpid());
    (void)snprintf(buf[2], sizeof buf[2], "NOTIFY_SOCKET=@%s", k->ready_name);
    (void)snprintf(buf[3], sizeof buf[3], ISOLATE_VARIABLE "=%d", ISOLATE_SCOREBOARD_FD);
    (void)snprintf(buf[4], sizeof buf[4], MK_STAT_FILE_VARIABLE "=%d", ISOLATE_STATISTICS_FD);
    char *const ours[] = {buf[0], buf[1], buf[2], buf[3], buf[4], NULL};
    return isolate_environment_build(k->group, environ, ours);
}

static _Noreturn void exec_group_server(struct supervisor *k, int out, pid_t parent)
{
    const struct isolate_group *g = k->group;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bool ok = null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
              dup2(out, STDERR_FILENO) >= 0;
    for (int fd = ISOLATE_LISTEN_FD; fd <= ISOLATE_STATISTICS_FD; fd++)
        ok = ok && fcntl(fd, F_SETFD, 0) == 0;
    bool is_limited = isolate_cgroup_has_limits(&g->settings->limits);
    if (is_limited && write(ISOLATE_LIMITS_FD, "0", 1) < 0)
        ok = dprintf(STDERR_FILENO, "cannot join its control group: %s\n", strerror(errno)) < 0;
    int e = isolate_process_drop_privileges(g, g->settings->memory);
    if (e)
        dprintf(STDERR_FILENO, "cannot switch to its user: %s\n", strerror(-e));
    (void)setpgid(0, 0);                    /* a process group, which can be killed as a whole */
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* set here, because a change of user resets it */
    char **environment = build_environment(k);
    if (!ok || e || !environment || getppid() != parent)
        _exit(127);
    isolate_process_exec(false, ISOLATE_CONFIG_FD, environment);
}

static void report_start_failure(struct supervisor *k)
{
    isolate_log_forwarder_printf(&k->lines, "error", "cannot start the group: %s", strerror(errno));
    isolate_lifecycle_started(&k->life, now_ms(), false);
}

static void start_group_server(struct supervisor *k)
{
    int ends[2];
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0) {
        report_start_failure(k);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        exec_group_server(k, ends[1], self);
    if (pid < 0) {
        report_start_failure(k);
    } else {
        (void)setpgid(pid, pid);
        isolate_lifecycle_started(&k->life, now_ms(), true);
    }
    close(ends[1]);
    if (k->output >= 0)
        close(k->output);
    isolate_log_forwarder_flush(&k->lines); /* there is no EOF while an old process holds the pipe open */
    k->output = ends[0];
    (void)fcntl(k->output, F_SETFL, O_NONBLOCK);
    k->pid = pid > 0 ? pid : 0;
    k->lines.group = k->pid;
}

/* ---- Events ---- */

/* Reads at most one pipe buffer at a time, so that a group that never stops writing cannot block commands. */
static void forward_output(struct supervisor *k)
{
    char buf[4096];
    for (int i = 0; i < READS && k->output >= 0; i++) {
        ssize_t n = read(k->output, buf, sizeof buf);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0)
            isolate_log_forwarder_append(&k->lines, mk_str_of(buf, (size_t)n));
        if (n == 0) {
            close(k->output);
            k->output = -1;
            isolate_log_forwarder_flush(&k->lines);
        }
    }
}

static bool is_sent_by_group(const struct supervisor *k, struct msghdr *m)
{
    struct ucred who;
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    return k->pid && who.pid == k->pid;
}

static void read_notify_socket(struct supervisor *k)
{
    char buf[256];
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } extra;
    for (;;) {
        struct iovec text = {.iov_base = buf, .iov_len = sizeof buf - 1};
        struct msghdr m = {.msg_iov = &text,
                           .msg_iovlen = 1,
                           .msg_control = extra.bytes,
                           .msg_controllen = sizeof extra.bytes};
        ssize_t n = recvmsg(k->ready, &m, MSG_DONTWAIT);
        if (n < 0)
            return;
        buf[n] = '\0';
        if (!is_sent_by_group(k, &m))
            continue;
        if (strncmp(buf, "RELOADING=1", 11) == 0)
            isolate_lifecycle_reloading(&k->life);
        else if (strncmp(buf, "READY=1", 7) == 0 && isolate_lifecycle_ready(&k->life))
            reply_to_master(k, true);
    }
}

static void shut_down_group(struct supervisor *k, int signal)
{
    signal_group(k, isolate_lifecycle_shut_down(&k->life, now_ms(), signal));
}

static void run_master_commands(struct supervisor *k)
{
    char order;
    ssize_t n;
    if (k->control < 0)
        return;
    while ((n = recv(k->control, &order, 1, MSG_DONTWAIT)) > 0) {
        if (order == ISOLATE_RELOAD)
            signal_group(k, isolate_lifecycle_reload(&k->life));
        else if (order == ISOLATE_END)
            k->life.stay = ISOLATE_IS_REMOVED;
        else if (order == ISOLATE_STOP)
            shut_down_group(k, SIGTERM);
    }
    if (n != 0)
        return;
    k->control = -1; /* the master has exited or has another supervisor */
    if (k->life.stay == ISOLATE_STAYS)
        k->life.stay = ISOLATE_LEAVES;
}

static void log_unexpected_exit(struct supervisor *k, int status)
{
    if (WIFSIGNALED(status))
        isolate_log_forwarder_printf(&k->lines, "error",
                                     "the group was killed by signal %d (%s): restarting it",
                                     WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        isolate_log_forwarder_printf(&k->lines, "error",
                                     "the group exited unexpectedly with code %d: restarting it",
                                     WEXITSTATUS(status));
}

static void on_group_exit(struct supervisor *k, int status)
{
    forward_output(k);
    k->pid = 0;
    if (!isolate_lifecycle_died(&k->life, now_ms()))
        return;
    log_unexpected_exit(k, status);
    reply_to_master(k, false);
}

static void reap_children(struct supervisor *k)
{
    struct signalfd_siginfo info;
    int status;
    while (read(k->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            shut_down_group(k, SIGQUIT);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == k->pid)
            on_group_exit(k, status);
}

/* ---- Main loop ---- */

/* The master of a daemon detaches from its terminal some time after it has started the supervisor. */
static void detach_from_terminal(struct supervisor *k, uint64_t now)
{
    char path[40], leads_to[32];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/2", (int)k->group->record->master);
    ssize_t n = readlink(path, leads_to, sizeof leads_to);
    if (n == 9 && memcmp(leads_to, "/dev/null", 9) == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(null, STDERR_FILENO);
        close(null);
        k->settled = true;
    }
    k->settled = k->settled || now > k->first_ms + SETTLED_MS;
}

/* Polls, because the supervisor gets no event when a worker exits or the master detaches. */
static int poll_timeout_ms(const struct supervisor *k)
{
    uint64_t left = isolate_lifecycle_timeout_ms(&k->life, now_ms());
    uint64_t most = k->settled && k->life.stay == ISOLATE_STAYS ? IDLE_CHECK_MS : CHECK_MS;
    return (int)(left > most ? most : left);
}

/* Kills a server that hangs at startup. The server's own log names the worker. */
static void kill_hung_start(struct supervisor *k)
{
    isolate_log_forwarder_printf(&k->lines, "error",
                                 "the group did not start within 60 seconds: killed it, and restarting it");
    reply_to_master(k, false);
    isolate_lifecycle_restart(&k->life);
    signal_group(k, SIGKILL);
}

static void run_due_lifecycle_action(struct supervisor *k)
{
    switch (isolate_lifecycle_due_action(&k->life, now_ms())) {
    case ISOLATE_DUE_START:
        start_group_server(k);
        break;
    case ISOLATE_DUE_KILL:
        signal_group(k, SIGKILL);
        break;
    case ISOLATE_DUE_KILL_START:
        kill_hung_start(k);
        break;
    case ISOLATE_DUE_NOTHING:
        break;
    }
}

static bool is_group_needed(const struct supervisor *k)
{
    bool is_ending = k->life.state.current == ISOLATE_DRAINING || k->life.state.current == ISOLATE_ENDED;
    return is_ending || k->life.stay == ISOLATE_STAYS || isolate_record_has_live_workers(ISOLATE_PRESENCE_FD);
}

static void run_supervisor_once(struct supervisor *k)
{
    struct pollfd at[] = {{.fd = k->control, .events = POLLIN},
                          {.fd = k->signals, .events = POLLIN},
                          {.fd = k->ready, .events = POLLIN},
                          {.fd = k->output, .events = POLLIN}};
    (void)poll(at, sizeof at / sizeof *at, poll_timeout_ms(k));
    run_master_commands(k);
    read_notify_socket(k);
    forward_output(k);
    reap_children(k);
    if (!k->settled)
        detach_from_terminal(k, now_ms());
    if (!is_group_needed(k))
        shut_down_group(k, SIGQUIT);
    run_due_lifecycle_action(k);
}

static int open_signalfd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

_Noreturn void isolate_supervisor_run(const struct isolate_group *group,
                                      const int fds[ISOLATE_SUPERVISOR_FDS])
{
    const struct isolate_record *r = group->record;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct supervisor k = {.first_ms = now_ms(), .group = group, .control = ISOLATE_CONTROL_FD, .output = -1};
    (void)setpgid(0, 0); /* signals from a terminal are meant only for the master */
    (void)prctl(PR_SET_NAME, "monkey: keeper");
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    if (!isolate_process_keep_fds(fds, ISOLATE_SUPERVISOR_FDS))
        _exit(1);
    for (int fd = ISOLATE_LISTEN_FD; fd <= ISOLATE_LIMITS_FD; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    isolate_log_forwarder_init(&k.lines, group->name, group->log, group->log_has_priorities,
                               group->log_is_json);
    k.signals = open_signalfd();
    k.ready = open_notify_socket(r);
    struct sockaddr_un ready;
    (void)notify_socket_address(r, &ready);
    (void)snprintf(k.ready_name, sizeof k.ready_name, "%s", ready.sun_path + 1);
    if (k.signals < 0 || k.ready < 0)
        _exit(1);
    while (k.life.state.current != ISOLATE_ENDED)
        run_supervisor_once(&k);
    forward_output(&k);
    isolate_log_forwarder_flush(&k.lines);
    if (k.life.stay == ISOLATE_IS_REMOVED)
        isolate_runtime_dir_remove(r);
    _exit(0);
}
