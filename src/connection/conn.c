/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/conn.h"

#include <monkey/connection.h>

#include "base/assert.h"
#include "base/mem.h"
#include "os/sock.h"

enum {
    SPARE_CONNS = 256,
    ITERATION_BYTES = 1024 * 1024,
    CREDIT_SPANS = 12,
    ACCEPT_HOOK_MS = 5000,
    IDLE_MIN_MS = 5000
};

_Static_assert(sizeof(struct mk_conn) <= 248, "an idle connection costs at most 256 bytes");

#define TO(state) MK_STATE_TO(MK_CONN_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_CONN_IDLE, "idle", TO(HEAD) | TO(DISPATCH) | TO(TLS) | TO(HTTP2) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_HEAD, "head", TO(DISPATCH) | TO(HTTP2) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_DISPATCH, "dispatch", TO(SEND) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_SEND, "send", TO(IDLE) | TO(DRAIN) | TO(TUNNEL) | TO(LINGER) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_DRAIN, "drain", TO(IDLE) | TO(LINGER) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_LINGER, "linger", TO(DEAD)),
    MK_STATE_ROW(MK_CONN_TLS, "tls", TO(IDLE) | TO(LINGER) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_TUNNEL, "tunnel", TO(LINGER) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_HTTP2, "http2", TO(LINGER) | TO(DEAD)),
    MK_STATE_ROW(MK_CONN_DEAD, "dead", 0),
};

static const char *conn_invariant_error(const void *owner)
{
    const struct mk_conn *c = owner;
    bool has_none = c->state.current == MK_CONN_IDLE || c->state.current == MK_CONN_HEAD ||
                    c->state.current == MK_CONN_TLS;
    return has_none && c->h1 ? "it has no request" : NULL;
}

const struct mk_state_machine mk_conn_machine = {"connection", &states, MK_CONN_STATES, conn_invariant_error};

static void on_conn_event(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_conn *c = MK_CONTAINER(w, struct mk_conn, watch);
    if (c->state.current == MK_CONN_DEAD)
        return; /* the connection was closed earlier in this iteration */
    /* In these states, unread input must be read even if both sides have closed their direction: closing the
     * socket before that would send a reset. */
    bool may_have_input = c->state.current == MK_CONN_LINGER || c->state.current == MK_CONN_TUNNEL;
    bool is_over = events & EPOLLERR || (events & EPOLLHUP && !may_have_input);
    if (is_over) {
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
        return;
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) || c->stream.shutdown_pending)
        mk_stream_on_input(&c->stream, events & (EPOLLRDHUP | EPOLLHUP));
    c->ops->advance(c);
}

/* Returns c->progress without the sent bytes that the peer has not acknowledged yet. The kernel accepts more
 * data only in large steps; between them, acknowledgments are the only sign that a slow peer makes
 * progress. */
static uint64_t bytes_acknowledged(const struct mk_conn *c)
{
    return c->progress - mk_sock_unsent_bytes(c->stream.fd);
}

/* Peers acknowledge in bursts, when much of their buffer is free again: a surplus in one interval is credited
 * to the following intervals. */
bool mk_conn_rate_is_below_min(struct mk_conn_rate *r, uint64_t progress,
                               const struct mk_request_limits *limits)
{
    int64_t rate = (int64_t)limits->rate_bytes;
    int64_t balance = r->credit + (int64_t)progress - (int64_t)r->progressed;
    int64_t most = rate * CREDIT_SPANS;
    r->progressed = progress;
    r->credit = (balance < most ? balance : most) - rate;
    return r->credit < 0;
}

const struct mk_request_limits *mk_conn_rate_more_lenient(const struct mk_request_limits *a,
                                                          const struct mk_request_limits *b)
{
    if (!a->rate_ms || !b->rate_ms)
        return a->rate_ms ? b : a;
    return b->rate_bytes * a->rate_ms < a->rate_bytes * b->rate_ms ? b : a;
}

static const struct mk_request_limits *request_limits_of(const struct mk_conn *c)
{
    const struct mk_request_limits *own = c->ops->limits ? c->ops->limits(c) : NULL;
    return own ? own : &c->manager->limits->request;
}

