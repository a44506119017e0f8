/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "event/tls.h"

#define TO(state) MK_STATE_TO(MK_UPSTREAM_CONN_##state)

static const struct mk_state_table states = {
    /* OPEN: the connection took over the socket of an idle one. */
    MK_STATE_ROW(MK_UPSTREAM_CONN_WAITING, "waiting", TO(CONNECTING) | TO(OPEN)),
    MK_STATE_ROW(MK_UPSTREAM_CONN_CONNECTING, "connecting",
                 TO(HANDSHAKE) | TO(OPEN) | TO(BROKEN) | TO(WAITING)),
    MK_STATE_ROW(MK_UPSTREAM_CONN_HANDSHAKE, "handshake", TO(OPEN) | TO(BROKEN) | TO(WAITING)),
    MK_STATE_ROW(MK_UPSTREAM_CONN_OPEN, "open", TO(IDLE) | TO(WAITING)),
    MK_STATE_ROW(MK_UPSTREAM_CONN_IDLE, "idle", TO(WAITING)),
    MK_STATE_ROW(MK_UPSTREAM_CONN_BROKEN, "broken", TO(WAITING)),
};

static const char *state_problem(const void *owner)
{
    const struct mk_upstream_conn *c = owner;
    bool is_open = c->state.current == MK_UPSTREAM_CONN_OPEN || c->state.current == MK_UPSTREAM_CONN_IDLE;
    if (is_open && !c->watcher && !c->h2)
        return "it is watched";
    return c->state.current == MK_UPSTREAM_CONN_BROKEN && !c->error ? "it has an error" : NULL;
}

const struct mk_state_machine mk_upstream_conn_machine = {"upstream connection", &states,
                                                          MK_UPSTREAM_CONN_STATES, state_problem};

/* Replaces two errors of connect(2), because callers interpret -EHOSTUNREACH as "no server is up", and
 * -EAGAIN as "not connected yet". connect(2) reports a full accept queue of a Unix socket as EAGAIN, but no
 * event follows when the queue has space again. */
static int map_connect_error(int error)
{
    return error == -EHOSTUNREACH ? -ENETUNREACH : error == -EAGAIN ? -EXFULL : error;
}

void mk_upstream_conn_fail(struct mk_upstream_conn *c, int error)
{
    c->error = map_connect_error(error);
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_BROKEN);
    mk_timer_stop(&c->timer);
}

static void set_conn_open(struct mk_upstream_conn *c)
{
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_OPEN);
    mk_timer_stop(&c->timer);
}

static void log_tls_error(struct mk_upstream_conn *c, const char *message)
{
    mk_worker_log(c->worker, MK_LOG_ERROR, "TLS with the server %.*s failed: %s", MK_STR_ARG(c->server->name),
                  message);
}

static void on_deferred_read(void *ctx);

/* Schedules a read of input that TLS has buffered, because no event will report that input. The read runs
 * after other connections have had their turn. If memory runs out, the next event continues reading. */
static void schedule_read(struct mk_upstream_conn *c)
{
    if (!c->stream.holds)
        return;
    if (!c->later)
        c->later = mk_deferred_new(c->worker, on_deferred_read, c);
    if (c->later)
        mk_deferred_post(c->later);
}

static void advance_tls_handshake(struct mk_upstream_conn *c)
{
    const char *message = NULL;
    int e = c->server->upstream->all->tls->handshake(&c->stream, &message);
    if (e == 0) {
        set_conn_open(c);
    } else if (e == -EAGAIN) {
        schedule_read(c);
    } else {
        log_tls_error(c, message ? message : strerror(-e));
        mk_upstream_conn_fail(c, -EPROTO);
    }
}

/* Name for SNI and certificate verification. */
static const char *tls_server_name(const struct mk_upstream_server *s)
{
    mk_str set = s->upstream->settings->tls_name;
    if (set.len)
        return set.p; /* configuration strings are NUL-terminated */
    if (s->tls_name.p)
        return s->tls_name.p;
    return s->host.p ? s->host.p : "localhost";
}

static void start_tls_or_open(struct mk_upstream_conn *c)
{
    const struct mk_upstream *u = c->server->upstream;
    if (!u->tls) {
        set_conn_open(c);
        return;
    }
    int fd = c->stream.fd, error = u->all->tls->connect(&c->stream, fd, u->tls, tls_server_name(c->server),
                                                        c->session, c->offers_http2);
    if (error) {
        mk_stream_plain_open(&c->stream, fd);
        mk_upstream_conn_fail(c, error);
        return;
    }
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_HANDSHAKE);
    advance_tls_handshake(c);
}

