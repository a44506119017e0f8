/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_session.h"

#include <errno.h>

#include "event/tls.h"
#include "http2client/h2_check.h"
#include "http2client/h2_codec.h"
#include "http2client/h2_session_input.h"
#include "http2client/h2_session_stream.h"
#include "http2client/h2_session_write.h"

enum { TABLE_MAX = 4096, OUT_HARD_MAX = 1 << 20 };

static void finish_session_work(struct mk_h2_session *ss);

/* ---- Failures ---- */

/* A server that closes an idle session is no failure. */
static void log_failure(const struct mk_h2_session *ss)
{
    if (ss->problem && ss->n_streams)
        mk_worker_log(ss->backend->pool->worker, MK_LOG_ERROR, "HTTP/2 with the server %.*s failed: %s",
                      MK_STR_ARG(ss->backend->server->name), ss->problem);
}

/* Fails all streams, and closes the socket: the GOAWAY is written as far as possible. */
static void end_failed_session(struct mk_h2_session *ss)
{
    log_failure(ss);
    mk_list_remove(&ss->link);
    mk_timer_stop(&ss->timer);
    mk_h2_session_write_flush(ss);
    if (mk_upstream_conn_has_socket(&ss->conn))
        mk_upstream_conn_close(&ss->conn);
    MK_LIST_EACH_SAFE (at, &ss->streams)
        mk_h2_session_stream_fail(MK_LIST_ENTRY(at, struct mk_h2_session_stream, link), ss->error,
                                  ss->problem);
}

/* Calls the owners of the streams, which may close any stream. */
static void notify_streams(struct mk_h2_session *ss)
{
    struct mk_list now;
    if (mk_list_empty(&ss->ready))
        return;
    now = ss->ready; /* streams that become ready meanwhile are notified in the next pass */
    now.next->prev = now.prev->next = &now;
    mk_list_init(&ss->ready);
    while (!mk_list_empty(&now)) {
        struct mk_h2_session_stream *s = MK_LIST_ENTRY(now.next, struct mk_h2_session_stream, ready);
        unsigned events = s->events;
        mk_list_remove(&s->ready);
        s->events = 0;
        mk_upstream_conn_on_event(s->conn, events);
    }
}

static void free_session(struct mk_h2_session *ss)
{
    mk_list_remove(&ss->link);
    mk_list_remove(&ss->unflushed);
    mk_timer_stop(&ss->timer);
    if (mk_upstream_conn_has_socket(&ss->conn))
        mk_upstream_conn_close(&ss->conn);
    mk_hpack_decoder_free(ss->decoder);
    mk_buf_free(&ss->out);
    mk_buf_free(&ss->in);
    mk_buf_free(&ss->block);
    mk_mem_free(ss);
}

/* Is the session without streams, and not to be kept for the next request? */
static bool is_session_over(const struct mk_h2_session *ss)
{
    bool is_kept = ss->state.current == MK_H2_SESSION_CONNECTING ||
                   (ss->state.current == MK_H2_SESSION_OPEN && ss->backend->server->upstream->keep);
    return !ss->n_streams && !is_kept;
}

/* Says goodbye, unless the session has failed. */
static void close_session(struct mk_h2_session *ss)
{
    if (ss->state.current != MK_H2_SESSION_FAILED && ss->has_begun) {
        mk_h2_frame_emit_goaway(&ss->out, 0, MK_H2_NO_ERROR);
        mk_h2_session_write_flush(ss);
    }
    free_session(ss);
}

/* Call it at the end of each function that handles an event of the session. */
static void finish_session_work(struct mk_h2_session *ss)
{
    if (--ss->depth)
        return;
    ss->depth++;
    if (ss->state.current == MK_H2_SESSION_FAILED && mk_upstream_conn_has_socket(&ss->conn))
        end_failed_session(ss);
    notify_streams(ss);
    if (ss->state.current == MK_H2_SESSION_FAILED && mk_upstream_conn_has_socket(&ss->conn))
        end_failed_session(ss);
    ss->depth--;
    if (is_session_over(ss))
        close_session(ss);
    else if (!mk_list_empty(&ss->ready))
        mk_h2_session_write_schedule(ss);
}

/* ---- Events ---- */

/* Did the server choose HTTP/2 by ALPN? */
static bool has_negotiated_http2(const struct mk_h2_session *ss)
{
    const struct mk_upstream *u = ss->backend->server->upstream;
    struct mk_tls_conn_info info = {0};
    if (!u->tls)
        return true;
    u->all->tls->facts(&ss->conn.stream, &info);
    return mk_str_eq(info.protocol, MK_STR("h2"));
}

