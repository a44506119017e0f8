/* SPDX-License-Identifier: Apache-2.0 */

#include <netinet/tcp.h>

#include "base/clock.h"
#include "unit/death.h"
#include "unit/machine.h"
#include "unit/upstream/set.h"

static bool is_prompt(const struct mk_upstream_conn *l)
{
    int on = 0;
    socklen_t len = sizeof on;
    assert_int_equal(getsockopt(l->stream.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    return on;
}

static void connection_is_lent_while_it_is_open(void **state)
{
    (void)state;
    machine_expect(&mk_upstream_conn_machine, "waiting: connecting, open\n"
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

static void connection_is_watched_while_open_and_has_an_error_when_broken(void **state)
{
    (void)state;
    struct mk_upstream_conn c = {0};
    mk_upstream_conn_move(&c, MK_UPSTREAM_CONN_CONNECTING);
    assert_bug(move_to_open, &c, "upstream connection, open: it is watched");
    assert_bug(move_to_broken, &c, "upstream connection, broken: it has an error");
    mk_upstream_conn_fail(&c, -EHOSTUNREACH);
    assert_int_equal(c.state.is, MK_UPSTREAM_CONN_BROKEN);
    assert_int_equal(c.error, -ENETUNREACH);
}

/* A read would cost a system call that finds nothing. */
static void new_connection_is_readable_once_the_server_has_sent(void **state)
{
    struct told told;
    char room[16];
    (void)state;
    begin_pool();
    struct mk_upstream_conn *l = take(&told);
    until_open(l);
    int fd = accept_from((unsigned)mk_upstream_conn_server(l));
    assert_false(mk_upstream_conn_is_readable(l));
    assert_int_equal(write(fd, "you", 3), 3);
    turn(&worker);
    assert_true(mk_upstream_conn_is_readable(l));
    assert_int_equal(mk_upstream_conn_read(l, room, sizeof room), 3);
    assert_false(mk_upstream_conn_is_readable(l));
    assert_false(mk_upstream_conn_has_eof(l));
    close(fd);
    turn(&worker);
    assert_true(mk_upstream_conn_is_readable(l));
    assert_true(mk_upstream_conn_has_eof(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* The next connection to the server waits: its queue has one place. Returns the socket that is in it. */
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

/* Its request may keep it for longer than ConnectTimeout. */
static void broken_connection_does_not_time_out(void **state)
{
    struct told told;
    (void)state;
    int queued[] = {fill_queue(0), fill_queue(1)};
    settings.connect_ms = 20;
    begin_pool();
    struct mk_upstream_conn *l = take(&told);
    assert_int_equal(l->state.is, MK_UPSTREAM_CONN_CONNECTING);
    mk_upstream_conn_fail(l, -ECONNRESET);
    for (uint64_t end_ms = mk_clock_ms() + 100; mk_clock_ms() < end_ms;)
        turn(&worker);
    assert_int_equal(l->state.is, MK_UPSTREAM_CONN_BROKEN);
    assert_int_equal(l->error, -ECONNRESET);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    for (size_t i = 0; i < MK_LEN(queued); i++)
        close(queued[i]);
}

/* What follows the first piece is not held back until that is acknowledged. */
static void only_connections_that_write_again_need_to_be_prompt(void **state)
{
    struct told told;
    (void)state;
    begin_pool();
    struct mk_upstream_conn *l = take(&told);
    until_open(l);
    close(accept_from((unsigned)mk_upstream_conn_server(l)));
    assert_int_equal(mk_upstream_conn_write(l, MK_STR("hello"), false), 5);
    assert_false(is_prompt(l));
    (void)mk_upstream_conn_write(l, MK_STR("again"), false);
    assert_true(is_prompt(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* A handler of another event of this turn may have read the bytes first. */
static void an_event_that_comes_late_ends_no_kept_connection(void **state)
{
    struct told told;
    char room[16];
    (void)state;
    begin_pool();
    struct mk_upstream_conn *l = take(&told);
    until_open(l);
    int at = mk_upstream_conn_server(l), fd = accept_from((unsigned)at);
    turn(&worker);
    assert_int_equal(write(fd, "you", 3), 3);
    assert_int_equal(mk_upstream_conn_read(l, room, sizeof room), 3);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    l->on_event(l->event_ctx, MK_READABLE);
    assert_int_equal(info_of((unsigned)at).idle, 1);
    assert_int_equal(write(fd, "!", 1), 1); /* was not asked for */
    while (info_of((unsigned)at).open)
        turn(&worker);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_is_lent_while_it_is_open),
        cmocka_unit_test(connection_is_watched_while_open_and_has_an_error_when_broken),
        cmocka_unit_test_setup_teardown(new_connection_is_readable_once_the_server_has_sent, start_two,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(only_connections_that_write_again_need_to_be_prompt, start_two,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(broken_connection_does_not_time_out, start_two, harness_stop),
        cmocka_unit_test_setup_teardown(an_event_that_comes_late_ends_no_kept_connection, start_two,
                                        harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
