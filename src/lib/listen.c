/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of a program. */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/live_listeners.h"
#include "lib/setting_check.h"
#include "os/fd.h"
#include "os/sock.h"

static mk_str listen_flags(bool tls, bool http2)
{
    return tls ? MK_STR(" tls") : http2 ? MK_STR(" http2") : MK_STR("");
}

/* Adds a configuration line with the address: when the server starts, it finds the open socket by this
 * address. */
static mk_err add_listen_line(struct mk_server *s, const struct mk_sockaddr *addr, bool tls, bool http2)
{
    char buf[MK_SOCKADDR_TEXT_MAX + 8];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_sockaddr_format(addr, &text);
    mk_buf_add(&text, listen_flags(tls, http2));
    return text.failed
               ? -ENAMETOOLONG
               : mk_config_builder_set(&s->lines, MK_STR("SERVER"), MK_STR("Listen"), mk_buf_str(&text));
}

/* Opens a listener; sockets that are already open stay open. */
static mk_err open_listener(struct mk_server *s, const struct mk_listen *one)
{
    struct mk_listen expected[MK_LISTENERS_MAX + 1];
    const struct mk_listen *failed;
    size_t n = s->listeners.n;
    for (size_t i = 0; i < n; i++)
        expected[i] = (struct mk_listen){.addr = s->listeners.at[i].addr};
    expected[n] = *one;
    mk_err e = mk_listeners_open(&s->listeners, &(struct mk_listens){.at = expected, .n = n + 1}, 1, &failed);
    if (!e) /* so that another request for port 0 gets a new port */
        s->listeners.at[n].requested = s->listeners.at[n].addr;
    return e;
}

static bool is_listening_on(const struct mk_listeners *l, const struct mk_sockaddr *addr)
{
    unsigned i = 0;
    while (i < l->n && !mk_sockaddr_eq(&l->at[i].addr, addr))
        i++;
    return i < l->n;
}

static mk_err check_listen(struct mk_server *s, const char *where, struct mk_listen *one)
{
    mk_err e = mk_setting_check_listen(mk_str_from_c(where), one, &s->error_text);
    if (e)
        return mk_last_error_terminate(s, e);
    if (one->takes_port)
        return mk_last_error_set(s, -EINVAL, "`%s` has no port: expected ADDRESS:PORT", where);
    if (is_listening_on(&s->listeners, &one->addr))
        return mk_last_error_set(s, -EINVAL, "`%s` already has a Listen", where);
    if (s->listeners.n == MK_LISTENERS_MAX)
        return mk_last_error_set(s, -EINVAL, "too many addresses to listen on: at most %d are possible",
                                 MK_LISTENERS_MAX);
    return 0;
}

static mk_err listen_in_setup(struct mk_server *s, const char *where, unsigned *port)
{
    struct mk_listen one;
    mk_err e = check_listen(s, where, &one);
    if (e)
        return e;
    e = open_listener(s, &one);
    if (e)
        return mk_last_error_set(s, e, "cannot listen on `%s`: %s", where, mk_err_text(e));
    const struct mk_sockaddr *addr = &s->listeners.at[s->listeners.n - 1].addr;
    if (port)
        *port = mk_sockaddr_port(addr);
    e = add_listen_line(s, addr, one.tls, one.http2);
    return e ? mk_last_error_set_code(s, e) : 0;
}

/* ---- While the server is running ---- */

/* Returns the hosts without their own Listen: new listeners serve them, like the addresses in [SERVER]. */
static struct mk_vhosts *vhosts_of_server(struct mk_server *s)
{
    return &s->generation->hosts;
}

static bool has_tls_context(const struct mk_config_generation *g)
{
    const struct mk_vhost_config *c = g->sites;
    while (c && !__atomic_load_n(&c->host.tls, __ATOMIC_ACQUIRE))
        c = c->next;
    return c && g->hosts.tls.choose;
}