/* Has the peer acknowledged data since the last check? The protocol restarts the timeout when it sees
 * progress, but it does not see acknowledgments of data in the kernel's buffer. */
static bool has_peer_acknowledged_more(struct mk_conn *c)
{
    uint64_t before = c->rate.progressed;
    c->rate.progressed = bytes_acknowledged(c);
    return c->rate.progressed != c->progress && c->rate.progressed != before;
}

static void on_conn_timer(struct mk_timer *t)
{
    struct mk_conn *c = MK_CONTAINER(t, struct mk_conn, timer);
    enum mk_conn_timeout timeout = c->timeout;
    c->timeout = MK_TIMEOUT_NONE;
    if (timeout == MK_TIMEOUT_NONE)
        return; /* disarmed */
    if (timeout == MK_TIMEOUT_RATE &&
        !mk_conn_rate_is_below_min(&c->rate, bytes_acknowledged(c), request_limits_of(c)))
        mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
    else if (timeout == MK_TIMEOUT_TUNNEL && has_peer_acknowledged_more(c))
        mk_conn_set_timeout(c, MK_TIMEOUT_TUNNEL);
    else
        c->ops->on_timeout(c, timeout);
}

uint32_t mk_conn_request_timeout_ms(const struct mk_request_limits *l, enum mk_conn_timeout timeout)
{
    return timeout == MK_TIMEOUT_RATE      ? l->rate_ms
           : timeout == MK_TIMEOUT_HANDLER ? l->handler_ms
           : timeout == MK_TIMEOUT_TUNNEL  ? l->tunnel_ms
                                           : 0;
}

uint32_t mk_conn_timeout_ms(const struct mk_conn *c, enum mk_conn_timeout timeout)
{
    const struct mk_conn_manager_limits *l = c->manager->limits;
    switch (timeout) {
    case MK_TIMEOUT_IDLE:
        return l->idle_ms;
    case MK_TIMEOUT_HEAD:
        return l->head_ms;
    case MK_TIMEOUT_LINGER:
        return l->linger_ms;
    case MK_TIMEOUT_ACCEPT_HOOK:
        return l->head_ms < ACCEPT_HOOK_MS ? l->head_ms : ACCEPT_HOOK_MS;
    case MK_TIMEOUT_RATE:
    case MK_TIMEOUT_HANDLER:
    case MK_TIMEOUT_TUNNEL:
        return mk_conn_request_timeout_ms(request_limits_of(c), timeout);
    case MK_TIMEOUT_NONE:
        break;
    }
    return 0;
}

void mk_conn_set_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    bool restarts = c->timeout == timeout;
    if (restarts && timeout != MK_TIMEOUT_IDLE && timeout != MK_TIMEOUT_TUNNEL)
        return;
    uint32_t span = MK_LIKELY(timeout == MK_TIMEOUT_IDLE) ? c->manager->limits->idle_ms
                    : restarts                            ? c->span
                                                          : (c->span = mk_conn_timeout_ms(c, timeout));
    c->timeout = (uint8_t)timeout;
    if (timeout == MK_TIMEOUT_RATE)
        c->rate.progressed = bytes_acknowledged(c);
    if (span)
        mk_loop_set_timer(c->manager->loop, &c->timer, span);
    else
        mk_timer_stop(&c->timer);
}

static uint32_t idle_time_ms(const struct mk_conn *c)
{
    return c->manager->limits->idle_ms + (uint32_t)c->manager->loop->now_ms - c->timer.due_ms;
}

/* Closing a connection whose client has just sent a request would lose the request. A client that keeps a connection for
 * its next request often sends it soon after the last one. */
static bool may_close_idle(const struct mk_conn *c, uint32_t idle_min_ms)
{
    return !c->stream.holds && !c->n_saved && idle_time_ms(c) >= idle_min_ms &&
           !mk_sock_has_input(c->stream.fd);
}

