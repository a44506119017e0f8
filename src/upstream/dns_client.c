/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/dns_client.h"

#include <errno.h>
#include <monkey/clock.h>
#include <monkey/text.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"

enum { TRIES = 2, UDP_MS = 1500, TCP_MS = 3000 };

struct exchange {
    struct mk_dns_client *client;
    struct mk_dns_query query;
    unsigned char text[2 + MK_DNS_QUERY_MAX]; /* the query, after its length */
    size_t len;                               /* without the length */
    int fd;
    uint64_t until_ms;
};

/* Waits until the socket is ready. */
static int wait_ready(const struct exchange *x, short events)
{
    for (;;) {
        uint64_t now = mk_clock_ms(),
                 until = x->until_ms < x->client->deadline_ms ? x->until_ms : x->client->deadline_ms;
        struct pollfd p[] = {{.fd = x->fd, .events = events}, {.fd = x->client->cancel_fd, .events = POLLIN}};
        if (now >= until)
            return -ETIMEDOUT;
        int n = poll(p, MK_LEN(p), (int)(until - now));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            return p[1].revents ? -ECANCELED : 0;
    }
}

static int open_socket(struct exchange *x, const struct mk_sockaddr *to, int type)
{
    x->fd = socket(to->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->fd < 0)
        return -errno;
    return connect(x->fd, &to->any, to->len) < 0 && errno != EINPROGRESS ? -errno : 0;
}

static int read_answer(const struct exchange *x, struct mk_dns_answer *out)
{
    return mk_dns_read_answer(&x->query, x->client->message, x->client->len, out);
}

/* Ignores answers to other queries, which may be forged. */
static int exchange_udp(struct exchange *x, struct mk_dns_answer *out)
{
    struct mk_dns_client *c = x->client;
    if (send(x->fd, x->text + 2, x->len, MSG_NOSIGNAL) < 0)
        return -errno;
    for (;;) {
        int e = wait_ready(x, POLLIN);
        if (e)
            return e;
        ssize_t n = recv(x->fd, c->message, sizeof c->message, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        c->len = n > 0 ? (size_t)n : 0;
        e = n > 0 ? read_answer(x, out) : -EAGAIN;
        if (e != -EAGAIN)
            return e;
    }
}

static int send_all(const struct exchange *x)
{
    for (size_t sent = 0, len = x->len + 2; sent < len;) {
        int e = wait_ready(x, POLLOUT);
        if (e)
            return e;
        ssize_t n = send(x->fd, x->text + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int recv_all(const struct exchange *x, unsigned char *buf, size_t len)
{
    for (size_t got = 0; got < len;) {
        int e = wait_ready(x, POLLIN);
        if (e)
            return e;
        ssize_t n = recv(x->fd, buf + got, len - got, 0);
        if (n == 0)
            return -ECONNRESET;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        got += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int exchange_tcp(struct exchange *x, struct mk_dns_answer *out)
{
    unsigned char size[2];
    int e = send_all(x);
    e = e ? e : recv_all(x, size, sizeof size);
    if (e)
        return e;
    x->client->len = (size_t)size[0] << 8 | size[1];
    e = recv_all(x, x->client->message, x->client->len);
    e = e ? e : read_answer(x, out);
    return e == -EAGAIN || (!e && out->is_truncated) ? -EBADMSG : e;
}

static int ask_server_by(struct exchange *x, const struct mk_sockaddr *server, int type,
                         struct mk_dns_answer *out)
{
    x->until_ms = mk_clock_ms() + (type == SOCK_DGRAM ? UDP_MS : TCP_MS);
    int e = open_socket(x, server, type);
    if (!e)
        e = type == SOCK_DGRAM ? exchange_udp(x, out) : exchange_tcp(x, out);
    mk_fd_close(&x->fd);
    return e;
}

static int ask_server(struct exchange *x, const struct mk_sockaddr *server, struct mk_dns_answer *out)
{
    int e = ask_server_by(x, server, SOCK_DGRAM, out);
    if (!e && out->is_truncated)
        e = ask_server_by(x, server, SOCK_STREAM, out);
    if (e || !out->rcode)
        return e;
    return out->rcode == MK_DNS_NXDOMAIN ? -ENOENT : -EREMOTEIO;
}

int mk_dns_client_query(struct mk_dns_client *c, mk_str name, enum mk_dns_type type,
                        struct mk_dns_answer *out)
{
    struct exchange x = {.client = c, .query = {.name = name, .type = type}, .fd = -1};
    int e = -ETIMEDOUT;
    for (unsigned i = 0; i < TRIES * c->n_servers; i++) {
        mk_random(&x.query.id, sizeof x.query.id);
        x.len = mk_dns_write_query(&x.query, x.text + 2);
        if (!x.len)
            return -EINVAL;
        x.text[0] = (unsigned char)(x.len >> 8);
        x.text[1] = (unsigned char)x.len;
        e = ask_server(&x, &c->servers[i % c->n_servers], out);
        if (!e || e == -ENOENT || e == -ECANCELED || mk_clock_ms() >= c->deadline_ms)
            return e;
    }
    return e;
}