static mk_err check_protocol(struct mk_server *s, const struct mk_listen *one)
{
    const struct mk_config_generation *g = s->generation;
    if (s->options.in_memory)
        return mk_last_error_set_running(s, -ENOTSUP, "this server is in memory: it opens no listeners");
    if (!g->hosts.fallback)
        return mk_last_error_set_running(s, -EINVAL, "no host answers there: each has its own Listen");
    if (one->tls && !has_tls_context(g))
        return mk_last_error_set_running(
            s, -EINVAL, "no host has a certificate: call mk_server_add_certificate() before the start");
    if (one->http2 && !g->http2)
        return mk_last_error_set_running(s, -ENOTSUP, "this server does not support HTTP/2");
    return 0;
}

/* Checks the number of addresses, and that the address is new. */
static mk_err check_address(struct mk_server *s, const struct mk_sockaddr *addr)
{
    pthread_mutex_lock(&s->lock);
    bool is_open = mk_live_listeners_find(s, addr), is_full = mk_live_listeners_at(s, MK_LISTENERS_MAX - 1);
    pthread_mutex_unlock(&s->lock);
    if (is_open)
        return mk_last_error_set_running(s, -EINVAL, "the address already has a Listen");
    return is_full ? mk_last_error_set_running(s, -EINVAL,
                                               "too many addresses to listen on: at most %d are possible",
                                               MK_LISTENERS_MAX)
                   : 0;
}

/* With SO_REUSEPORT, bind() succeeds even if another server of the same user has the port: probe first. This
 * probe would also fail on our own sockets. */
static mk_err test_bind(struct mk_server *s, const struct mk_sockaddr *addr)
{
    pthread_mutex_lock(&s->lock);
    bool is_ours = mk_live_listeners_has_port(s, mk_sockaddr_port(addr));
    pthread_mutex_unlock(&s->lock);
    return is_ours ? 0 : mk_sock_test_bind(addr);
}

static mk_err open_live_sockets(struct mk_live_listener *l)
{
    mk_err e = test_bind(l->server, &l->addr);
    bool is_unix = l->addr.any.sa_family == AF_UNIX;
    for (unsigned i = 0; i < l->n_fds && !e; i++)
        e = mk_listener_open_socket(&l->addr, !is_unix, false, &l->fds[i]);
    return e;
}

static mk_err add_live_listener(struct mk_server *s, const struct mk_listen *one, unsigned *port)
{
    unsigned n = one->addr.any.sa_family == AF_UNIX ? 1 : atomic_load(&s->n_workers);
    struct mk_live_listener *l = mk_live_listener_new(s, one, n);
    mk_err e = l ? open_live_sockets(l) : -ENOMEM;
    unsigned actual = l ? mk_sockaddr_port(&l->addr) : 0;
    if (!e)
        e = mk_live_listeners_add(s, l);
    if (e && l)
        mk_live_listener_free(l);
    if (!e && port)
        *port = actual;
    return e;
}

/* Parses an address as in Listen. */
static mk_err parse_address(struct mk_server *s, const char *where, struct mk_listen *one)
{
    char buf[MK_SOCKADDR_TEXT_MAX + 256];
    struct mk_buf error = mk_buf_fixed(buf, sizeof buf);
    mk_err e = mk_setting_check_listen(mk_str_from_c(where), one, &error);
    if (e)
        return mk_last_error_set_running(s, e, "%.*s", MK_STR_ARG(mk_buf_str(&error)));
    return one->takes_port
               ? mk_last_error_set_running(s, -EINVAL, "`%s` has no port: expected ADDRESS:PORT", where)
               : 0;
}

static mk_err listen_while_running(struct mk_server *s, const char *where, unsigned *port)
{
    struct mk_listen one;
    mk_err e = parse_address(s, where, &one);
    if (e)
        return e;
    one.hosts = vhosts_of_server(s);
    pthread_mutex_lock(&s->changing);
    e = check_protocol(s, &one);
    if (!e)
        e = check_address(s, &one.addr);
    if (!e && (e = add_live_listener(s, &one, port)))
        (void)mk_last_error_set_running(s, e, "cannot listen on `%s`: %s", where, mk_err_text(e));
    pthread_mutex_unlock(&s->changing);
    return e;
}