/* Called when the socket is open. The session is open when the server's SETTINGS arrive. */
static void begin_session(struct mk_h2_session *ss)
{
    const struct mk_upstream_server *server = ss->backend->server;
    if (!has_negotiated_http2(ss)) {
        mk_h2_session_write_fail(ss, -EPROTO, "the server does not offer HTTP/2 (ALPN)");
        return;
    }
    ss->has_begun = true;
    mk_h2_session_write_preface(mk_h2_session_write_buffer(ss));
    mk_h2_session_write_flush(ss);
    mk_timer_set(&ss->timer, ss->backend->pool->worker, server->upstream->settings->connect_ms);
}

static void advance_session(struct mk_h2_session *ss, unsigned which)
{
    if (ss->conn.state.current == MK_UPSTREAM_CONN_BROKEN)
        mk_h2_session_write_fail(ss, ss->conn.error, NULL);
    if (ss->state.current == MK_H2_SESSION_FAILED || ss->conn.state.current != MK_UPSTREAM_CONN_OPEN)
        return;
    if (!ss->has_begun)
        begin_session(ss);
    else if (which & MK_WRITABLE && mk_h2_session_write_unsent(ss)) {
        mk_h2_session_write_flush(ss);
        mk_h2_session_stream_wake_blocked(ss);
    }
    ss->scratch = ss->backend->pool->http2_scratch;
    if (mk_h2_session_input_read(ss))
        mk_h2_session_write_schedule(ss); /* continues to read */
}

static void on_session_event(void *ctx, unsigned which)
{
    struct mk_h2_session *ss = ctx;
    ss->depth++;
    advance_session(ss, which);
    finish_session_work(ss);
}

static void on_session_timer(struct mk_timer *t)
{
    struct mk_h2_session *ss = MK_CONTAINER(t, struct mk_h2_session, timer);
    ss->depth++;
    if (ss->state.current == MK_H2_SESSION_CONNECTING)
        mk_h2_session_write_fail(ss, -ETIMEDOUT, "the server sends no HTTP/2 SETTINGS");
    else if (ss->is_suspect)
        mk_h2_session_write_fail(ss, -ETIMEDOUT, "the server does not acknowledge a PING");
    finish_session_work(ss);
}

/* ---- Opening ---- */

static bool init_session(struct mk_h2_session *ss, struct mk_backend *o)
{
    struct mk_pool *p = o->pool;
    *ss = (struct mk_h2_session){.backend = o,
                                 .out = mk_buf_growing(OUT_HARD_MAX),
                                 .in = mk_buf_growing(MK_H2_SESSION_INPUT_MAX),
                                 .next_id = 1,
                                 .send_window = MK_H2_WINDOW,
                                 .stream_window = MK_H2_WINDOW,
                                 .frame_max = MK_H2_FRAME_MAX,
                                 .streams_max =
                                     o->http2_streams_max ? o->http2_streams_max : MK_H2_SESSION_STREAMS_MAX,
                                 .table_max = TABLE_MAX,
                                 .receive_window = MK_H2_SESSION_WINDOW,
                                 .decoder = mk_hpack_decoder_new()};
    mk_state_init(&ss->state, &mk_h2_session_machine, MK_H2_SESSION_CONNECTING);
    mk_list_init(&ss->link);
    mk_list_init(&ss->unflushed);
    mk_list_init(&ss->streams);
    mk_list_init(&ss->ready);
    mk_list_init(&ss->blocked);
    mk_list_init(&ss->conn.backend_link);
    mk_timer_init(&ss->timer, on_session_timer);
    mk_state_init(&ss->conn.state, &mk_upstream_conn_machine, MK_UPSTREAM_CONN_WAITING);
    ss->conn.on_event = on_session_event;
    ss->conn.ctx = ss;
    ss->conn.offers_http2 = true;
    if (!p->http2_scratch)
        p->http2_scratch = mk_mem_alloc(MK_H2_SESSION_INPUT_SCRATCH);
    return ss->decoder && p->http2_scratch;
}

