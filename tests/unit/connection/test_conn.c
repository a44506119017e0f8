/* SPDX-License-Identifier: Apache-2.0 */
/* The connection without a protocol: its state machine, timeouts and memory. */
#include "connection/conn.h"

#include "unit/child.h"
#include "unit/connection/fixture.h"
#include "unit/state_machine.h"
#include "unit/wrap_clock.h"

/* A protocol that only records its calls. */
static unsigned n_advances, n_clocks, n_closes;
static enum mk_conn_timeout last_timeout;
static enum mk_outcome last_outcome;
static bool closes_on_clock;

static void advance(struct mk_conn *c)
{
    n_advances++;
    mk_conn_begin_serving(c);
    mk_conn_end_serving(c);
}

static void on_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    n_clocks++;
    last_timeout = timeout;
    if (closes_on_clock)
        mk_conn_close(c, MK_OUTCOME_TIMEOUT);
}

static void on_close(struct mk_conn *c, enum mk_outcome outcome)
{
    (void)c;
    n_closes++;
    last_outcome = outcome;
}

static const struct mk_conn_ops ops = {.advance = advance, .on_timeout = on_timeout, .on_close = on_close};

static struct conn_fixture t;

static void setup(void)
{
    n_advances = n_clocks = n_closes = 0;
    closes_on_clock = false;
    conn_setup(&t);
}

static struct mk_conn *open_conn(int *client)
{
    int ends[2];
    const struct mk_addr peer = {.is_unix = 1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    *client = ends[1];
    struct mk_conn *c = mk_conn_open(&t.manager, &ops, ends[0], &peer);
    assert_non_null(c);
    return c;
}

/* ---- State machine ---- */

static void conn_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_conn_machine, "idle: head, dispatch, tls, http2, dead\n"
                                           "head: dispatch, http2, dead\n"
                                           "dispatch: send, dead\n"
                                           "send: idle, drain, linger, tunnel, dead\n"
                                           "drain: idle, linger, dead\n"
                                           "linger: dead\n"
                                           "tls: idle, linger, dead\n"
                                           "tunnel: linger, dead\n"
                                           "http2: linger, dead\n"
                                           "dead\n");
}

static void move_to_send(void *ctx)
{
    mk_conn_set_state(ctx, MK_CONN_SEND);
}

static void move_to_idle(void *ctx)
{
    mk_conn_set_state(ctx, MK_CONN_IDLE);
}

static void conn_idle_cannot_become_send(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    assert_aborts(move_to_send, c, "connection: no transition from state \"idle\" to \"send\"");
    close(client);
}

static void conn_idle_holds_no_request(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    mk_conn_set_state(c, MK_CONN_DISPATCH);
    mk_conn_set_state(c, MK_CONN_SEND);
    c->h1 = (struct mk_h1 *)(void *)c;
    assert_aborts(move_to_idle, c,
                  "connection in state \"idle\": it has no request; last states: idle dispatch send idle");
    c->h1 = NULL;
    close(client);
}

static void conn_records_last_moves(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    mk_conn_set_state(c, MK_CONN_HEAD);
    mk_conn_set_state(c, MK_CONN_DISPATCH);
    mk_conn_set_state(c, MK_CONN_SEND);
    assert_int_equal(c->moves, MK_CONN_HEAD << 8 | MK_CONN_DISPATCH << 4 | MK_CONN_SEND);
    assert_int_equal(t.counters.moves, c->moves);
    for (int i = 0; i < 100; i++) {
        mk_conn_set_state(c, MK_CONN_IDLE);
        mk_conn_set_state(c, MK_CONN_DISPATCH);
        mk_conn_set_state(c, MK_CONN_SEND);
    }
    assert_int_equal(c->moves & 0xfff, MK_CONN_IDLE << 8 | MK_CONN_DISPATCH << 4 | MK_CONN_SEND);
    close(client);
}

/* ---- Opening and closing ---- */

static void conn_open_connections_are_counted(void **state)
{
    (void)state;
    int a, b;
    struct mk_conn *first = open_conn(&a);
    (void)open_conn(&b);
    assert_int_equal(t.manager.n_conns, 2);
    assert_int_equal(t.counters.open, 2);
    assert_int_equal(t.counters.accepted, 2);
    mk_conn_close(first, MK_OUTCOME_OK);
    assert_int_equal(t.manager.n_conns, 1);
    assert_int_equal(t.counters.open, 1);
    mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(n_closes, 2);
    assert_int_equal(last_outcome, MK_OUTCOME_SHUTDOWN);
    close(a);
    close(b);
}

static unsigned n_sizes;

