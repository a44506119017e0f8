/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without processes: a loop, a connection manager and a site, with a client at the other end of a
 * socket pair. */
#ifndef MK_UNIT_CONNECTION_FIXTURE_H
#define MK_UNIT_CONNECTION_FIXTURE_H

#include <sys/socket.h>

#include "base/clock.h"
#include "connection/accept_hooks.h"
#include "connection/conn_manager.h"
#include "connection/h1.h"
#include "connection/h1_types.h"
#include "unit/h1_response.h"
#include "unit/handlers.h"
#include "unit/harness.h"
#include "unit/site.h"
#include "unit/test.h"

enum { CONN_RECEIVED_MAX = 1 << 24, CONN_RECORDS = 512, CONN_IDLE_ITERATIONS = 3 };

struct conn_fixture {
    struct site site;
    struct mk_loop loop;
    struct mk_conn_manager_limits limits;
    struct mk_counters counters;
    struct mk_conn_manager manager;
    struct handlers handlers;
    struct handlers_routes routes;
    struct mk_conn *conn;   /* the last connection opened; it may be closed and freed */
    int fd;                 /* the client's end; -1: closed */
    bool ended, reset;      /* how the server closed its side, once the client noticed */
    struct mk_buf received; /* all bytes received */
    size_t read;            /* number of received bytes already parsed as responses */
    /* Access records. */
    unsigned n_records, statuses[CONN_RECORDS];
    enum mk_outcome outcomes[CONN_RECORDS];
    uint64_t content_sent[CONN_RECORDS];
};

static const struct mk_conn_manager_limits conn_limits = {
    .head = {.head_max = 4096, .target_max = 1024, .fields_max = 32},
    .request.content_max = 1 << 20,
    .connections_max = 100,
    .descriptors = 1000,
    .keep_alive = true,
    .head_ms = 10000,
    .idle_ms = 10000,
    .linger_ms = 10000,
    .request.tunnel_ms = 10000,
    .request.handler_ms = 10000,
    .request.rate_ms = 10000,
};

static inline void conn_on_done(const struct mk_access_record *record, void *data)
{
    struct conn_fixture *t = data;
    assert_true(t->n_records < CONN_RECORDS);
    t->statuses[t->n_records] = record->status;
    t->outcomes[t->n_records] = record->outcome;
    t->content_sent[t->n_records++] = record->content_sent;
}

static inline void conn_init(struct conn_fixture *t)
{
    memset(t, 0, sizeof *t);
    site_init(&t->site);
    assert_int_equal(mk_loop_init(&t->loop), 0);
    t->limits = conn_limits;
    t->site.web.on_record = conn_on_done;
    t->site.web.on_record_data = t;
    assert_int_equal(
        mk_conn_manager_init(&t->manager, &t->loop, &t->site.web, &t->limits, &t->counters, MK_STR("Monkey")),
        0);
    assert_true(mk_conn_alloc_buffers(&t->manager)); /* the buffers outlive connections */
    t->handlers = (struct handlers){.loop = &t->loop, .helper = &t->manager.helper};
    t->site.host.n_routes = handlers_route(&t->routes, &t->handlers, &mk_static);
    t->site.host.routes = t->routes.at;
    t->fd = -1;
    t->received = mk_buf_growing(CONN_RECEIVED_MAX);
}

static inline void conn_fini(struct conn_fixture *t)
{
    mk_fd_close(&t->fd);
    mk_conn_close_all(&t->manager, MK_OUTCOME_SHUTDOWN);
    mk_loop_run_tasks(&t->loop);
    assert_int_equal(t->manager.n_conns, 0);
    assert_int_equal(t->manager.out.len, 0);
    mk_conn_manager_fini(&t->manager);
    mk_loop_fini(&t->loop);
    site_fini(&t->site);
    mk_buf_free(&t->received);
}

HARNESS_FIXTURE(conn, struct conn_fixture);

/* ---- Client ---- */

static inline void conn_send_bytes(struct conn_fixture *t, mk_str bytes)
{
    while (bytes.len) {
        ssize_t n = send(t->fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        assert_true(n > 0);
        bytes = mk_str_skip(bytes, (size_t)n);
    }
}

static inline void conn_send(struct conn_fixture *t, const char *text)
{
    conn_send_bytes(t, mk_str_from_c(text));
}

/* Connects through `ends` (the server's end first), after sending `text`, and passes the connection to the
 * server as an acceptor does. */
static inline void conn_open_by(struct conn_fixture *t, const struct mk_conn_ops *ops,
                                const struct mk_addr *peer, const int ends[2], const char *text)
{
    mk_fd_close(&t->fd);
    t->fd = ends[1];
    t->ended = t->reset = false;
    mk_buf_clear(&t->received);
    t->read = 0;
    assert_int_equal(mk_fd_set_nonblock(ends[0]), 0);
    conn_send(t, text);
    bool counts = ops != &mk_accept_hooks_ops;
    assert_int_equal(counts ? mk_client_limits_acquire(&t->manager.peers, peer) : 0, 0);
    t->conn = mk_conn_open(&t->manager, ops, ends[0], peer);
    assert_non_null(t->conn);
    t->conn->admission = counts ? MK_CONN_COUNTED : MK_CONN_NOT_COUNTED;
    t->conn->ops->advance(t->conn);
}

static inline void conn_open_as(struct conn_fixture *t, const struct mk_conn_ops *ops,
                                const struct mk_addr *peer, const char *text)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    conn_open_by(t, ops, peer, ends, text);
}

