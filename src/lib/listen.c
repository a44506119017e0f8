/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of a program. */
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/setting_check.h"
#include "os/fd.h"

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
    mk_err e = mk_setting_check_listen(mk_str_from_c(where), one, &s->why);
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

int mk_server_listen(struct mk_server *s, const char *where, unsigned *port)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_listen one;
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    if (!where)
        return mk_last_error_set(s, -EINVAL, "the address is NULL");
    e = check_listen(s, where, &one);
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

static mk_err adopt_socket(struct mk_server *s, int fd, const struct mk_sockaddr *addr)
{
    int *fds = mk_mem_zalloc(MK_LISTENER_SOCKETS_MAX, sizeof *fds);
    int own = fds ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    mk_err e = !fds ? -ENOMEM : own < 0 ? mk_err_last() : mk_fd_set_nonblock(own);
    if (e) {
        mk_fd_close(&own);
        mk_mem_free(fds);
        return e;
    }
    fds[0] = own;
    s->listeners.at[s->listeners.n++] = (struct mk_listener){.addr = *addr,
                                                             .requested = *addr,
                                                             .fds = fds,
                                                             .n_fds = 1,
                                                             .shared = true,
                                                             .managed = true,
                                                             .wanted = true};
    return 0;
}

int mk_server_listen_fd(struct mk_server *s, int fd, bool tls)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_sockaddr addr;
    mk_err e = mk_last_error_require_setup(s);
    if (e)
        return e;
    e = inspect_socket(fd, &addr);
    if (!e && (is_listening_on(&s->listeners, &addr) || s->listeners.n == MK_LISTENERS_MAX))
        e = -EINVAL;
    if (!e)
        e = adopt_socket(s, fd, &addr);
    if (e)
        return mk_last_error_set(s, e, "descriptor %d is not a socket to listen on: %s", fd, mk_err_text(e));
    e = add_listen_line(s, &addr, tls, false);
    return e ? mk_last_error_set_code(s, e) : 0;
}

int mk_server_address(const struct mk_server *s, size_t i, char *buf, size_t cap)
{
    int before MK_KEEP_ERRNO = errno;
    const struct mk_listener *one =
        mk_handle_is_valid(s) && i < s->listeners.n && s->generation ? &s->listeners.at[i] : NULL;
    const struct mk_listen *as = one ? mk_listener_find_listen(one, &s->generation->listens) : NULL;
    if (!as)
        return -ENOENT;
    struct mk_buf text = mk_buf_fixed(buf, cap);
    mk_sockaddr_format(&one->addr, &text);
    mk_buf_add(&text, listen_flags(as->tls, as->http2));
    mk_buf_add_char(&text, '\0');
    return text.failed ? -ENOSPC : 0;
}
