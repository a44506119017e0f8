/* SPDX-License-Identifier: Apache-2.0 */

#include <netinet/tcp.h>

#include "base/clock.h"
#include "unit/child.h"
#include "unit/state_machine.h"
#include "unit/upstream/fixture.h"

static bool is_prompt(const struct mk_upstream_conn *l)
{
    int on = 0;
    socklen_t len = sizeof on;
    assert_int_equal(getsockopt(l->stream.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    return on;
}

static void conn_state_machine_has_these_transitions(void **state)
{
    (void)state;
    expect_state_machine(&mk_upstream_conn_machine, "waiting: connecting, open\n"
                                                    "connecting: waiting, handshake, open, broken\n"
                                                    "handshake: waiting, open, broken\n"
                                                    "open: waiting, idle\n"
                                                    "idle: waiting\n"
                                                    "broken: waiting\n");
}

static void move_to_open(void *ctx)
{
    mk_upstream_conn_move(ctx, MK_UPSTREAM_CONN_OPEN);
}

static void move_to_broken(void *ctx)
{
    mk_upstream_conn_move(ctx, MK_UPSTREAM_CONN_BROKEN);
}

static void conn_open_is_watched_and_broken_has_error(void **state)
{
    (void)state;
    struct mk_upstream_conn c = {0};
    mk_upstream_conn_move(&c, MK_UPSTREAM_CONN_CONNECTING);
    assert_aborts(move_to_open, &c, "upstream connection in state \"open\": it is watched");
    assert_aborts(move_to_broken, &c, "upstream connection in state \"broken\": it has an error");
    mk_upstream_conn_fail(&c, -EHOSTUNREACH);
    assert_int_equal(c.state.current, MK_UPSTREAM_CONN_BROKEN);
    assert_int_equal(c.error, -ENETUNREACH);
}

static void add_events(void *ctx, unsigned which)
{
    *(unsigned *)ctx |= which;
}

static void conn_is_readable_before_owner_receives_event(void **state)
{
    static const struct mk_upstream_conn_options options = {.server = -1};
    unsigned events = 0;
    (void)state;
    start_pool();
    struct mk_upstream_conn *l =
        mk_pool_acquire_for_request(pool, &upstream, &options, add_events, NULL, &events);
    wait_until_open(l);
    int fd = accept_from((unsigned)mk_upstream_conn_server(l));
    events = 0;
    assert_int_equal(write(fd, "you", 3), 3);
    while (!(events & MK_READABLE))
        run_once(&worker);
    assert_true(mk_upstream_conn_is_readable(l));
    close(fd);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* A new connection is not readable at first, which saves a system call that would find nothing. */
static void conn_new_is_readable_after_server_sends(void **state)
{
    struct notification notified;
    char buffer[16];
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    int fd = accept_from((unsigned)mk_upstream_conn_server(l));
    assert_false(mk_upstream_conn_is_readable(l));
    assert_int_equal(write(fd, "you", 3), 3);
    run_once(&worker);
    assert_true(mk_upstream_conn_is_readable(l));
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), 3);
    assert_false(mk_upstream_conn_is_readable(l));
    assert_false(mk_upstream_conn_has_eof(l));
    close(fd);
    run_once(&worker);
    assert_true(mk_upstream_conn_is_readable(l));
    assert_true(mk_upstream_conn_has_eof(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* Fills the listen queue, so that the next connection to the server stays pending. Returns the queued
 * socket. */
static int fill_queue(unsigned i)
{
    struct sockaddr_in to;
    socklen_t len = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(listen(listening[i], 0), 0);
    assert_int_equal(getsockname(listening[i], (struct sockaddr *)&to, &len), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
    return fd;
}

/* The request may keep the connection for longer than ConnectTimeout. */
static void conn_broken_does_not_time_out(void **state)
{
    struct notification notified;
    (void)state;
    int queued[] = {fill_queue(0), fill_queue(1)};
    settings.connect_ms = 20;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(l->state.current, MK_UPSTREAM_CONN_CONNECTING);
    mk_upstream_conn_fail(l, -ECONNRESET);
    for (uint64_t end_ms = mk_clock_ms() + 100; mk_clock_ms() < end_ms;)
        run_once(&worker);
    assert_int_equal(l->state.current, MK_UPSTREAM_CONN_BROKEN);
    assert_int_equal(l->error, -ECONNRESET);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    for (size_t i = 0; i < MK_LEN(queued); i++)
        close(queued[i]);
}

/* Bytes after the first piece must not wait for its acknowledgement (Nagle's algorithm). */
static void conn_sets_tcp_nodelay_only_on_second_write(void **state)
{
    struct notification notified;
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    close(accept_from((unsigned)mk_upstream_conn_server(l)));
    assert_int_equal(mk_upstream_conn_write(l, MK_STR("hello"), false), 5);
    assert_false(is_prompt(l));
    ssize_t n = mk_upstream_conn_write(l, MK_STR("again"), false);
    assert_true(n < 0 || n == 5);
    assert_true(is_prompt(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* The handler of another event of this iteration may have already read the bytes. */
static void conn_stale_event_keeps_idle_connection(void **state)
{
    struct notification notified;
    char buffer[16];
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    int at = mk_upstream_conn_server(l), fd = accept_from((unsigned)at);
    run_once(&worker);
    assert_int_equal(write(fd, "you", 3), 3);
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), 3);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_on_event(l, MK_READABLE);
    assert_int_equal(stats_of((unsigned)at).idle, 1);
    assert_int_equal(write(fd, "!", 1), 1); /* unsolicited data arrives */
    while (stats_of((unsigned)at).open)
        run_once(&worker);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conn_state_machine_has_these_transitions),
        cmocka_unit_test(conn_open_is_watched_and_broken_has_error),
        fixture_test(conn_new_is_readable_after_server_sends, setup_two),
        fixture_test(conn_is_readable_before_owner_receives_event, setup_two),
        fixture_test(conn_sets_tcp_nodelay_only_on_second_write, setup_two),
        fixture_test(conn_broken_does_not_time_out, setup_two),
        fixture_test(conn_stale_event_keeps_idle_connection, setup_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
