/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"
#include "place.h"
#include "process.h"
#include "record.h"
#include "text.h"

enum {
    START_MS = 60000,
    UP_MS = 30000,
    END_MS = 5000,
    STOP_MS = 5000,
    FILE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- What the master has of it ---- */

/* Workers of the group write to the board, and cannot cut it short: its readers would die of that. */
static int open_board(struct isolate_record *r)
{
    r->board_fd = memfd_create("isolate-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->board_fd < 0 || ftruncate(r->board_fd, sizeof *r->board) < 0 ||
        fcntl(r->board_fd, F_ADD_SEALS, FILE_SEALS) < 0)
        return -errno;
    void *board = mmap(NULL, sizeof *r->board, PROT_READ | PROT_WRITE, MAP_SHARED, r->board_fd, 0);
    if (board == MAP_FAILED)
        return -errno;
    r->board = board;
    return 0;
}

static int open_files(struct isolate_record *r)
{
    r->config_fd = memfd_create("isolate-configuration", MFD_CLOEXEC);
    if (r->config_fd < 0 || fchmod(r->config_fd, 0444) < 0)
        return -errno;
    return open_board(r);
}

/* Those that run go on. */
static void close_all(struct isolate_record *r)
{
    isolate_record_close_secrets(r);
    if (r->presence_fd >= 0)
        close(r->presence_fd);
    r->presence_fd = -1;
    if (r->board)
        munmap(r->board, sizeof *r->board);
    r->board = NULL;
    r->master = 0;
    *r->socket = '\0';
}

static int open_all(struct isolate_record *r)
{
    if (r->master)
        return 0;
    r->master = getpid();
    int e = open_files(r);
    if (!e)
        e = isolate_place_open(r);
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

/* Nothing but a thing to lock. */
static int open_presence(void)
{
    int fd = memfd_create("isolate-presence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0)
        (void)fcntl(fd, F_ADD_SEALS, FILE_SEALS | F_SEAL_WRITE);
    return fd;
}

/* Through this one, the group cannot change its configuration. */
static int open_to_read(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int fork_keeper(const struct isolate_group *g, const int fds[ISOLATE_KEEPER_FDS], int control)
{
    struct isolate_record *r = g->record;
    for (size_t i = 0; i < ISOLATE_KEEPER_FDS; i++)
        if (fds[i] < 0)
            return -errno;
    pid_t pid = fork();
    if (pid == 0)
        isolate_keeper_run(g, fds);
    if (pid < 0)
        return -errno;
    if (r->control_fd >= 0)
        close(r->control_fd); /* the one before ends when the workers that know it have ended */
    if (r->presence_fd >= 0)
        close(r->presence_fd);
    r->control_fd = control;
    r->presence_fd = fds[ISOLATE_PRESENCE_FD - ISOLATE_LISTEN_FD];
    return 0;
}

/* The descriptors are copies, since a child loses those of the record. */
static int start_keeper(const struct isolate_group *g)
{
    const struct isolate_record *r = g->record;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    const int fds[ISOLATE_KEEPER_FDS] = {fcntl(r->listen_fd, F_DUPFD_CLOEXEC, 0),
                                         fcntl(r->board_fd, F_DUPFD_CLOEXEC, 0), open_to_read(r->config_fd),
                                         ends[1], open_presence()};
    int e = fork_keeper(g, fds, ends[0]);
    if (e)
        close(ends[0]);
    for (size_t i = 0; i < ISOLATE_KEEPER_FDS; i++)
        if (fds[i] >= 0 && fds[i] != r->presence_fd)
            close(fds[i]);
    return e;
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
    char shell[ISOLATE_SHELL_MAX], root[ISOLATE_ROOT_MAX];
    int e = open_all(r);
    if (e)
        return fail(config, g, e);
    bool has_served = isolate_board_serves(r->board);
    uint64_t version = atomic_fetch_add(&r->board->version, 1) + 1;
    g->is_used = true;
    g->log = mk_config_error_log(config).p;
    r->users++;
    print_shell(g, shell);
    e = isolate_place_root(r, root) ? isolate_text_store(g, root, r->config_fd) : -ENAMETOOLONG;
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
    struct isolate_record *r = g->record;
    waits = waits && !isolate_record_is_needed(r->presence_fd); /* the plugin may have gone, not the server */
    if (waits && !ends_within(r, END_MS)) {
        order(r, ISOLATE_STOP);
        (void)ends_within(r, STOP_MS);
    }
    if (waits || !has_keeper(r))
        isolate_place_remove(r); /* else the keeper does, when old workers need it no more */
    close_all(r);
    isolate_record_tidy(r);
}

/* ---- In a public worker ---- */

void isolate_group_join(const struct isolate_group *g)
{
    const struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (g->record->presence_fd >= 0)
        (void)fcntl(g->record->presence_fd, F_SETLK, &lock);
}