int mk_server_listen(struct mk_server *s, const char *where, unsigned *port)
{
    int before MK_KEEP_ERRNO = errno;
    bool is_running;
    mk_err e = mk_last_error_check_running(s, &is_running);
    if (e)
        return e;
    if (!where)
        return is_running ? mk_last_error_set_running(s, -EINVAL, "the address is NULL")
                          : mk_last_error_set(s, -EINVAL, "the address is NULL");
    return is_running ? listen_while_running(s, where, port) : listen_in_setup(s, where, port);
}

int mk_server_unlisten(struct mk_server *s, const char *where)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_listen one;
    mk_err e = mk_last_error_require_running(s);
    if (e)
        return e;
    if (!where)
        return mk_last_error_set_running(s, -EINVAL, "the address is NULL");
    e = parse_address(s, where, &one);
    if (e)
        return e;
    pthread_mutex_lock(&s->changing);
    e = mk_live_listeners_close(s, &one.addr);
    pthread_mutex_unlock(&s->changing);
    return e ? mk_last_error_set_running(s, e, "the server does not listen on `%s`", where) : 0;
}

/* ---- Sockets of the program ---- */

static mk_err inspect_socket(int fd, struct mk_sockaddr *addr)
{
    int type = 0;
    socklen_t len = sizeof type;
    struct mk_sockaddr again;
    char buf[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
        return mk_err_last();
    mk_err e = type == SOCK_STREAM ? mk_sockaddr_getsockname(fd, addr) : -EPROTOTYPE;
    if (e)
        return e;
    mk_sockaddr_format(addr, &text); /* an unnamed unix socket gives no valid text: rejected below */
    bool is_bound = addr->any.sa_family == AF_UNIX || mk_sockaddr_port(addr);
    return !is_bound || text.failed || mk_sockaddr_parse(mk_buf_str(&text), MK_STR(""), &again) ||
                   !mk_sockaddr_eq(&again, addr)
               ? -EADDRNOTAVAIL
               : 0;
}

/* Duplicates a socket of the program. The duplicate is ours; it and the original become non-blocking. */
static mk_err duplicate_socket(int fd, int *out)
{
    *out = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    mk_err e = *out < 0 ? mk_err_last() : mk_fd_set_nonblock(*out);
    if (e)
        mk_fd_close(out);
    return e;
}

static mk_err adopt_socket(struct mk_server *s, int fd, const struct mk_sockaddr *addr)
{
    int *fds = mk_mem_zalloc(MK_LISTENER_SOCKETS_MAX, sizeof *fds);
    mk_err e = fds ? duplicate_socket(fd, &fds[0]) : -ENOMEM;
    if (e) {
        mk_mem_free(fds);
        return e;
    }
    s->listeners.at[s->listeners.n++] = (struct mk_listener){.addr = *addr,
                                                             .requested = *addr,
                                                             .fds = fds,
                                                             .n_fds = 1,
                                                             .shared = true,
                                                             .managed = true,
                                                             .wanted = true};
    return 0;
}

/* Returns a number that identifies the socket in the whole system; 0: unknown. */
static uint64_t socket_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t len = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

/* Returns the listener that already has other sockets of the program with this address, so that the socket
 * `fd` is added to it. NULL: there is none, or the listener is full or already has the socket. */
static struct mk_listener *find_adopted(struct mk_server *s, int fd, const struct mk_sockaddr *addr)
{
    struct mk_listener *one = NULL;
    for (unsigned i = 0; i < s->listeners.n; i++)
        if (s->listeners.at[i].managed && mk_sockaddr_eq(&s->listeners.at[i].addr, addr))
            one = &s->listeners.at[i];
    if (!one || one->n_fds == MK_LISTENER_SOCKETS_MAX || !socket_cookie(fd))
        return NULL;
    for (unsigned i = 0; i < one->n_fds; i++)
        if (socket_cookie(one->fds[i]) == socket_cookie(fd))
            return NULL;
    return one;
}

static mk_err listen_fd_in_setup(struct mk_server *s, int fd, const struct mk_sockaddr *addr, bool tls)
{
    struct mk_listener *same = find_adopted(s, fd, addr);
    mk_err e = 0;
    if (same) {
        e = duplicate_socket(fd, &same->fds[same->n_fds]);
        same->n_fds += !e;
        return e;
    }
    if (is_listening_on(&s->listeners, addr) || s->listeners.n == MK_LISTENERS_MAX)
        return -EINVAL;
    e = adopt_socket(s, fd, addr);
    return e ? e : add_listen_line(s, addr, tls, false);
}

static mk_err listen_fd_while_running(struct mk_server *s, int fd, const struct mk_sockaddr *addr, bool tls)
{
    const struct mk_listen one = {.addr = *addr, .tls = tls, .hosts = vhosts_of_server(s)};
    mk_err e = check_protocol(s, &one);
    if (!e)
        e = check_address(s, addr);
    if (e)
        return e;
    struct mk_live_listener *l = mk_live_listener_new(s, &one, 1);
    e = l ? duplicate_socket(fd, &l->fds[0]) : -ENOMEM;
    if (l)
        l->owns_file = false;
    if (!e)
        e = mk_live_listeners_add(s, l);
    if (!e)
        return 0;
    if (l)
        mk_live_listener_free(l);
    return mk_last_error_set_running(s, e, "cannot listen on descriptor %d: %s", fd, mk_err_text(e));
}

static mk_err set_fd_error(struct mk_server *s, bool is_running, int fd, mk_err e)
{
    static const char text[] = "descriptor %d is not a socket to listen on: %s";
    return is_running ? mk_last_error_set_running(s, e, text, fd, mk_err_text(e))
                      : mk_last_error_set(s, e, text, fd, mk_err_text(e));
}

int mk_server_listen_fd(struct mk_server *s, int fd, bool tls)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_sockaddr addr;
    bool is_running;
    mk_err e = mk_last_error_check_running(s, &is_running);
    if (e)
        return e;
    e = inspect_socket(fd, &addr);
    if (!e && is_running) {
        pthread_mutex_lock(&s->changing);
        e = listen_fd_while_running(s, fd, &addr, tls);
        pthread_mutex_unlock(&s->changing);
        return e;
    }
    if (!e)
        e = listen_fd_in_setup(s, fd, &addr, tls);
    return e ? set_fd_error(s, is_running, fd, e) : 0;
}

