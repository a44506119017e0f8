/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "inside.h"
#include "lines.h"
#include "place.h"
#include "process.h"
#include "record.h"

enum {
    START_MS = 60000,
    YOUNG_MS = 1000,
    PAUSE_MS = 100,
    PAUSE_MAX_MS = 10000,
    DRAIN_MS = 70000, /* the group itself ends after its DrainTimeout */
    SETTLED_MS = 60000,
    READS = 16
};

struct keeper {
    const struct isolate_group *group;
    struct isolate_lines lines;
    int control, signals, ready, said; /* `ready`: what the server of the group tells a service manager */
    char ready_name[108];
    pid_t pid; /* of that server; 0: it is to be started at start_ms */
    uint64_t start_ms, began_ms, first_ms;
    bool settled; /* the master has left its terminal, or will not */
    unsigned young_deaths;
    bool is_ready;   /* it has said so: its workers serve, or did */
    bool is_killed;  /* by us, so that it starts again */
    char asked;      /* the order that is to be answered; 0: none */
    bool reloads;    /* and it has begun to */
    bool leaves;     /* no worker will start that needs the group */
    bool is_over;    /* the group is not in the configuration any more */
    uint64_t end_ms; /* 0: the group is to go on */
};

static uint64_t now_ms(void)
{
    return (uint64_t)isolate_process_now_ms();
}

static void answer(struct keeper *k, bool serves)
{
    const struct isolate_keeper_answer a = {.order = k->asked, .serves = serves};
    if (k->asked)
        (void)!send(k->control, &a, sizeof a, MSG_NOSIGNAL | MSG_DONTWAIT);
    k->asked = 0;
}

/* ---- Starting the server of the group ---- */

/* In the abstract namespace: the user of the group need not write anywhere. `name` is what comes behind the
 * NUL. */
static socklen_t ready_address(const struct isolate_record *r, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n =
        snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "%s/%d", isolate_place_name(r), (int)getpid());
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(n > 0 ? n : 0));
}

/* Others can write to it, too, so we look who did. */
static int open_ready(const struct isolate_record *r)
{
    struct sockaddr_un at;
    socklen_t len = ready_address(r, &at);
    int on = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&at, len) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static char **make_environment(const struct keeper *k)
{
    extern char **environ;
    static char room[4][160];
    (void)snprintf(room[0], sizeof room[0], "LISTEN_FDS=1");
    (void)snprintf(room[1], sizeof room[1], "LISTEN_PID=%d", (int)getpid());
    (void)snprintf(room[2], sizeof room[2], "NOTIFY_SOCKET=@%s", k->ready_name);
    (void)snprintf(room[3], sizeof room[3], ISOLATE_VARIABLE "=%d", ISOLATE_BOARD_FD);
    char *const ours[] = {room[0], room[1], room[2], room[3], NULL};
    return isolate_environment_make(k->group, environ, ours);
}

static _Noreturn void be_server(struct keeper *k, int out, pid_t parent)
{
    const struct isolate_group *g = k->group;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bool ok = null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
              dup2(out, STDERR_FILENO) >= 0;
    for (int fd = ISOLATE_LISTEN_FD; fd <= ISOLATE_CONFIG_FD; fd++)
        ok = ok && fcntl(fd, F_SETFD, 0) == 0;
    bool is_limited = isolate_quota_has(&g->settings->limits);
    if (is_limited && write(ISOLATE_LIMITS_FD, "0", 1) < 0)
        ok = dprintf(STDERR_FILENO, "cannot enter its control group: %s\n", strerror(errno)) < 0;
    int e = isolate_process_confine(g, g->settings->memory);
    if (e)
        dprintf(STDERR_FILENO, "cannot become its user: %s\n", strerror(-e));
    (void)setpgid(0, 0);                    /* its workers end with it, whatever they do */
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* a change of user resets it */
    char **environment = make_environment(k);
    if (!ok || e || !environment || getppid() != parent)
        _exit(127);
    isolate_process_run(false, ISOLATE_CONFIG_FD, environment);
}

static void fail_to_start(struct keeper *k)
{
    isolate_lines_say(&k->lines, "error", "cannot start the group: %s", strerror(errno));
    k->start_ms = now_ms() + PAUSE_MAX_MS;
}