static void on_conn_closed(struct mk_conn_manager *s)
{
    (void)s;
    n_sizes++;
}

static void conn_close_happens_once(void **state)
{
    (void)state;
    int client;
    char buffer[4];
    struct mk_conn *c = open_conn(&client);
    t.manager.on_conn_closed = on_conn_closed;
    n_sizes = 0;
    mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    mk_conn_close(c, MK_OUTCOME_OK);
    mk_conn_reset(c, MK_OUTCOME_OK);
    mk_conn_resume(c);
    assert_int_equal(n_closes, 1);
    assert_int_equal(n_sizes, 1);
    assert_int_equal(last_outcome, MK_OUTCOME_CLIENT_ABORTED);
    assert_int_equal(recv(client, buffer, sizeof buffer, 0), 0);
    conn_run_server(&t);
    assert_int_equal(n_advances, 0);
    close(client);
}

static void conn_memory_is_reused_after_iteration(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client), *other;
    close(client);
    mk_conn_close(c, MK_OUTCOME_OK);
    assert_int_equal(t.manager.n_spare, 0);
    other = open_conn(&client);
    assert_ptr_not_equal(other, c); /* an event of this iteration may still be pending for c */
    conn_run_server(&t);
    assert_int_equal(t.manager.n_spare, 1);
    int another;
    assert_ptr_equal(open_conn(&another), c);
    assert_int_equal(c->state.current, MK_CONN_IDLE);
    assert_int_equal(t.manager.n_spare, 0);
    close(client);
    close(another);
}

static void conn_struct_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct mk_conn) <= 256);
}