/* ---- Asking ---- */

/* Locks the list of listeners, for functions that get a const server. NULL: the server is invalid. */
static struct mk_server *lock_listeners(const struct mk_server *s)
{
    struct mk_server *own = (struct mk_server *)(uintptr_t)s;
    if (!mk_handle_is_valid(s))
        return NULL;
    pthread_mutex_lock(&own->lock);
    return own;
}

int mk_server_address(const struct mk_server *s, size_t i, char *buf, size_t cap)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_server *own = lock_listeners(s);
    const struct mk_live_listener *l = own ? mk_live_listeners_at(s, i) : NULL;
    struct mk_buf text = mk_buf_fixed(buf, cap);
    if (l) {
        mk_sockaddr_format(&l->addr, &text);
        mk_buf_add(&text, listen_flags(l->tls, l->http2));
        mk_buf_add_char(&text, '\0');
    }
    if (own)
        pthread_mutex_unlock(&own->lock);
    return !l ? -ENOENT : text.failed ? -ENOSPC : 0;
}

int mk_server_listener_fd(const struct mk_server *s, size_t i, size_t j)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_server *own = lock_listeners(s);
    const struct mk_live_listener *l = own ? mk_live_listeners_at(s, i) : NULL;
    int fd = -ENOENT;
    if (l && j < l->n_fds) {
        fd = fcntl(l->fds[j], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        fd = fd < 0 ? mk_err_last() : fd;
    }
    if (own)
        pthread_mutex_unlock(&own->lock);
    return fd;
}