static void start(struct keeper *k)
{
    int ends[2];
    pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0) {
        fail_to_start(k);
        return;
    }
    k->began_ms = now_ms();
    pid_t pid = fork();
    if (pid == 0)
        be_server(k, ends[1], self);
    if (pid < 0)
        fail_to_start(k);
    else
        (void)setpgid(pid, pid);
    k->is_ready = k->is_killed = false;
    close(ends[1]);
    if (k->said >= 0)
        close(k->said);
    isolate_lines_end(&k->lines); /* a process may have outlived the group, and its pipe */
    k->said = ends[0];
    (void)fcntl(k->said, F_SETFL, O_NONBLOCK);
    k->pid = pid > 0 ? pid : 0;
    k->lines.group = k->pid;
}

/* ---- What happens ---- */

/* As much as a pipe holds, and no more: a group that never stops talking must not keep us from orders. */
static void hear(struct keeper *k)
{
    char room[4096];
    for (int i = 0; i < READS && k->said >= 0; i++) {
        ssize_t n = read(k->said, room, sizeof room);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0)
            isolate_lines_take(&k->lines, mk_str_of(room, (size_t)n));
        if (n == 0) {
            close(k->said);
            k->said = -1;
            isolate_lines_end(&k->lines);
        }
    }
}

static bool is_of_group(const struct keeper *k, struct msghdr *m)
{
    struct ucred who;
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    return k->pid && who.pid == k->pid;
}

static void hear_ready(struct keeper *k)
{
    k->is_ready = true;
    if (k->asked != ISOLATE_RELOAD || k->reloads)
        answer(k, true);
}

static void hear_state(struct keeper *k)
{
    char room[256];
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } extra;
    for (;;) {
        struct iovec text = {.iov_base = room, .iov_len = sizeof room - 1};
        struct msghdr m = {.msg_iov = &text,
                           .msg_iovlen = 1,
                           .msg_control = extra.bytes,
                           .msg_controllen = sizeof extra.bytes};
        ssize_t n = recvmsg(k->ready, &m, MSG_DONTWAIT);
        if (n < 0)
            return;
        room[n] = '\0';
        if (!is_of_group(k, &m))
            continue;
        if (strncmp(room, "RELOADING=1", 11) == 0)
            k->reloads = true;
        else if (strncmp(room, "READY=1", 7) == 0)
            hear_ready(k);
    }
}

/* With all that it has started. */
static void kill_group(const struct keeper *k)
{
    if (k->pid)
        (void)kill(-k->pid, SIGKILL);
}

/* One that has not begun to serve has nothing to finish, and may hang. */
static void begin_end(struct keeper *k, int signal)
{
    if (!k->end_ms)
        k->end_ms = now_ms() + DRAIN_MS;
    if (k->pid && k->is_ready)
        (void)kill(k->pid, k->asked ? SIGTERM : signal);
    else
        kill_group(k);
}

static void reload(struct keeper *k)
{
    k->asked = ISOLATE_RELOAD;
    k->reloads = !k->is_ready; /* what starts has that configuration */
    if (k->pid && k->is_ready) {
        (void)kill(k->pid, SIGHUP);
    } else {
        k->is_killed = k->pid;
        kill_group(k);
        k->start_ms = 0;
    }
}

static void hear_orders(struct keeper *k)
{
    char order;
    ssize_t n;
    if (k->control < 0)
        return;
    while ((n = recv(k->control, &order, 1, MSG_DONTWAIT)) > 0) {
        if (order == ISOLATE_RELOAD)
            reload(k);
        else if (order == ISOLATE_END)
            k->leaves = k->is_over = true;
        else if (order == ISOLATE_STOP)
            begin_end(k, SIGTERM);
    }
    if (n != 0)
        return;
    k->control = -1; /* the master has ended, or has another keeper */
    k->leaves = true;
}