static inline void conn_open(struct conn_fixture *t, const char *text)
{
    const struct mk_addr peer = {.is_unix = 1};
    conn_open_as(t, &mk_h1_ops, &peer, text);
}

/* Limits the number of bytes that the server can send before it has to wait. */
static inline void conn_set_send_buffer(struct conn_fixture *t, int bytes)
{
    assert_int_equal(setsockopt(t->conn->stream.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
}

/* Receives what has arrived. Returns false if nothing has. */
static inline bool conn_receive(struct conn_fixture *t)
{
    char buffer[64 * 1024];
    if (t->fd < 0 || t->ended || t->reset)
        return false;
    ssize_t n = recv(t->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0)
        mk_buf_add(&t->received, mk_str_of(buffer, (size_t)n));
    t->ended = n == 0;
    t->reset = n < 0 && errno == ECONNRESET;
    assert_true(n >= 0 || errno == EAGAIN || errno == ECONNRESET);
    assert_false(t->received.failed);
    return n > 0 || t->ended || t->reset;
}

/* Runs the server; the client does not receive. */
static inline void conn_run_server(struct conn_fixture *t)
{
    for (int i = 0; i < CONN_IDLE_ITERATIONS; i++)
        assert_int_equal(mk_loop_run_once(&t->loop, 0), 0);
}

/* Runs both sides until nothing more happens. */
static inline void conn_run(struct conn_fixture *t)
{
    for (int quiet = 0; quiet < CONN_IDLE_ITERATIONS; quiet++) {
        assert_int_equal(mk_loop_run_once(&t->loop, 0), 0);
        while (conn_receive(t))
            quiet = -1;
    }
}

/* Like conn_run(), but stops when the client has received this many more bytes or the server has closed. */
static inline void conn_run_until_received(struct conn_fixture *t, size_t more)
{
    size_t until = t->received.len + more;
    for (int i = 0; i < 2000 && t->received.len < until && !t->ended && !t->reset; i++) {
        assert_int_equal(mk_loop_run_once(&t->loop, 5), 0);
        while (conn_receive(t))
            ;
    }
    conn_run(t);
}

/* Lets time pass while the client receives. */
static inline void conn_run_for(struct conn_fixture *t, unsigned ms)
{
    uint64_t until = mk_clock_ms() + ms;
    do {
        assert_int_equal(mk_loop_run_once(&t->loop, 5), 0);
        while (conn_receive(t))
            ;
    } while (mk_clock_ms() < until);
}

static inline mk_str conn_received(const struct conn_fixture *t)
{
    return mk_str_skip(mk_buf_str(&t->received), t->read);
}

/* ---- Responses ---- */

static inline enum h1_response_result conn_response(struct conn_fixture *t, struct h1_response *r,
                                                    bool is_head)
{
    mk_str rest = conn_received(t), before = rest;
    enum h1_response_result got = h1_response_next(r, &rest, is_head, t->ended);
    if (got == H1_RESPONSE_BAD)
        fail_msg("invalid response, %s: \"%.*s\"", r->why, MK_STR_ARG(before));
    t->read += before.len - rest.len;
    return got;
}

/* Expects the next response to be complete and to have this status; NULL content: any. */
static inline void conn_expect_for(struct conn_fixture *t, bool is_head, unsigned status, const char *content)
{
    struct h1_response r;
    mk_str before = conn_received(t);
    enum h1_response_result got = conn_response(t, &r, is_head);
    if (got != H1_RESPONSE_COMPLETE || r.status != status)
        fail_msg("no response %u: \"%.*s\"", status, MK_STR_ARG(before));
    if (content)
        assert_str(mk_buf_str(&r.content), content);
    h1_response_fini(&r);
}

static inline void conn_expect(struct conn_fixture *t, unsigned status, const char *content)
{
    conn_expect_for(t, false, status, content);
}

static inline void conn_expect_nothing(struct conn_fixture *t)
{
    if (conn_received(t).len)
        fail_msg("received \"%.*s\"", MK_STR_ARG(conn_received(t)));
}

/* Expects no further response, and n records, the last of which has this status and outcome. */
static inline void conn_expect_end(struct conn_fixture *t, unsigned n_records, unsigned status,
                                   enum mk_outcome outcome)
{
    conn_expect_nothing(t);
    assert_true(t->ended || t->reset);
    assert_int_equal(t->n_records, n_records);
    assert_int_equal(t->statuses[n_records - 1], status);
    assert_int_equal(t->outcomes[n_records - 1], outcome);
}

static inline void conn_expect_state(struct conn_fixture *t, enum mk_conn_state state)
{
    assert_int_equal(t->manager.n_conns, 1);
    if (t->conn->state.current != state)
        fail_msg("it is in %s, not in %s", mk_conn_machine.states->names[t->conn->state.current],
                 mk_conn_machine.states->names[state]);
}

#endif