/* Opens a session. The socket may be connected at once (unix sockets). */
static int open_session(struct mk_backend *o, struct mk_h2_session **out,
                        int (*connect)(struct mk_backend *o, struct mk_upstream_conn *socket))
{
    struct mk_h2_session *ss = mk_mem_alloc(sizeof *ss);
    if (!ss)
        return -ENOMEM;
    int e = init_session(ss, o) ? connect(o, &ss->conn) : -ENOMEM;
    if (e) {
        free_session(ss);
        return e;
    }
    ss->conn.names_version = o->names.version;
    mk_list_add_last(&o->http2_sessions, &ss->link);
    if (ss->conn.state.current == MK_UPSTREAM_CONN_OPEN)
        begin_session(ss);
    *out = ss;
    return 0;
}

static bool may_attach(const struct mk_h2_session *ss)
{
    bool is_usable = ss->state.current == MK_H2_SESSION_OPEN || ss->state.current == MK_H2_SESSION_CONNECTING;
    return is_usable && !ss->is_suspect && ss->n_streams < ss->streams_max;
}

/* Returns an open session with capacity, or else one that is connecting. */
static struct mk_h2_session *find_session(struct mk_backend *o)
{
    struct mk_h2_session *connecting = NULL;
    for (struct mk_list *at = o->http2_sessions.next; at != &o->http2_sessions; at = at->next) {
        struct mk_h2_session *ss = MK_LIST_ENTRY(at, struct mk_h2_session, link);
        if (!may_attach(ss))
            continue;
        if (ss->state.current == MK_H2_SESSION_OPEN)
            return ss;
        connecting = ss;
    }
    return connecting;
}

static int attach_to_session(struct mk_backend *o, struct mk_upstream_conn *c,
                             int (*connect)(struct mk_backend *o, struct mk_upstream_conn *socket))
{
    struct mk_h2_session *ss = find_session(o);
    int e = ss ? 0 : open_session(o, &ss, connect);
    if (e)
        return e;
    return mk_h2_session_stream_attach(ss, c) ? 0 : -ENOMEM;
}

/* ---- For the pool ---- */

/* Runs at the end of the loop iteration, so that the frames of many streams are written together. */
static void flush_sessions(struct mk_pool *p)
{
    struct mk_list now = p->unflushed;
    if (mk_list_empty(&p->unflushed))
        return;
    now.next->prev = now.prev->next = &now;
    mk_list_init(&p->unflushed);
    while (!mk_list_empty(&now)) {
        struct mk_h2_session *ss = MK_LIST_ENTRY(now.next, struct mk_h2_session, unflushed);
        mk_list_remove(&ss->unflushed);
        ss->depth++;
        mk_h2_session_write_flush(ss);
        if (!mk_h2_session_write_unsent(ss))
            mk_h2_session_stream_wake_blocked(ss);
        advance_session(ss, 0);
        finish_session_work(ss);
    }
}

static bool sweep_sessions(struct mk_backend *o, uint64_t now_ms)
{
    MK_LIST_EACH_SAFE (at, &o->http2_sessions) {
        struct mk_h2_session *ss = MK_LIST_ENTRY(at, struct mk_h2_session, link);
        bool is_idle = !ss->n_streams && ss->state.current == MK_H2_SESSION_OPEN && !ss->depth;
        if (is_idle && now_ms - ss->idle_since_ms >= o->server->upstream->idle_ms)
            close_session(ss);
    }
    return !mk_list_empty(&o->http2_sessions);
}

static void drain_stale_sessions(struct mk_backend *o)
{
    MK_LIST_EACH_SAFE (at, &o->http2_sessions) {
        struct mk_h2_session *ss = MK_LIST_ENTRY(at, struct mk_h2_session, link);
        if (ss->state.current != MK_H2_SESSION_OPEN || mk_resolver_has_addr(&o->names, &ss->conn.to))
            continue;
        mk_h2_session_write_move(ss, MK_H2_SESSION_DRAINING);
        mk_h2_session_write_schedule(ss);
    }
}

static void close_all_sessions(struct mk_backend *o)
{
    MK_LIST_EACH_SAFE (at, &o->http2_sessions) {
        struct mk_h2_session *ss = MK_LIST_ENTRY(at, struct mk_h2_session, link);
        if (!ss->n_streams)
            close_session(ss);
    }
}

const struct mk_upstream_http2_module mk_h2_session_module = {
    .codec = &mk_h2_codec,
    .attach = attach_to_session,
    .flush = flush_sessions,
    .sweep = sweep_sessions,
    .drain_stale = drain_stale_sessions,
    .close_all = close_all_sessions,
    .write_check = mk_h2_check_write,
    .read_check = mk_h2_check_read,
    .free_check = mk_h2_check_free,
};