static void tell_death(struct keeper *k, int status)
{
    if (WIFSIGNALED(status))
        isolate_lines_say(&k->lines, "error", "the group was killed by signal %d (%s); it starts again",
                          WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        isolate_lines_say(&k->lines, "error", "the group ended unexpectedly with code %d; it starts again",
                          WEXITSTATUS(status));
}

static void bury(struct keeper *k, int status)
{
    uint64_t now = now_ms();
    hear(k);
    k->pid = 0;
    k->is_ready = false;
    if (k->end_ms || k->is_killed)
        return;
    tell_death(k, status);
    answer(k, false);
    k->young_deaths = now - k->began_ms < YOUNG_MS ? k->young_deaths + 1 : 0;
    unsigned n = k->young_deaths < 9 ? k->young_deaths : 8;
    uint64_t pause = n < 2 ? 0 : (uint64_t)PAUSE_MS << (n - 2);
    k->start_ms = now + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
}

static void reap(struct keeper *k)
{
    struct signalfd_siginfo info;
    int status;
    while (read(k->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            begin_end(k, SIGQUIT);
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == k->pid)
            bury(k, status);
}

/* ---- Its life ---- */

/* A master that has become a daemon has left its terminal some time after it has started us. */
static void leave_terminal(struct keeper *k, uint64_t now)
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

static int pause_of(const struct keeper *k, uint64_t now)
{
    uint64_t starts = k->is_ready ? UINT64_MAX : k->began_ms + START_MS;
    uint64_t due = k->end_ms ? k->end_ms : k->pid ? starts : k->start_ms;
    uint64_t left = due > now ? due - now : 0, most = k->settled && !k->leaves ? 60000 : 250;
    return left > most ? (int)most : (int)left;
}

/* Something in it hangs: its own log names the worker. */
static void end_start(struct keeper *k)
{
    isolate_lines_say(&k->lines, "error",
                      "the group has not begun to serve within %d seconds: it is killed, and "
                      "starts again",
                      START_MS / 1000);
    answer(k, false);
    k->is_killed = true;
    k->start_ms = 0;
    kill_group(k);
}

static void turn(struct keeper *k)
{
    struct pollfd at[] = {{.fd = k->control, .events = POLLIN},
                          {.fd = k->signals, .events = POLLIN},
                          {.fd = k->ready, .events = POLLIN},
                          {.fd = k->said, .events = POLLIN}};
    (void)poll(at, sizeof at / sizeof *at, pause_of(k, now_ms()));
    hear_orders(k);
    hear_state(k);
    hear(k);
    reap(k);
    if (!k->settled)
        leave_terminal(k, now_ms());
    if (k->leaves && !k->end_ms && !isolate_record_is_needed(ISOLATE_PRESENCE_FD))
        begin_end(k, SIGQUIT);
    if (!k->pid && !k->end_ms && now_ms() >= k->start_ms)
        start(k);
    if (k->pid && k->end_ms && now_ms() >= k->end_ms)
        kill_group(k);
    if (k->pid && !k->end_ms && !k->is_ready && !k->is_killed && now_ms() >= k->began_ms + START_MS)
        end_start(k);
}

static int open_signals(void)
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

_Noreturn void isolate_keeper_run(const struct isolate_group *group, const int fds[ISOLATE_KEEPER_FDS])
{
    const struct isolate_record *r = group->record;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct keeper k = {.first_ms = now_ms(),
                       .group = group,
                       .control = ISOLATE_CONTROL_FD,
                       .said = -1,
                       .asked = ISOLATE_START};
    (void)setpgid(0, 0); /* what a terminal sends is for the master */
    (void)prctl(PR_SET_NAME, "monkey: keeper");
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    if (!isolate_process_keep(fds, ISOLATE_KEEPER_FDS))
        _exit(1);
    for (int fd = ISOLATE_LISTEN_FD; fd <= ISOLATE_LIMITS_FD; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    isolate_lines_init(&k.lines, group->name, group->log, group->log_has_priorities);
    k.signals = open_signals();
    k.ready = open_ready(r);
    struct sockaddr_un ready;
    (void)ready_address(r, &ready);
    (void)snprintf(k.ready_name, sizeof k.ready_name, "%s", ready.sun_path + 1);
    if (k.signals < 0 || k.ready < 0)
        _exit(1);
    while (!k.end_ms || k.pid)
        turn(&k);
    hear(&k);
    isolate_lines_end(&k.lines);
    if (k.is_over)
        isolate_place_remove(r);
    _exit(0);
}
