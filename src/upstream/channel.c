/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/channel.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "net/tls.h"

/* For callers, -EHOSTUNREACH means that no server is up. */
static int without_host(int error)
{
    return error == -EHOSTUNREACH ? -ENETUNREACH : error;
}

static void fail(struct mk_channel *c, int error)
{
    c->state = MK_CHANNEL_FAILED;
    c->error = without_host(error);
}

static void become_open(struct mk_channel *c)
{
    c->state = MK_CHANNEL_OPEN;
    if (c->alarm)
        mk_alarm_stop(c->alarm);
}

static void log_tls(struct mk_channel *c, const char *why)
{
    mk_worker_log(c->worker, MK_LOG_ERROR, "TLS with the server %.*s failed: %s", MK_STR_ARG(c->server->name),
                  why);
}

static void on_later(void *ctx);

/* TLS has input in its own buffers, about which no event tells: goes on when others had their turn. Without
 * memory for that, the next event goes on. */
static void go_on_later(struct mk_channel *c)
{
    if (!c->stream.holds)
        return;
    if (!c->later)
        c->later = mk_turn_end_new(c->worker, on_later, c);
    if (c->later)
        mk_turn_end_set(c->later);
}

static void shake_hands(struct mk_channel *c)
{
    const char *why = NULL;
    int e = c->server->upstream->all->tls->handshake(&c->stream, &why);
    if (e == 0) {
        become_open(c);
    } else if (e == -EAGAIN) {
        go_on_later(c);
    } else {
        log_tls(c, why ? why : strerror(-e));
        fail(c, -EPROTO);
    }
}

/* To ask for and to verify. */
static const char *name_of(const struct mk_upstream_server *s)
{
    mk_str set = s->upstream->settings->tls_name;
    if (set.len)
        return set.p; /* texts of the configuration end with a NUL */
    return s->host.p ? s->host.p : "localhost";
}

static void on_connected(struct mk_channel *c)
{
    const struct mk_upstream *u = c->server->upstream;
    if (!u->tls) {
        become_open(c);
        return;
    }
    int fd = c->stream.fd,
        error = u->all->tls->connect(&c->stream, fd, u->tls, name_of(c->server), c->session);
    if (error) {
        mk_stream_plain_open(&c->stream, fd);
        fail(c, error);
        return;
    }
    c->state = MK_CHANNEL_HANDSHAKE;
    shake_hands(c);
}

/* connect(2) had to wait. */
static void end_connecting(struct mk_channel *c, unsigned which)
{
    int error = 0;
    socklen_t len = sizeof error;
    if ((which & MK_HUNG_UP) && getsockopt(c->stream.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error)
        fail(c, -error);
    else
        on_connected(c);
}

static void on_ready(void *ctx, unsigned which)
{
    struct mk_channel *c = ctx;
    c->stream.dry = false;
    if (c->state == MK_CHANNEL_CONNECTING && (which & (MK_WRITABLE | MK_HUNG_UP)))
        end_connecting(c, which);
    else if (c->state == MK_CHANNEL_HANDSHAKE)
        shake_hands(c);
    c->on_ready(c, which);
}

static void on_later(void *ctx)
{
    struct mk_channel *c = ctx;
    if (c->state == MK_CHANNEL_HANDSHAKE)
        shake_hands(c);
    c->on_ready(c, MK_READABLE);
}

static void on_late(void *ctx)
{
    struct mk_channel *c = ctx;
    fail(c, -ETIMEDOUT);
    c->on_ready(c, MK_HUNG_UP);
}

static void send_without_delay(struct mk_channel *c)
{
    int one = 1;
    c->is_prompt = true;
    if (!c->is_unix)
        (void)setsockopt(c->stream.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static bool set_alarm(struct mk_channel *c)
{
    c->alarm = mk_alarm_new(c->worker, on_late, c);
    if (c->alarm)
        mk_alarm_set(c->alarm, c->server->upstream->settings->connect_ms);
    return c->alarm;
}

struct mk_channel *mk_channel_dial(const struct mk_upstream_server *server, const struct mk_addr *to,
                                   struct mk_worker *w, struct mk_tls_session **session, int *error)
{
    struct mk_channel *c = mk_mem_zalloc(1, sizeof *c);
    *error = -ENOMEM;
    if (!c)
        return NULL;
    mk_list_init(&c->link);
    c->server = server;
    c->worker = w;
    c->session = session;
    c->to = *to;
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool connects = fd >= 0 && connect(fd, &to->any, to->len) < 0;
    if (fd < 0 || (connects && errno != EINPROGRESS)) {
        *error = without_host(-errno);
        if (fd >= 0)
            close(fd);
        mk_mem_free(c);
        return NULL;
    }
    mk_stream_plain_open(&c->stream, fd);
    c->is_unix = to->any.sa_family == AF_UNIX;
    if (server->upstream->tls)
        send_without_delay(c);
    c->watcher = mk_watcher_new(w, fd, MK_READABLE | MK_WRITABLE | MK_ENDED, on_ready, c);
    bool needs_time = connects || server->upstream->tls;
    if (!c->watcher || (needs_time && !set_alarm(c))) {
        mk_channel_close(c);
        return NULL;
    }
    *error = 0;
    c->state = MK_CHANNEL_CONNECTING;
    if (!connects)
        on_connected(c);
    return c;
}

void mk_channel_close(struct mk_channel *c)
{
    mk_list_remove(&c->link);
    mk_alarm_free(c->alarm);
    mk_turn_end_free(c->later);
    c->stream.ops->close(&c->stream);
    mk_watcher_drop(c->watcher);
    mk_mem_free(c);
}

ssize_t mk_channel_read(struct mk_channel *c, char *room, size_t cap)
{
    const char *why = NULL;
    ssize_t n = c->state == MK_CHANNEL_OPEN ? c->stream.ops->read(&c->stream, room, cap) : -EAGAIN;
    if (n == -EPROTO && c->stream.tls) { /* in TLS 1.3 it rejects our certificate after the handshake */
        (void)c->server->upstream->all->tls->handshake(&c->stream, &why);
        log_tls(c, why ? why : strerror(EPROTO));
    }
    if (n == -EAGAIN)
        go_on_later(c);
    return n;
}

bool mk_channel_is_quiet(struct mk_channel *c, unsigned which)
{
    char byte;
    bool has_ended = which & (MK_ENDED | MK_HUNG_UP);
    return which == MK_WRITABLE || (!has_ended && c->stream.ops->read(&c->stream, &byte, 1) == -EAGAIN);
}

/* The kernel delays no first bytes: many connections are for one request, which is one piece. */
ssize_t mk_channel_write(struct mk_channel *c, mk_str bytes, bool more)
{
    if (c->state != MK_CHANNEL_OPEN)
        return -EAGAIN;
    if (c->has_written && !c->is_prompt)
        send_without_delay(c);
    c->has_written = true;
    return c->stream.ops->write(&c->stream, bytes, more);
}