static bool is_waiting_for_client(const struct mk_conn *c, bool with_heads)
{
    if (c->timeout == MK_TIMEOUT_IDLE)
        return may_close_idle(c, with_heads ? 0 : IDLE_MIN_MS);
    bool reads_head = c->timeout == MK_TIMEOUT_HEAD || c->timeout == MK_TIMEOUT_ACCEPT_HOOK;
    return with_heads && reads_head &&
           c->state.current != MK_CONN_HTTP2; /* other streams may be in progress */
}

void mk_conn_close_waiting(struct mk_conn_manager *s, bool with_heads)
{
    MK_LIST_EACH_SAFE (at, &s->conns) {
        struct mk_conn *c = MK_LIST_ENTRY(at, struct mk_conn, link);
        if (is_waiting_for_client(c, with_heads))
            on_conn_timer(&c->timer);
    }
}

static struct mk_conn *alloc_conn(struct mk_conn_manager *s)
{
    struct mk_conn *c = s->spare;
    if (!c)
        return mk_mem_alloc(sizeof *c);
    s->spare = (struct mk_conn *)(void *)c->task.next;
    s->n_spare--;
    return c;
}

static void recycle_conn(struct mk_loop_task *t)
{
    struct mk_conn *c = MK_CONTAINER(t, struct mk_conn, task);
    struct mk_conn_manager *s = c->manager;
    if (s->n_spare >= SPARE_CONNS) {
        mk_mem_free(c);
        return;
    }
    c->task.next = (struct mk_loop_task *)(void *)s->spare;
    s->spare = c;
    s->n_spare++;
}

void mk_conn_free_freelist(struct mk_conn_manager *s)
{
    while (s->spare)
        mk_mem_free(alloc_conn(s));
}

bool mk_conn_alloc_buffers(struct mk_conn_manager *s)
{
    if (!s->input_buffer.in)
        s->input_buffer.in = mk_mem_alloc(MK_INPUT_BUFFER_SIZE);
    if (!s->out.p)
        s->out = mk_buf_fixed(mk_mem_alloc(MK_SEND_QUEUE_WIDE_BUFFER), MK_SEND_QUEUE_BUFFER);
    return s->input_buffer.in && s->out.p;
}

struct mk_conn *mk_conn_open(struct mk_conn_manager *s, const struct mk_conn_ops *ops, int fd,
                             const struct mk_addr *peer)
{
    struct mk_conn *c = mk_conn_alloc_buffers(s) ? alloc_conn(s) : NULL;
    if (!c)
        return NULL;
    *c = (struct mk_conn){.watch = {.on_ready = on_conn_event},
                          .ops = ops,
                          .manager = s,
                          .hosts = s->web->hosts,
                          .peer = *peer};
    mk_state_init(&c->state, &mk_conn_machine, MK_CONN_IDLE);
    mk_stream_plain_open(&c->stream, fd);
    mk_timer_init(&c->timer, on_conn_timer);
    mk_list_add_last(&s->conns, &c->link);
    s->n_conns++;
    mk_counter_add(&s->counters->accepted, 1);
    mk_counter_set(&s->counters->open, s->n_conns);
    return c;
}

static void schedule_task(struct mk_conn *c, void (*run)(struct mk_loop_task *t))
{
    c->task.run = run;
    if (!c->task_set)
        mk_loop_defer(c->manager->loop, &c->task);
    c->task_set = true;
}

void mk_conn_close(struct mk_conn *c, enum mk_outcome outcome)
{
    struct mk_conn_manager *s = c->manager;
    if (c->state.current == MK_CONN_DEAD)
        return;
    c->ops->on_close(c, outcome);
    mk_conn_set_state(c, MK_CONN_DEAD);
    c->stream.ops->close(&c->stream);
    mk_timer_stop(&c->timer);
    mk_list_remove(&c->link);
    mk_send_queue_free(&c->out);
    mk_mem_free(c->saved);
    c->saved = NULL;
    if (c->admission == MK_CONN_COUNTED)
        mk_client_limits_release(&s->peers, &c->peer);
    s->n_awaiting_hooks -= c->admission == MK_CONN_AWAITS_HOOK;
    s->n_conns--;
    mk_counter_set(&s->counters->open, s->n_conns);
    schedule_task(c, recycle_conn);
    if (s->on_conn_closed)
        s->on_conn_closed(s);
}

