/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"
#include "text.h"

enum { START_MS = 60000, UP_MS = 30000, END_MS = 5000, STOP_MS = 5000, BACKLOG = 4096, ROOT = 96 };

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- The socket ---- */

/* An empty folder: the group has no files to serve. */
static bool print_root(const struct isolate_record *r, char root[ROOT])
{
    return snprintf(root, ROOT, "%s/none", r->folder) < ROOT;
}

/* As the user of the workers, who own folder and socket: the master may have no right to give them away,
 * even if root has started it. */
static void borrow(const struct isolate_record *r)
{
    if (geteuid() == 0) {
        (void)setfsgid(r->gid);
        (void)setfsuid(r->uid);
    }
}

static void give_back(void)
{
    if (geteuid() == 0) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
    }
}

static int make_folders(const struct isolate_record *r)
{
    char root[ROOT];
    bool ok = print_root(r, root) && mkdir(r->folder, 0711) == 0 && chmod(r->folder, 0711) == 0 &&
              mkdir(root, 0755) == 0 && chmod(root, 0755) == 0;
    return ok ? 0 : -errno;
}

/* Only those workers can connect. */
static int open_socket(struct isolate_record *r)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, r->socket, sizeof r->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0;
    int e = ok ? 0 : -errno;
    (void)umask(before);
    if (!ok && fd >= 0)
        close(fd);
    r->listen_fd = ok ? fd : -1;
    return e;
}

static int open_place(struct isolate_record *r)
{
    borrow(r);
    int e = make_folders(r);
    if (!e)
        e = open_socket(r);
    give_back();
    return e;
}

static void remove_place(const struct isolate_record *r)
{
    char root[ROOT];
    borrow(r);
    (void)unlink(r->socket);
    if (print_root(r, root))
        (void)rmdir(root);
    (void)rmdir(r->folder);
    give_back();
}

/* Those of the group read it; its workers write to the board. */
static int open_files(struct isolate_record *r)
{
    r->config_fd = memfd_create("isolate-configuration", MFD_CLOEXEC);
    r->board_fd = memfd_create("isolate-board", MFD_CLOEXEC);
    if (r->config_fd < 0 || r->board_fd < 0 || fchmod(r->config_fd, 0444) < 0 ||
        ftruncate(r->board_fd, sizeof *r->board) < 0)
        return -errno;
    void *board = mmap(NULL, sizeof *r->board, PROT_READ | PROT_WRITE, MAP_SHARED, r->board_fd, 0);
    if (board == MAP_FAILED)
        return -errno;
    r->board = board;
    return 0;
}

