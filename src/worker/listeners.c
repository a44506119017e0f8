/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/listeners.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "os/fd.h"
#include "os/sd_notify.h"
#include "os/sock.h"

#define INHERIT_VARIABLE "MONKEY_SOCKETS"

enum { SEND_ROOM = 256 * 1024, UNIX_MODE = 0666 };

static bool matches_addr(const struct mk_listener *one, const struct mk_sockaddr *requested)
{
    return mk_sockaddr_eq(&one->requested, requested) || mk_sockaddr_eq(&one->addr, requested);
}

static struct mk_listener *find_listener(struct mk_listeners *l, const struct mk_sockaddr *requested)
{
    for (unsigned i = 0; i < l->n; i++)
        if (matches_addr(&l->at[i], requested))
            return &l->at[i];
    return NULL;
}

/* Finds the inherited listener for a Listen with port 0, so that the port assigned to the predecessor is
 * kept. */
static struct mk_listener *find_inherited(struct mk_listeners *l, const struct mk_sockaddr *requested)
{
    for (unsigned i = 0; mk_sockaddr_port(requested) == 0 && i < l->n; i++) {
        struct mk_sockaddr any_port = l->at[i].addr;
        mk_sockaddr_set_port(&any_port, 0);
        if (l->at[i].lent && mk_sockaddr_eq(&any_port, requested)) {
            l->at[i].requested = *requested;
            return &l->at[i];
        }
    }
    return NULL;
}

static struct mk_listener *add_listener(struct mk_listeners *l, const struct mk_sockaddr *requested)
{
    int *fds = mk_mem_zalloc(MK_LISTENER_SOCKETS_MAX, sizeof *fds);
    if (!fds || l->n == MK_LISTENERS_MAX) {
        mk_mem_free(fds);
        return NULL;
    }
    struct mk_listener *one = &l->at[l->n++];
    *one = (struct mk_listener){.addr = *requested, .requested = *requested, .fds = fds};
    return one;
}

static void close_listener_sockets(struct mk_listener *one, unsigned from)
{
    while (one->n_fds > from)
        mk_fd_close(&one->fds[--one->n_fds]);
}

static void remove_listener(struct mk_listeners *l, unsigned i)
{
    close_listener_sockets(&l->at[i], 0);
    mk_mem_free(l->at[i].fds);
    l->at[i] = l->at[--l->n];
}

/* ---- Inheriting ---- */

static void adopt_inherited_fd(struct mk_listeners *l, int fd, bool managed, struct mk_log *log)
{
    struct mk_sockaddr addr;
    int is_listening = 0;
    socklen_t len = sizeof is_listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) < 0 || !is_listening ||
        mk_sockaddr_getsockname(fd, &addr) || mk_fd_set_nonblock(fd) || mk_fd_set_cloexec(fd, true)) {
        mk_log_warn(log, "descriptor %d from the service manager is not a listening socket: ignored", fd);
        return;
    }
    struct mk_listener *one = find_listener(l, &addr);
    if (!one)
        one = add_listener(l, &addr);
    if (!one || one->n_fds == MK_LISTENER_SOCKETS_MAX)
        return;
    one->fds[one->n_fds++] = fd;
    one->n_managed += managed;
    one->shared = !mk_sock_is_reuse_port(fd);
    one->managed = managed;
    one->lent = !managed;
}

void mk_listeners_inherit(struct mk_listeners *l, struct mk_log *log)
{
    mk_str list = mk_str_from_c(getenv(INHERIT_VARIABLE));
    while (list.p) {
        uint64_t fd;
        mk_str part = mk_str_cut(&list, ',');
        bool managed = mk_str_starts(part, MK_STR("m"));
        if (mk_num_parse(mk_str_skip(part, managed), &fd) && fd > 2 && fd < INT32_MAX)
            adopt_inherited_fd(l, (int)fd, managed, log);
    }
    unsigned n = mk_sd_listen_fds();
    for (unsigned i = 0; i < n; i++)
        adopt_inherited_fd(l, MK_SD_LISTEN_FDS_START + (int)i, true, log);
    unsetenv(INHERIT_VARIABLE);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
}

void mk_listeners_export(struct mk_listeners *l, struct mk_buf *out, bool on)
{
    bool first = true;
    mk_buf_add(out, MK_STR(INHERIT_VARIABLE "="));
    for (unsigned i = 0; i < l->n; i++) {
        for (unsigned j = 0; j < l->at[i].n_fds; j++) {
            mk_buf_addf(out, "%s%s%d", first ? "" : ",", l->at[i].managed ? "m" : "", l->at[i].fds[j]);
            first = false;
            (void)!mk_fd_set_cloexec(l->at[i].fds[j], !on);
        }
    }
}

size_t mk_listeners_list_managed(const struct mk_listeners *l, struct mk_listen *out)
{
    size_t n = 0;
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].managed)
            out[n++] = (struct mk_listen){.addr = l->at[i].addr,
                                          .written = MK_STR("a socket from the service manager")};
    return n;
}

/* ---- Opening ---- */

mk_err mk_listener_open_socket(struct mk_sockaddr *addr, bool reuse_port, bool quiet, int *fd)
{
    const struct mk_sock_options o = {.backlog = MK_LISTENERS_BACKLOG,
                                      .send_room = SEND_ROOM,
                                      .mode = UNIX_MODE,
                                      .reuse_port = reuse_port,
                                      .quiet = quiet};
    mk_err e = mk_sock_listen(addr, &o, fd);
    if (!e && addr->any.sa_family != AF_UNIX && mk_sockaddr_port(addr) == 0 &&
        (e = mk_sockaddr_getsockname(*fd, addr)))
        mk_fd_close(fd);
    return e;
}