void mk_conn_reset(struct mk_conn *c, enum mk_outcome outcome)
{
    if (c->state.current == MK_CONN_DEAD)
        return;
    mk_sock_close_with_rst(&c->stream.fd);
    mk_conn_close(c, outcome);
}

static const struct mk_conn *next_resumed_conn(const struct mk_loop_task *t)
{
    bool is_resumed = t->next && t->next->run == t->run;
    return is_resumed ? MK_CONTAINER(t->next, struct mk_conn, task) : NULL;
}

/* A broadcast resumes thousands of connections. While one connection sends, this function prefetches the
 * memory of the next one: the end of its exchange, the protocol's struct that follows in the same arena, and
 * the data of its handler. */
static void prefetch_exchange(const struct mk_conn *c)
{
    enum { LINE = 64, BEFORE = 6 * LINE, BEHIND = 6 * LINE };
    if (c && c->h1)
        for (ptrdiff_t at = -BEFORE; at < BEHIND; at += LINE)
            __builtin_prefetch((const char *)c->h1 + at);
}

struct mk_conn *mk_conn_begin_resumed(struct mk_loop_task *t)
{
    struct mk_conn *c = MK_CONTAINER(t, struct mk_conn, task);
    prefetch_exchange(next_resumed_conn(t));
    c->task_set = false;
    return c;
}

static void run_resumed(struct mk_loop_task *t)
{
    struct mk_conn *c = mk_conn_begin_resumed(t);
    c->ops->advance(c);
}

void mk_conn_resume(struct mk_conn *c)
{
    if (c->state.current != MK_CONN_DEAD)
        schedule_task(c, c->ops->run_resumed ? c->ops->run_resumed : run_resumed);
}

void mk_conn_queue_handshake(struct mk_conn *c)
{
    MK_ASSERT(c->state.current != MK_CONN_DEAD);
    if (c->task_set)
        return;
    c->task.run = run_resumed;
    c->task_set = true;
    mk_handshake_queue_push(&c->manager->handshakes, &c->task);
}

void mk_conn_begin_serving(struct mk_conn *c)
{
    struct mk_input_buffer *w = &c->manager->input_buffer;
    MK_ASSERT(c->n_saved <= MK_INPUT_BUFFER_SIZE && !c->manager->serving);
    c->manager->serving = c;
    c->manager->bytes_left = ITERATION_BYTES;
    w->from = 0;
    w->to = c->n_saved;
    if (!c->saved)
        return;
    memcpy(w->in, c->saved, c->n_saved);
    mk_mem_free(c->saved);
    c->saved = NULL;
    c->n_saved = 0;
}

static bool save_unused_input(struct mk_conn *c)
{
    mk_str rest = mk_conn_input(c);
    if (rest.len == 0)
        return true;
    c->saved = mk_mem_alloc(rest.len);
    if (!c->saved)
        return false;
    memcpy(c->saved, rest.p, rest.len);
    c->n_saved = (uint32_t)rest.len;
    return true;
}

static bool add_to_epoll(struct mk_conn *c)
{
    if (c->watched)
        return true;
    c->watched = mk_loop_add(c->manager->loop, c->stream.fd, &c->watch,
                             EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) == 0;
    return c->watched;
}

void mk_conn_end_serving(struct mk_conn *c)
{
    c->manager->serving = NULL;
    if (c->state.current == MK_CONN_DEAD)
        return;
    if (!save_unused_input(c) || !add_to_epoll(c)) {
        mk_log_warn(c->manager->log, "a connection was closed: out of memory");
        mk_conn_reset(c, MK_OUTCOME_FAILED);
    }
}

ssize_t mk_conn_read(struct mk_conn *c, char *buf, size_t cap)
{
    if (!mk_stream_is_readable(&c->stream))
        return -EAGAIN;
    if (c->manager->bytes_left == 0) {
        mk_conn_resume(c);
        return -EAGAIN;
    }
    ssize_t n = mk_stream_read(&c->stream, buf, cap);
    if (n > 0) {
        c->progress += (uint64_t)n;
        c->manager->bytes_left -= mk_min((size_t)n, c->manager->bytes_left);
    }
    if (MK_UNLIKELY(c->stream.holds) && n > 0 && (size_t)n < cap)
        c->manager->bytes_left = 0; /* decrypting a small record is expensive: other connections go first */
    if (MK_UNLIKELY(c->stream.holds) && n == -EAGAIN)
        mk_conn_resume(c);
    return n;
}