/* What the last of its processes leaves. */
static void close_all(struct isolate_record *r)
{
    int *const fds[] = {&r->control_fd, &r->listen_fd, &r->board_fd, &r->config_fd};
    for (size_t i = 0; i < MK_LEN(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    if (r->board)
        munmap(r->board, sizeof *r->board);
    r->board = NULL;
    remove_place(r);
    r->master = 0;
    r->keeper = 0;
    *r->socket = '\0';
}

static int open_all(struct isolate_record *r)
{
    if (r->master)
        return 0;
    r->master = getpid();
    int e = open_files(r);
    if (!e)
        e = open_place(r);
    return e;
}

/* ---- The keeper ---- */

static bool await(const struct isolate_record *r, struct isolate_keeper_answer *answer, int ms)
{
    struct pollfd at = {.fd = r->control_fd, .events = POLLIN};
    int64_t end = now_ms() + ms;
    int n;
    do {
        int64_t left = end - now_ms();
        n = poll(&at, 1, left > 0 ? (int)left : 0);
    } while (n < 0 && errno == EINTR);
    return n == 1 && recv(r->control_fd, answer, sizeof *answer, MSG_DONTWAIT) == (ssize_t)sizeof *answer;
}

static bool has_keeper(const struct isolate_record *r)
{
    struct isolate_keeper_answer old;
    ssize_t n;
    if (r->control_fd < 0)
        return false;
    while ((n = recv(r->control_fd, &old, sizeof old, MSG_DONTWAIT)) > 0)
        continue; /* too late for those who asked */
    return n < 0 && errno == EAGAIN;
}

static int start_keeper(const struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        isolate_keeper_run(g, ends[1]);
    int e = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (e) {
        close(ends[0]);
        return e;
    }
    if (r->control_fd >= 0)
        close(r->control_fd); /* the one before ends when its requests do */
    r->control_fd = ends[0];
    r->keeper = pid;
    return 0;
}

static void order(const struct isolate_record *r, enum isolate_order what)
{
    char byte = (char)what;
    (void)!send(r->control_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- Starting ---- */

static void print_shell(const struct isolate_group *g, char out[ISOLATE_SHELL_MAX])
{
    const struct isolate_settings *s = g->settings;
    (void)snprintf(out, ISOLATE_SHELL_MAX, "%d %u %u %u %llu %.100s", g->has_user, (unsigned)g->uid,
                   (unsigned)g->gid, s->nice, (unsigned long long)s->memory, g->log);
}

/* True: workers with this configuration serve. */
static bool comes_up(const struct isolate_record *r, uint64_t version)
{
    struct isolate_keeper_answer answer;
    int64_t end = now_ms() + UP_MS;
    if (!await(r, &answer, START_MS) || !answer.serves)
        return false;
    while (!isolate_board_has(r->board, version, true)) {
        if (now_ms() > end || !isolate_board_has(r->board, version, false))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

/* A service that cannot serve yet is no reason to serve nothing at all, but one that served goes on as it
 * was.
 */
static bool report(struct mk_config *c, const struct isolate_group *g, bool has_served)
{
    if (has_served)
        mk_config_error(c, g->settings, "Service",
                        "the service `%s` cannot serve its new configuration: its log says why", g->name);
    else
        mk_config_warn(c, g->settings, "Service",
                       "the service `%s` does not serve yet: its log says why; it is tried again", g->name);
    return !has_served;
}

static bool fail(struct mk_config *c, const struct isolate_group *g, int e)
{
    mk_config_error(c, g->settings, "Service", "the service `%s` cannot be started: %s", g->name,
                    strerror(-e));
    return false;
}

bool isolate_group_start(struct mk_config *config, struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    char shell[ISOLATE_SHELL_MAX], root[ROOT];
    int e = open_all(r);
    if (e)
        return fail(config, g, e);
    bool has_served = isolate_board_serves(r->board);
    uint64_t version = atomic_fetch_add(&r->board->version, 1) + 1;
    g->is_used = true;
    g->log = mk_config_error_log(config).p;
    r->users++;
    print_shell(g, shell);
    e = print_root(r, root) ? isolate_text_store(g, root, r->config_fd) : -ENAMETOOLONG;
    if (!e && has_keeper(r) && strcmp(shell, r->shell) == 0)
        order(r, ISOLATE_RELOAD);
    else if (!e)
        e = start_keeper(g);
    memcpy(r->shell, shell, sizeof shell);
    if (e)
        return fail(config, g, e);
    return comes_up(r, version) || report(config, g, has_served);
}

/* ---- Ending ---- */

bool isolate_group_leave(struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    if (!g->is_used || r->master != getpid())
        return false;
    g->is_used = false;
    if (--r->users)
        return false;
    order(r, ISOLATE_END);
    return true;
}

/* Until its end of the socket is closed. */
static bool ends_within(const struct isolate_record *r, int ms)
{
    struct isolate_keeper_answer answer;
    int64_t end = now_ms() + ms;
    while (now_ms() < end && has_keeper(r))
        (void)await(r, &answer, (int)(end - now_ms()));
    return !has_keeper(r);
}

void isolate_group_close(struct isolate_group *g, bool waits)
{
    if (waits && !ends_within(g->record, END_MS)) {
        order(g->record, ISOLATE_STOP);
        (void)ends_within(g->record, STOP_MS);
    }
    close_all(g->record);
}
