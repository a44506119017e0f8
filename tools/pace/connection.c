/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/connection.h"

#include <netinet/tcp.h>

#include "os/fd.h"
#include "os/sock.h"

void pace_connection_init(struct pace_connection *c)
{
    *c = (struct pace_connection){.fd = -1, .phase = PACE_CLOSED};
    mk_list_init(&c->link);
    mk_list_init(&c->again);
    mk_response_parser_init(&c->reply, (struct mk_response_parser_options){0}, NULL, 0);
}

static mk_err start_connecting(struct pace_connection *c, const struct mk_sockaddr *to, struct pace_poller *w)
{
    static const int on = 1;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, &to->any, to->len) < 0 && errno != EINPROGRESS)
        return mk_err_last();
    return pace_poller_add(w, c->fd, c);
}

mk_err pace_connection_open(struct pace_connection *c, const struct mk_sockaddr *to, struct pace_poller *w)
{
    c->fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return mk_err_last();
    mk_err e = start_connecting(c, to, w);
    c->phase = PACE_CONNECTING;
    if (e)
        pace_connection_close(c, false);
    return e;
}

mk_err pace_connection_finish_open(struct pace_connection *c)
{
    int failed = 0;
    socklen_t len = sizeof failed;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
        return mk_err_last();
    if (!failed)
        c->phase = PACE_SENDING;
    return -failed;
}

mk_err pace_connection_send(struct pace_connection *c, mk_str request)
{
    c->phase = PACE_SENDING;
    while (c->sent < request.len) {
        ssize_t n = send(c->fd, request.p + c->sent, request.len - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : mk_err_last();
        c->sent += (size_t)n;
    }
    c->phase = PACE_WAITING;
    return 0;
}

void pace_connection_reset_response(struct pace_connection *c)
{
    mk_response_parser_fini(&c->reply);
    mk_response_parser_init(&c->reply, (struct mk_response_parser_options){0}, NULL, 0);
    c->comparison = (struct pace_comparison){0};
    c->sent = 0;
}

void pace_connection_close(struct pace_connection *c, bool hard)
{
    if (hard)
        mk_sock_close_with_rst(&c->fd);
    else
        mk_fd_close(&c->fd);
    mk_list_remove(&c->again);
    pace_connection_reset_response(c);
    c->used = false;
    c->phase = PACE_CLOSED;
}