ssize_t mk_conn_fill_input(struct mk_conn *c)
{
    struct mk_input_buffer *w = &c->manager->input_buffer;
    if (w->from > 0) {
        memmove(w->in, w->in + w->from, w->to - w->from);
        w->to -= w->from;
        w->from = 0;
    }
    MK_ASSERT(w->to < MK_INPUT_BUFFER_SIZE);
    ssize_t n = mk_conn_read(c, w->in + w->to, MK_INPUT_BUFFER_SIZE - w->to);
    if (n > 0)
        w->to += (size_t)n;
    return n;
}

mk_err mk_conn_local_addr(struct mk_conn *c, struct mk_addr *out)
{
    struct mk_sockaddr local;
    mk_err e = c->local_known ? 0 : mk_sockaddr_getsockname(c->stream.fd, &local);
    if (e)
        return e;
    if (!c->local_known)
        mk_sockaddr_to_addr(&local, &c->local);
    c->local_known = true;
    *out = c->local;
    return 0;
}

void mk_conn_tls_info(const struct mk_conn *c, struct mk_tls_conn_info *out)
{
    if (c->stream.tls)
        c->manager->tls->facts(&c->stream, out);
}

MK_COLD void mk_conn_linger(struct mk_conn *c, bool is_shut)
{
    if (!is_shut)
        c->stream.ops->shutdown(&c->stream);
    c->stream.dry = false;
    mk_conn_set_state(c, MK_CONN_LINGER);
    mk_conn_set_timeout(c, MK_TIMEOUT_LINGER);
}

MK_COLD bool mk_conn_discard_input(struct mk_conn *c)
{
    mk_conn_consume_input(c, mk_conn_input(c).len);
    ssize_t n = mk_conn_fill_input(c);
    if (n <= 0 && n != -EAGAIN)
        mk_conn_close(c, MK_OUTCOME_OK);
    return n > 0;
}

void mk_conn_close_all(struct mk_conn_manager *s, enum mk_outcome outcome)
{
    while (!mk_list_empty(&s->conns)) {
        struct mk_conn *c = MK_LIST_ENTRY(s->conns.next, struct mk_conn, link);
        if (!c->ops->may_close_without_reset || !c->ops->may_close_without_reset(c)) {
            mk_conn_reset(c, outcome);
            continue;
        }
        c->stream.ops->shutdown(&c->stream);
        mk_conn_close(c, outcome);
    }
}

/* ---- For accept hooks (monkey/connection.h) ---- */

const struct mk_addr *mk_conn_client_addr(const struct mk_conn *c)
{
    return &c->peer;
}

/* Counts the connection toward the limit of the address `peer` instead of its previous address. */
int mk_conn_set_client_addr(struct mk_conn *c, const struct mk_addr *peer)
{
    struct mk_conn_manager *s = c->manager;
    mk_err e = c->admission == MK_CONN_COUNTED ? mk_client_limits_transfer(&s->peers, &c->peer, peer)
                                               : mk_client_limits_acquire(&s->peers, peer);
    if (e)
        return e;
    s->n_awaiting_hooks -= c->admission == MK_CONN_AWAITS_HOOK;
    c->admission = MK_CONN_COUNTED;
    c->peer = *peer;
    return 0;
}

void mk_conn_set_secure(struct mk_conn *c)
{
    c->forwarded_is_secure = true;
}

mk_str mk_conn_peek(struct mk_conn *c)
{
    return mk_conn_input(c);
}

void mk_conn_consume(struct mk_conn *c, size_t n)
{
    mk_conn_consume_input(c, mk_min(n, mk_conn_input(c).len));
}

struct mk_worker *mk_conn_worker(const struct mk_conn *c)
{
    return c->manager->worker;
}
