/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/child.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "os/fd.h"
#include "os/spawn.h"

static int signals_fd = -1;
static bool interrupted;

mk_err wr_child_prepare(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return mk_err_last();
    signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals_fd < 0 ? mk_err_last() : 0;
}

/* Finds the NUL-terminated path of a program in PATH; false if there is none. */
static bool find_program(const char *name, struct mk_buf *path)
{
    mk_str folders = mk_str_from_c(getenv("PATH"));
    if (!folders.p)
        folders = MK_STR("/usr/local/bin:/usr/bin:/bin");
    bool is_path = mk_str_find(mk_str_from_c(name), '/') != MK_STR_NONE;
    while (folders.p) {
        mk_str folder = mk_str_cut(&folders, ':');
        mk_buf_clear(path);
        if (!is_path) {
            mk_buf_add(path, folder.len ? folder : MK_STR("."));
            mk_buf_add_char(path, '/');
        }
        mk_buf_add(path, mk_str_from_c(name));
        mk_buf_add_char(path, '\0');
        if (!path->failed && access(path->p, X_OK) == 0)
            return true;
        if (is_path)
            break;
    }
    return false;
}

enum { OUTPUT_MAX = 2 * WR_CHILD_KEEPS + (1 << 16), STOP_MS = 1000, DRAIN_MS = 200 };

static mk_err spawn_client(struct wr_child *c, char *const *argv, const int streams[3])
{
    char room[PATH_MAX];
    struct mk_buf path = mk_buf_fixed(room, sizeof room);
    size_t n = 0;
    if (!find_program(argv[0], &path))
        return -ENOENT;
    while (argv[n])
        n++;
    char **words = mk_mem_zalloc(n + 1, sizeof *words);
    if (!words)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        words[i] = i == 0 ? path.p : argv[i];
    struct mk_spawn s = {
        .argv = words, .envp = environ, .cwd = ".", .fds = {streams[0], streams[1], streams[2]}};
    c->started_us = mk_clock_us();
    pid_t pid = mk_spawn(&s);
    mk_mem_free(words);
    if (pid < 0)
        return pid;
    c->pid = pid;
    return 0;
}

mk_err wr_child_start(struct wr_child *c, char *const *argv)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    mk_err e = null < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ? mk_err_last() : 0;
    c->outputs[0] = mk_buf_growing(OUTPUT_MAX);
    c->outputs[1] = mk_buf_growing(OUTPUT_MAX);
    c->fds[0] = out[0];
    c->fds[1] = err[0];
    if (!e)
        e = mk_fd_set_nonblock(out[0]);
    if (!e)
        e = mk_fd_set_nonblock(err[0]);
    if (!e)
        e = spawn_client(c, argv, (const int[3]){null, out[1], err[1]});
    mk_fd_close(&null);
    mk_fd_close(&out[1]);
    mk_fd_close(&err[1]);
    if (e)
        wr_child_fini(c);
    return e;
}

/* Keeps only the tail of the output, because clients print their results at the end. */
static void append_tail(struct wr_child *c, struct mk_buf *kept, mk_str piece)
{
    mk_buf_add(kept, piece);
    if (kept->len <= (size_t)2 * WR_CHILD_KEEPS)
        return;
    mk_buf_consume(kept, kept->len - WR_CHILD_KEEPS);
    c->was_cut = true;
}

/* Reads a limited amount: endless output must not delay the time limit. Returns false at EOF. */
static bool read_child_output(struct wr_child *c, int which)
{
    enum { TIMES = 16 };
    static char room[1 << 16];
    for (int i = 0; i < TIMES; i++) {
        ssize_t n = read(c->fds[which], room, sizeof room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0) {
            mk_fd_close(&c->fds[which]);
            return false;
        }
        mk_str piece = mk_str_of(room, (size_t)n);
        if (which == 0 && c->on_output)
            c->on_output(c->data, piece);
        else
            append_tail(c, &c->outputs[which], piece);
    }
    return true;
}

static void reap_child(struct wr_child *c)
{
    if (c->has_ended || wait4(c->pid, &c->status, WNOHANG, &c->usage) != c->pid)
        return;
    c->ended_us = mk_clock_us();
    c->has_ended = true;
}

static void read_signals(void)
{
    struct signalfd_siginfo s;
    while (read(signals_fd, &s, sizeof s) == (ssize_t)sizeof s)
        if (s.ssi_signo != SIGCHLD)
            interrupted = true;
}

static void poll_child_once(struct wr_child *c, uint64_t until_us)
{
    uint64_t now = mk_clock_us(), ms = until_us > now ? (until_us - now + 999) / 1000 : 0;
    struct pollfd p[3] = {{.fd = signals_fd, .events = POLLIN},
                          {.fd = c->fds[0], .events = POLLIN},
                          {.fd = c->fds[1], .events = POLLIN}};
    if (poll(p, MK_LEN(p), ms > INT_MAX ? INT_MAX : (int)ms) <= 0)
        return;
    for (int i = 0; i < 2; i++)
        if (p[i + 1].revents)
            (void)read_child_output(c, i);
    if (p[0].revents)
        read_signals();
}

void wr_child_drain(struct wr_child *c)
{
    uint64_t until = mk_clock_us() + DRAIN_MS * 1000;
    while ((c->fds[0] >= 0 || c->fds[1] >= 0) && mk_clock_us() < until)
        poll_child_once(c, until);
    mk_fd_close(&c->fds[0]);
    mk_fd_close(&c->fds[1]);
}

enum wr_child_event wr_child_wait(struct wr_child *c, uint64_t until_us)
{
    for (;;) {
        reap_child(c); /* not only on SIGCHLD: pending signals of several children merge into one */
        if (interrupted)
            return WR_CHILD_INTERRUPTED;
        if (c->has_ended)
            return WR_CHILD_ENDED;
        if (mk_clock_us() >= until_us)
            return WR_CHILD_RUNS;
        poll_child_once(c, until_us);
    }
}

/* Terminates the child and its process group if it is still running. */
static void stop_child(struct wr_child *c)
{
    uint64_t until = mk_clock_us() + STOP_MS * 1000;
    if (c->pid <= 0 || c->has_ended)
        return;
    (void)kill(-c->pid, SIGTERM);
    for (reap_child(c); !c->has_ended && mk_clock_us() < until; reap_child(c)) {
        uint64_t soon = mk_clock_us() + 20000;
        poll_child_once(c, soon < until ? soon : until);
    }
    (void)kill(-c->pid, SIGKILL);
    while (!c->has_ended && wait4(c->pid, &c->status, 0, &c->usage) < 0 && errno == EINTR)
        ;
    c->has_ended = true;
}

void wr_child_fini(struct wr_child *c)
{
    stop_child(c);
    for (int i = 0; i < 2; i++) {
        mk_fd_close(&c->fds[i]);
        mk_buf_free(&c->outputs[i]);
    }
    *c = (struct wr_child){.fds = {-1, -1}};
}