/* While other workers serve this address, the kernel would send connections to a new socket as soon as it
 * listens, and these connections would be lost if the worker of the socket failed to start. Therefore the
 * worker itself calls listen(). */
static mk_err open_listener_socket(struct mk_listener *one)
{
    mk_err e = mk_listener_open_socket(&one->addr, !one->shared, one->n_settled > 0, &one->fds[one->n_fds]);
    if (!e)
        one->n_fds++;
    return e;
}

static mk_err open_missing_sockets(struct mk_listener *one, unsigned workers)
{
    unsigned n = one->shared ? 1 : workers;
    while (one->n_fds < n) {
        mk_err e = open_listener_socket(one);
        if (e)
            return e;
    }
    return 0;
}

/* Do we listen on that port ourselves, at any address? */
static bool is_our_port(const struct mk_listeners *l, const struct mk_sockaddr *requested)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].n_fds && mk_sockaddr_port(&l->at[i].addr) &&
            mk_sockaddr_port(&l->at[i].addr) == mk_sockaddr_port(requested))
            return true;
    return false;
}

static mk_err open_new_listener(struct mk_listeners *l, const struct mk_sockaddr *requested, unsigned workers)
{
    /* With SO_REUSEPORT, bind() succeeds even if another server of the same user has the port: probe first.
     * The probe would also fail on our own sockets, so it is skipped for our own ports. */
    mk_err e = is_our_port(l, requested) ? 0 : mk_sock_test_bind(requested);
    if (e)
        return e;
    struct mk_listener *one = add_listener(l, requested);
    if (!one)
        return -ENOMEM;
    one->shared = requested->any.sa_family == AF_UNIX;
    e = open_missing_sockets(one, workers);
    one->wanted = true;
    return e;
}

/* Saved state of a listener, for undo. */
struct listener_state {
    unsigned n_fds;
    bool wanted;
};

static void undo_open(struct mk_listeners *l, unsigned n_before, const struct listener_state *listener_state)
{
    while (l->n > n_before)
        remove_listener(l, l->n - 1);
    for (unsigned i = 0; i < n_before; i++) {
        close_listener_sockets(&l->at[i], listener_state[i].n_fds);
        l->at[i].wanted = listener_state[i].wanted;
    }
}

mk_err mk_listeners_open(struct mk_listeners *l, const struct mk_listens *expected, unsigned workers,
                         const struct mk_listen **failed)
{
    struct listener_state listener_state[MK_LISTENERS_MAX];
    unsigned n_before = l->n;
    workers = workers < MK_LISTENER_SOCKETS_MAX ? workers : MK_LISTENER_SOCKETS_MAX;
    for (unsigned i = 0; i < l->n; i++) {
        listener_state[i] = (struct listener_state){.n_fds = l->at[i].n_fds, .wanted = l->at[i].wanted};
        l->at[i].wanted = false;
    }
    for (size_t i = 0; i < expected->n; i++) {
        struct mk_listener *one = find_listener(l, &expected->at[i].addr);
        if (!one)
            one = find_inherited(l, &expected->at[i].addr);
        mk_err e =
            one ? open_missing_sockets(one, workers) : open_new_listener(l, &expected->at[i].addr, workers);
        if (e) {
            *failed = &expected->at[i];
            undo_open(l, n_before, listener_state);
            return e;
        }
        if (one)
            one->wanted = true;
    }
    return 0;
}

static void remove_socket_file(const struct mk_listener *one)
{
    bool is_ours = !one->lent && !one->managed;
    if (is_ours && one->addr.any.sa_family == AF_UNIX && one->addr.un.sun_path[0])
        unlink(one->addr.un.sun_path);
}

void mk_listeners_close_new(struct mk_listeners *l)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].n_settled) /* new addresses are left to mk_listeners_close_unwanted() */
            close_listener_sockets(&l->at[i], l->at[i].n_settled);
}

void mk_listeners_close_unwanted(struct mk_listeners *l, bool remove_files)
{
    for (unsigned i = l->n; i-- > 0;) {
        if (!l->at[i].wanted)
            close_listener_sockets(&l->at[i], l->at[i].n_managed);
        l->at[i].n_settled = l->at[i].n_fds;
        if (l->at[i].n_fds)
            continue;
        if (remove_files)
            remove_socket_file(&l->at[i]);
        remove_listener(l, i);
    }
}

void mk_listeners_close_all(struct mk_listeners *l, bool remove_files)
{
    while (l->n > 0) {
        if (remove_files)
            remove_socket_file(&l->at[l->n - 1]);
        remove_listener(l, l->n - 1);
    }
}

void mk_listeners_own_socket_files(struct mk_listeners *l)
{
    for (unsigned i = 0; i < l->n; i++)
        l->at[i].lent = false;
}

const struct mk_listen *mk_listener_find_listen(const struct mk_listener *one,
                                                const struct mk_listens *expected)
{
    for (size_t i = 0; i < expected->n; i++)
        if (matches_addr(one, &expected->at[i].addr))
            return &expected->at[i];
    return NULL;
}

bool mk_listener_is_for_worker(const struct mk_listener *one, unsigned socket, unsigned index,
                               unsigned workers)
{
    return socket % workers == index || index % one->n_fds == socket;
}