/* Called when an asynchronous connect(2) may have completed. */
static void finish_connect(struct mk_upstream_conn *c, unsigned which)
{
    int error = 0;
    socklen_t len = sizeof error;
    if ((which & MK_HUNG_UP) && getsockopt(c->stream.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error)
        mk_upstream_conn_fail(c, -error);
    else
        start_tls_or_open(c);
}

static bool is_connecting(const struct mk_upstream_conn *c)
{
    return c->state.current == MK_UPSTREAM_CONN_CONNECTING || c->state.current == MK_UPSTREAM_CONN_HANDSHAKE;
}

MK_COLD static void end_connect(struct mk_upstream_conn *c)
{
    if (!is_connecting(c))
        c->on_connect_end(c);
}

void mk_upstream_conn_notify(struct mk_upstream_conn *c, unsigned which)
{
    if (MK_UNLIKELY(c->on_connect_end != NULL))
        end_connect(c);
    c->on_event(c->ctx, which);
}

/* HTTP/2: the session connects. */
MK_COLD static void advance_connect(struct mk_upstream_conn *c, unsigned which)
{
    if (c->h2)
        return;
    if (c->state.current == MK_UPSTREAM_CONN_HANDSHAKE)
        advance_tls_handshake(c);
    else if (which & (MK_WRITABLE | MK_HUNG_UP))
        finish_connect(c, which);
}

void mk_upstream_conn_on_event(void *conn, unsigned which)
{
    struct mk_upstream_conn *c = conn;
    if (which & (MK_READABLE | MK_ENDED | MK_HUNG_UP))
        mk_stream_on_input(&c->stream, which & (MK_ENDED | MK_HUNG_UP));
    if (MK_UNLIKELY(is_connecting(c)))
        advance_connect(c, which);
    mk_upstream_conn_notify(c, which);
}

static void on_deferred_read(void *ctx)
{
    struct mk_upstream_conn *c = ctx;
    if (c->state.current == MK_UPSTREAM_CONN_HANDSHAKE)
        advance_tls_handshake(c);
    mk_upstream_conn_notify(c, MK_READABLE);
}

static void on_connect_timeout(struct mk_timer *t)
{
    struct mk_upstream_conn *c = MK_CONTAINER(t, struct mk_upstream_conn, timer);
    mk_upstream_conn_fail(c, -ETIMEDOUT);
    mk_upstream_conn_notify(c, MK_HUNG_UP);
}

static void set_tcp_nodelay(struct mk_upstream_conn *c)
{
    int one = 1;
    c->nodelay = MK_UPSTREAM_CONN_NODELAY;
    if (c->to.any.sa_family != AF_UNIX)
        (void)setsockopt(c->stream.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Opens the socket and starts connecting it. 0: connected; 1: in progress; negative: an immediate error. */
static int connect_socket(struct mk_upstream_conn *c)
{
    int fd = socket(c->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool waits = fd >= 0 && connect(fd, &c->to.any, c->to.len) < 0;
    if (fd < 0 || (waits && errno != EINPROGRESS)) {
        int error = map_connect_error(-errno);
        if (fd >= 0)
            close(fd);
        return error;
    }
    mk_stream_plain_open(&c->stream, fd);
    c->stream.dry = true; /* an event will report any further input */
    return waits;
}

int mk_upstream_conn_connect(struct mk_upstream_conn *c, const struct mk_upstream_server *server,
                             const struct mk_sockaddr *to, struct mk_worker *w,
                             struct mk_tls_session **session)
{
    c->server = server;
    c->worker = w;
    c->session = session;
    c->to = *to;
    int waits = connect_socket(c);
    if (waits < 0)
        return waits;
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_CONNECTING);
    c->error = 0;
    if (server->upstream->tls)
        set_tcp_nodelay(c);
    c->watcher =
        mk_watcher_new(w, c->stream.fd, MK_READABLE | MK_WRITABLE | MK_ENDED, mk_upstream_conn_on_event, c);
    if (!c->watcher) {
        mk_upstream_conn_close(c);
        return -ENOMEM;
    }
    mk_timer_init(&c->timer, on_connect_timeout);
    if (waits || server->upstream->tls)
        mk_timer_set(&c->timer, w, server->upstream->settings->connect_ms);
    if (!waits)
        start_tls_or_open(c);
    if (c->state.current != MK_UPSTREAM_CONN_BROKEN)
        return 0;
    int error = c->error;
    mk_upstream_conn_close(c);
    return error;
}

void mk_upstream_conn_close(struct mk_upstream_conn *c)
{
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_WAITING);
    mk_list_remove(&c->backend_link);
    mk_timer_stop(&c->timer);
    mk_deferred_free(c->later);
    c->stream.ops->close(&c->stream);
    mk_watcher_free_closed(c->watcher);
    c->later = NULL;
    c->watcher = NULL;
    c->slot = MK_UPSTREAM_CONN_NO_SLOT;
    c->nodelay = MK_UPSTREAM_CONN_UNWRITTEN;
    c->was_used = false;
}

void mk_upstream_conn_take_socket(struct mk_upstream_conn *c, struct mk_upstream_conn *from)
{
    c->stream = from->stream;
    c->watcher = from->watcher;
    mk_watcher_set_callback(c->watcher, mk_upstream_conn_on_event, c);
    c->server = from->server;
    c->worker = from->worker;
    c->backend = from->backend;
    c->session = from->session;
    c->to = from->to;
    c->names_version = from->names_version;
    c->slot = from->slot;
    c->was_used = from->was_used;
    c->nodelay = from->nodelay;
    mk_upstream_conn_move(c, MK_UPSTREAM_CONN_OPEN);
    mk_timer_stop(&from->timer);
    if (MK_UNLIKELY(from->later))
        mk_deferred_free(from->later);
}

int mk_upstream_conn_state(const struct mk_upstream_conn *c)
{
    return c->state.current == MK_UPSTREAM_CONN_OPEN ? 0 : c->error ? c->error : -EAGAIN;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *c, char *buf, size_t cap)
{
    const char *message = NULL;
    if (MK_UNLIKELY(c->state.current != MK_UPSTREAM_CONN_OPEN))
        return mk_upstream_conn_state(c);
    ssize_t n = mk_stream_read(&c->stream, buf, cap);
    if (n == -EPROTO && c->stream.tls) { /* TLS 1.3: the server rejects our certificate after the handshake */
        (void)c->server->upstream->all->tls->handshake(&c->stream, &message);
        log_tls_error(c, message ? message : strerror(EPROTO));
    }
    if (n == -EAGAIN)
        schedule_read(c);
    if (n > 0 && c->attempt)
        c->attempt->received += (uint64_t)n;
    return n;
}

bool mk_upstream_conn_is_harmless_event(struct mk_upstream_conn *c, unsigned which)
{
    char byte;
    return which == MK_WRITABLE || (!c->stream.ended && mk_stream_read(&c->stream, &byte, 1) == -EAGAIN);
}

bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *c)
{
    return mk_stream_is_readable(&c->stream);
}

void mk_upstream_conn_assume_readable(struct mk_upstream_conn *c)
{
    c->stream.dry = false;
}

bool mk_upstream_conn_has_eof(const struct mk_upstream_conn *c)
{
    return c->stream.ended;
}

bool mk_upstream_conn_has_first_byte(const struct mk_upstream_conn *c)
{
    return c->is_answered;
}

bool mk_upstream_conn_is_unprocessed(const struct mk_upstream_conn *c)
{
    return c->is_unprocessed;
}

uint32_t mk_upstream_conn_reset_code(const struct mk_upstream_conn *c)
{
    return c->reset_code;
}

const char *mk_upstream_conn_read_error_text(const struct mk_upstream_conn *c)
{
    return c->read_error_text ? c->read_error_text : "the connection to the server broke";
}

/* Sets TCP_NODELAY only before the second write: Nagle's algorithm does not delay the first bytes, and many
 * connections carry a single request in one write. */
ssize_t mk_upstream_conn_write(struct mk_upstream_conn *c, mk_str bytes, bool more)
{
    if (MK_UNLIKELY(c->state.current != MK_UPSTREAM_CONN_OPEN))
        return mk_upstream_conn_state(c);
    if (c->nodelay == MK_UPSTREAM_CONN_UNWRITTEN)
        c->nodelay = MK_UPSTREAM_CONN_WRITTEN;
    else if (c->nodelay == MK_UPSTREAM_CONN_WRITTEN)
        set_tcp_nodelay(c);
    return c->stream.ops->write(&c->stream, bytes, more);
}

void mk_upstream_conn_shutdown_write(struct mk_upstream_conn *c)
{
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        c->stream.ops->shutdown(&c->stream);
}

bool mk_upstream_conn_was_reused(const struct mk_upstream_conn *c)
{
    return c->was_used;
}

int mk_upstream_conn_server(const struct mk_upstream_conn *c)
{
    return c->chosen;
}

void mk_upstream_conn_set_status(struct mk_upstream_conn *c, unsigned status)
{
    if (c->attempt)
        c->attempt->status = status;
}

void mk_upstream_conn_set_error(struct mk_upstream_conn *c, int error, const char *message)
{
    c->fault = error;
    c->fault_text = message;
}

void mk_upstream_conn_mark_cancelled(struct mk_upstream_conn *c, uint32_t ms, bool streams)
{
    c->cancelled_ms = ms ? ms : MK_UPSTREAM_CONN_CANCELLED_MS;
    c->streams = streams;
}

void mk_conn_attempt_begin(struct mk_upstream_conn *c, struct mk_attempt *attempt, mk_str server)
{
    c->attempt = attempt;
    attempt->server = server;
    mk_sockaddr_to_addr(&c->to, &attempt->address);
    if (c->state.current == MK_UPSTREAM_CONN_OPEN)
        attempt->connected_us = attempt->began_us;
}