static void conn_local_address_is_cached(void **state)
{
    (void)state;
    int client, pipe_ends[2];
    struct mk_addr local = {0};
    struct mk_conn *c = open_conn(&client);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(mk_conn_local_addr(c, &local), 0);
    assert_true(local.is_unix);
    /* after dup2(), the system call would fail: the address must be cached */
    assert_int_equal(dup2(pipe_ends[0], c->stream.fd), c->stream.fd);
    local.is_unix = false;
    assert_int_equal(mk_conn_local_addr(c, &local), 0);
    assert_true(local.is_unix);
    mk_conn_close(c, MK_OUTCOME_OK);
    struct mk_conn *other = open_conn(&client);
    assert_int_equal(dup2(pipe_ends[0], other->stream.fd), other->stream.fd);
    /* the address of another connection is not cached */
    assert_int_equal(mk_conn_local_addr(other, &local), -ENOTSOCK);
    mk_conn_close(other, MK_OUTCOME_OK);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ---- Resuming ---- */

static void conn_resume_calls_once_per_iteration(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    mk_conn_resume(c);
    mk_conn_resume(c);
    assert_int_equal(n_advances, 0);
    assert_int_equal(mk_loop_run_once(&t.loop, 0), 0);
    assert_int_equal(n_advances, 1);
    mk_conn_resume(c);
    mk_conn_close(c, MK_OUTCOME_OK); /* now the task frees the connection */
    assert_int_equal(mk_loop_run_once(&t.loop, 0), 0);
    assert_int_equal(n_advances, 1);
    assert_int_equal(t.manager.n_spare, 1);
    close(client);
}

/* ---- Input ---- */

static void conn_unconsumed_input_is_kept(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    assert_int_equal(send(client, "hello world", 11, 0), 11);
    mk_conn_begin_serving(c);
    assert_int_equal(mk_conn_fill_input(c), 11);
    assert_str(mk_conn_input(c), "hello world");
    mk_conn_consume_input(c, 6);
    mk_conn_end_serving(c);
    assert_int_equal(c->n_saved, 5);
    memset(t.manager.input_buffer.in, '?', 100); /* other connections now use the buffer */
    assert_int_equal(send(client, "!", 1, 0), 1);
    mk_stream_on_input(&c->stream, false);
    mk_conn_begin_serving(c);
    assert_str(mk_conn_input(c), "world");
    assert_int_equal(mk_conn_fill_input(c), 1);
    assert_str(mk_conn_input(c), "world!");
    mk_conn_consume_input(c, 6);
    mk_conn_end_serving(c);
    assert_int_equal(c->n_saved, 0);
    assert_null(c->saved);
    close(client);
}

static void conn_short_read_marks_socket_drained(void **state)
{
    (void)state;
    int client;
    char buffer[8];
    struct mk_conn *c = open_conn(&client);
    assert_int_equal(send(client, "12345678", 8, 0), 8);
    mk_conn_begin_serving(c);
    assert_int_equal(mk_conn_read(c, buffer, 8), 8);
    assert_true(mk_stream_is_readable(&c->stream));
    assert_int_equal(mk_conn_read(c, buffer, 8), -EAGAIN);
    assert_false(mk_stream_is_readable(&c->stream));
    assert_int_equal(send(client, "1", 1, 0), 1);
    assert_int_equal(mk_conn_read(c, buffer, 8), -EAGAIN); /* reads fail until the next event */
    mk_stream_on_input(&c->stream, false);
    assert_int_equal(mk_conn_read(c, buffer, 8), 1);
    assert_false(mk_stream_is_readable(&c->stream));
    close(client);
    mk_stream_on_input(&c->stream, true);
    assert_int_equal(mk_conn_read(c, buffer, 8), 0);
    assert_true(mk_stream_is_readable(&c->stream));
    mk_conn_end_serving(c);
}

static ssize_t read_close_notify(struct mk_stream *s, char *buffer, size_t cap)
{
    (void)s, (void)buffer, (void)cap;
    return 0;
}

/* TLS ends a direction with a message (close_notify): the TCP connection, and thus epoll, may not notice. */
static void conn_end_of_input_without_fin_half_closes(void **state)
{
    (void)state;
    int client;
    char buffer[8];
    struct mk_conn *c = open_conn(&client);
    struct mk_stream_ops ended = *c->stream.ops;
    ended.read = read_close_notify;
    mk_conn_begin_serving(c);
    assert_int_equal(mk_conn_read(c, buffer, 8), -EAGAIN);
    assert_false(mk_conn_is_half_closed(c));
    mk_stream_on_input(&c->stream, false);
    const struct mk_stream_ops *plain = c->stream.ops;
    c->stream.ops = &ended;
    assert_int_equal(mk_conn_read(c, buffer, 8), 0);
    assert_true(mk_conn_is_half_closed(c));
    c->stream.ops = plain;
    mk_conn_end_serving(c);
    close(client);
}

static void conn_busy_client_yields(void **state)
{
    (void)state;
    enum { PIECE = 32 * 1024 };
    static char piece[PIECE];
    int client;
    struct mk_conn *c = open_conn(&client);
    size_t total = 0;
    mk_conn_begin_serving(c);
    for (ssize_t n = 1; n > 0 && total >> 20 < 64;) {
        (void)!send(client, piece, sizeof piece, MSG_DONTWAIT);
        n = mk_conn_read(c, piece, sizeof piece);
        if (n > 0)
            total += (size_t)n;
        mk_stream_on_input(&c->stream, false);
    }
    assert_in_range(total, 256 * 1024, 8 << 20);
    mk_conn_end_serving(c);
    assert_int_equal(mk_loop_run_once(&t.loop, 0), 0);
    assert_true(n_advances >= 1); /* the connection was resumed */
    close(client);
}

static void enter_again(void *c)
{
    mk_conn_begin_serving(c);
}

static void conn_serving_twice_asserts(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    mk_conn_begin_serving(c);
    assert_aborts(enter_again, c, "serving");
    mk_conn_end_serving(c);
    close(client);
}

/* ---- Events and timeouts ---- */

static void conn_events_call_protocol(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    c->ops->advance(c); /* starts watching the connection */
    conn_run_server(&t);
    unsigned before = n_advances;
    c->stream.dry = true;
    assert_int_equal(send(client, "x", 1, 0), 1);
    conn_run_server(&t);
    assert_int_equal(n_advances, before + 1);
    assert_true(mk_stream_is_readable(&c->stream));
    assert_false(mk_conn_is_half_closed(c));
    shutdown(client, SHUT_WR);
    conn_run_server(&t);
    assert_true(mk_conn_is_half_closed(c));
    assert_int_equal(n_closes, 0);
    close(client);
    conn_run_server(&t);
    assert_int_equal(n_closes, 1);
    assert_int_equal(last_outcome, MK_OUTCOME_CLIENT_ABORTED);
}

static void run_for(unsigned ms)
{
    uint64_t until = mk_clock_ms() + ms;
    do
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    while (mk_clock_ms() < until);
}

static void conn_each_timeout_has_its_duration(void **state)
{
    (void)state;
    static const enum mk_conn_timeout clocks[] = {MK_TIMEOUT_IDLE, MK_TIMEOUT_HEAD, MK_TIMEOUT_HANDLER,
                                                  MK_TIMEOUT_LINGER};
    for (size_t i = 0; i < MK_LEN(clocks); i++) {
        int client;
        t.limits = conn_limits;
        uint32_t *spans[] = {&t.limits.idle_ms, &t.limits.head_ms, &t.limits.request.handler_ms,
                             &t.limits.linger_ms};
        *spans[i] = 40;
        struct mk_conn *c = open_conn(&client);
        n_clocks = 0;
        mk_conn_set_timeout(c, clocks[i]);
        run_for(20);
        assert_int_equal(n_clocks, 0);
        run_for(100);
        assert_int_equal(n_clocks, 1);
        assert_int_equal(last_timeout, clocks[i]);
        mk_conn_close(c, MK_OUTCOME_OK);
        close(client);
    }
}

static void conn_running_timeout_continues_and_idle_restarts(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    t.limits.head_ms = t.limits.idle_ms = 60;
    mk_conn_set_timeout(c, MK_TIMEOUT_HEAD);
    uint32_t due = c->timer.due_ms;
    run_for(20);
    mk_conn_set_timeout(c, MK_TIMEOUT_HEAD);
    assert_int_equal(c->timer.due_ms, due);
    mk_conn_set_timeout(c, MK_TIMEOUT_IDLE);
    due = c->timer.due_ms;
    run_for(20);
    mk_conn_set_timeout(c, MK_TIMEOUT_IDLE);
    assert_true((int32_t)(c->timer.due_ms - due) >= 15);
    close(client);
}

static void conn_zero_timeout_never_fires(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    t.limits.request.handler_ms = 0;
    t.limits.head_ms = 20;
    mk_conn_set_timeout(c, MK_TIMEOUT_HEAD);
    mk_conn_set_timeout(c, MK_TIMEOUT_HANDLER);
    run_for(80);
    assert_int_equal(n_clocks, 0);
    close(client);
}

static void conn_finished_wait_does_not_time_out(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    t.limits.request.handler_ms = 20;
    mk_conn_set_timeout(c, MK_TIMEOUT_HANDLER);
    c->timeout = MK_TIMEOUT_NONE;
    run_for(80);
    assert_int_equal(n_clocks, 0);
    assert_int_equal(n_closes, 0);
    close(client);
}

/* Clients acknowledge in bursts: an interval without progress does not count against a client that was
 * ahead. */
static void conn_rate_credit_allows_pause(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    t.limits.request.rate_ms = 30;
    t.limits.request.rate_bytes = 10;
    mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
    c->progress += 1000; /* credit is limited to twelve intervals */
    run_for(150);
    assert_int_equal(n_clocks, 0);
    assert_in_range(c->rate.credit, 0, 110);
    close(client);
}

static void conn_rate_fast_peer_continues(void **state)
{
    (void)state;
    int client;
    struct mk_conn *c = open_conn(&client);
    t.limits.request.rate_ms = 30;
    t.limits.request.rate_bytes = 10;
    mk_conn_set_timeout(c, MK_TIMEOUT_RATE);
    for (int i = 0; i < 6; i++) {
        c->progress += 10;
        run_for(20);
    }
    assert_int_equal(n_clocks, 0);
    closes_on_clock = true;
    c->progress += 9;
    run_for(800); /* the connection uses up its credit first */
    assert_int_equal(n_clocks, 1);
    assert_int_equal(last_timeout, MK_TIMEOUT_RATE);
    assert_int_equal(n_closes, 1);
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conn_state_machine_has_these_transitions),
        fixture_test(conn_idle_cannot_become_send, setup),
        fixture_test(conn_idle_holds_no_request, setup),
        fixture_test(conn_records_last_moves, setup),
        fixture_test(conn_open_connections_are_counted, setup),
        fixture_test(conn_close_happens_once, setup),
        fixture_test(conn_memory_is_reused_after_iteration, setup),
        cmocka_unit_test(conn_struct_is_small),
        fixture_test(conn_local_address_is_cached, setup),
        fixture_test(conn_resume_calls_once_per_iteration, setup),
        fixture_test(conn_unconsumed_input_is_kept, setup),
        fixture_test(conn_short_read_marks_socket_drained, setup),
        fixture_test(conn_end_of_input_without_fin_half_closes, setup),
        fixture_test(conn_busy_client_yields, setup),
        fixture_test(conn_serving_twice_asserts, setup),
        fixture_test(conn_events_call_protocol, setup),
        fixture_test(conn_each_timeout_has_its_duration, setup),
        fixture_test(conn_running_timeout_continues_and_idle_restarts, setup),
        fixture_test(conn_zero_timeout_never_fires, setup),
        fixture_test(conn_finished_wait_does_not_time_out, setup),
        fixture_test(conn_rate_credit_allows_pause, setup),
        fixture_test(conn_rate_fast_peer_continues, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
