/* SPDX-License-Identifier: Apache-2.0 */
#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

enum { AGAIN_MS = 200, GROUPS_MAX = 65536 };

/* ---- Permission ---- */

/* Queries the size first: if the buffer is too small, the kernel returns the required size. */
static bool has_supplementary_group(int fd, gid_t group)
{
    socklen_t len = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || errno != ERANGE ||
        len > GROUPS_MAX * sizeof(gid_t))
        return false;
    gid_t *groups = mk_mem_alloc(len);
    bool found = false;
    if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
        for (size_t i = 0; i < len / sizeof *groups; i++)
            found |= groups[i] == group;
    mk_mem_free(groups);
    return found;
}

/* Checks the client's credentials. The socket's mode normally has the same effect, but a mode that was
 * changed by mistake must not admit more users. */
static bool is_client_allowed(const struct cheetah *c, int fd, const struct ucred *who)
{
    if (who->uid == 0 || who->uid == c->owner)
        return true;
    if (!(c->settings.mode & S_IWGRP))
        return false;
    return who->gid == c->group || has_supplementary_group(fd, c->group);
}

/* The server does not know yet which protocol the client speaks, and both programs understand HTTP. Input that
 * is not read would reset the connection, and the client could miss the response. */
static void refuse_client(int fd, unsigned status, const char *error)
{
    char text[512], ignored[4096];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %u Refused\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\n%s\n",
                       status, strlen(error) + 1, error);
    (void)!send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)!recv(fd, ignored, sizeof ignored, MSG_DONTWAIT);
    close(fd);
}

static void admit_client(struct shell *s, int fd)
{
    struct cheetah *c = s->cheetah;
    struct ucred who = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t len = sizeof who;
    char error[64];
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    /* The master only tests whether a worker accepts connections. */
    if (who.pid == mk_worker_master_pid(s->worker)) {
        close(fd);
        return;
    }
    if (!is_client_allowed(c, fd, &who)) {
        mk_worker_log(s->worker, MK_LOG_WARN, "shell: rejected process %d of user %u, group %u", (int)who.pid,
                      (unsigned)who.uid, (unsigned)who.gid);
        refuse_client(fd, 403, "you have no permission to use this shell");
        return;
    }
    int slot = cheetah_session_slot_acquire(c->slots, c->settings.sessions, s->worker);
    snprintf(error, sizeof error, "all %u sessions (MaxSessions) are in use", c->settings.sessions);
    if (slot < 0) {
        mk_worker_log(s->worker, MK_LOG_WARN, "shell: rejected process %d of user %u: %s", (int)who.pid,
                      (unsigned)who.uid, error);
        refuse_client(fd, 503, error);
    } else if (!cheetah_session_open(s, fd, slot, &who)) {
        cheetah_session_slot_release(c->slots, slot);
        refuse_client(fd, 503, "out of memory");
    }
}

/* ---- Accepting ---- */

static void accept_clients(struct shell *s)
{
    for (;;) {
        int fd = accept4(s->cheetah->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit_client(s, fd);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    /* Events are edge-triggered, so there is no further event for pending connections. */
    mk_timer_set(&s->again, s->worker, AGAIN_MS);
}

static void on_accept_retry(struct mk_timer *t)
{
    accept_clients(MK_CONTAINER(t, struct shell, again));
}

static void on_socket_readable(void *ctx, unsigned which)
{
    (void)which;
    accept_clients(ctx);
}

static void free_shell(struct shell *s)
{
    mk_watcher_free(s->accept_watcher);
    mk_timer_stop(&s->again);
    if (s->statm_fd >= 0)
        close(s->statm_fd);
    mk_mem_free(s);
}

int cheetah_worker_start(struct mk_worker *worker, void *data)
{
    struct cheetah *c = data;
    struct shell *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->worker = worker;
    s->cheetah = c;
    s->run = cheetah_command_run;
    s->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    mk_timer_init(&s->again, on_accept_retry);
    if (c->fd >= 0)
        s->accept_watcher = mk_watcher_new(worker, c->fd, MK_READABLE, on_socket_readable, s);
    if (c->fd >= 0 && !s->accept_watcher) {
        free_shell(s);
        return -ENOMEM;
    }
    mk_worker_set_data(worker, c->plugin, s);
    return 0;
}

void cheetah_worker_stop(struct mk_worker *worker, void *data)
{
    const struct cheetah *c = data;
    struct shell *s = mk_worker_data(worker, c->plugin);
    mk_worker_set_data(worker, c->plugin, NULL);
    if (!s)
        return;
    cheetah_session_close_all(s);
    free_shell(s);
}
