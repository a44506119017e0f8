/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sock.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/bind_unix.h"
#include "os/fd.h"

static int set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value);
}

/* How long the peer may be gone without a FIN, such as a device that has lost its network, before the kernel
 * closes the connection. Without these options, this takes 15 minutes if the server sends, and forever if it
 * waits. */
enum { PEER_GONE_MS = 180000, PROBE_IDLE_S = 60, PROBE_INTERVAL_S = 30 };

static void set_keepalive(int fd)
{
    (void)set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    (void)set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_IDLE_S);
    (void)set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S);
    (void)set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, PEER_GONE_MS);
}

/* Connections inherit the listener's options. A failure to set any of them is harmless. */
static void set_tcp_options(int fd, const struct mk_sock_options *o)
{
    (void)set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    (void)set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
    set_keepalive(fd);
    if (o->send_room)
        (void)set_option(fd, SOL_SOCKET, SO_SNDBUF, o->send_room);
}

static int open_socket(const struct mk_sockaddr *a)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mk_err_last();
    (void)set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (a->any.sa_family == AF_INET6)
        (void)set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    return fd;
}

/* A socket file left by a dead program would make bind() fail. */
static void remove_stale_file(const struct mk_sockaddr *a)
{
    struct stat st;
    if (stat(a->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, &a->any, a->len) < 0 && errno == ECONNREFUSED)
        unlink(a->un.sun_path);
    close(fd);
}

mk_err mk_sock_start_listening(int fd, int backlog)
{
    return listen(fd, backlog) < 0 ? mk_err_last() : 0;
}

static mk_err bind_and_listen(int fd, const struct mk_sockaddr *a, const struct mk_sock_options *o)
{
    if (a->any.sa_family == AF_UNIX) {
        remove_stale_file(a);
        mk_err e = mk_bind_unix(fd, a, o->mode);
        if (e)
            return e;
    } else {
        set_tcp_options(fd, o);
        if (o->reuse_port && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
            return mk_err_last();
        if (bind(fd, &a->any, a->len) < 0)
            return mk_err_last();
    }
    return o->quiet ? 0 : mk_sock_start_listening(fd, o->backlog);
}

mk_err mk_sock_listen(const struct mk_sockaddr *a, const struct mk_sock_options *o, int *out)
{
    int fd = open_socket(a);
    if (fd < 0)
        return fd;
    mk_err e = bind_and_listen(fd, a, o);
    if (e)
        mk_fd_close(&fd);
    *out = fd;
    return e;
}

mk_err mk_sock_test_bind(const struct mk_sockaddr *a)
{
    if (a->any.sa_family == AF_UNIX || mk_sockaddr_port(a) == 0)
        return 0;
    int fd = open_socket(a);
    if (fd < 0)
        return fd;
    mk_err e = bind(fd, &a->any, a->len) < 0 ? mk_err_last() : 0;
    mk_fd_close(&fd);
    return e;
}

int mk_sock_accept(int fd, struct mk_addr *peer)
{
    struct mk_sockaddr from;
    from.len = sizeof from.un;
    int got = accept4(fd, &from.any, &from.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (got < 0)
        return mk_err_last();
    mk_sockaddr_to_addr(&from, peer);
    return got;
}

bool mk_sock_is_dual_stack(int fd)
{
    int v6_only = 1;
    socklen_t len = sizeof v6_only;
    return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, &len) == 0 && !v6_only;
}

unsigned mk_sock_unsent_bytes(int fd)
{
    int n = 0;
    return ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0 ? (unsigned)n : 0;
}

bool mk_sock_has_input(int fd)
{
    int n = 0;
    return ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

bool mk_sock_is_reuse_port(int fd)
{
    int on = 0;
    socklen_t len = sizeof on;
    return getsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, &len) == 0 && on;
}

void mk_sock_send_and_close(int *fd, mk_str text)
{
    char unread[1024];
    (void)!recv(*fd, unread, sizeof unread, MSG_DONTWAIT);
    (void)!send(*fd, text.p, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(*fd, SHUT_WR);
    mk_fd_close(fd);
}

void mk_sock_close_with_rst(int *fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (*fd >= 0)
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    mk_fd_close(fd);
}
