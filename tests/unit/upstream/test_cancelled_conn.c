/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of cancelled requests: the limits toward which they count, and when they are closed. */
#include "upstream/cancelled_conn.h"

#include <errno.h>
#include <sys/socket.h>

#include "unit/fixtures.h"
#include "unit/upstream/fixture.h"
#include "upstream/failover.h"

static struct mk_addr peers[2];
static struct notification notified[4];
static int fd; /* descriptor of the server */

static void setup(void)
{
    upstream_setup(1);
    upstream.max = 2;
    settings.max_client = MK_SETTING_UNSET;
    fd_setup(&fd);
    for (unsigned i = 0; i < 2; i++)
        peers[i] = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = (uint8_t)(i + 1)}};
}

static struct mk_upstream_conn *acquire_for(unsigned i, const struct mk_addr *peer)
{
    return acquire_with(&notified[i], (struct mk_upstream_conn_options){.server = -1, .client = peer});
}

/* Sends a request and waits until the server has received it. */
static struct mk_upstream_conn *send_request(void)
{
    char byte;
    struct mk_upstream_conn *l = acquire_for(0, &peers[0]);
    wait_until_open(l);
    fd = accept_from(0);
    assert_int_equal(mk_upstream_conn_write(l, MK_STR("?"), false), 1);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    return l;
}

static void cancel(struct mk_upstream_conn *l, uint32_t ms, bool streams)
{
    mk_upstream_conn_mark_cancelled(l, ms, streams);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void turns(void)
{
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 2), 0);
}

static void until_closed(void)
{
    for (unsigned i = 0; stats_of(0).open && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).open, 0);
}

static struct mk_upstream_conn *cancelled(void)
{
    assert_false(mk_list_empty(&pool->backends[0].cancelled));
    return MK_LIST_ENTRY(pool->backends[0].cancelled.next, struct mk_upstream_conn, backend_link);
}

static void send_bytes(size_t n)
{
    static const char zeros[MK_CANCELLED_CONN_BYTES + 1];
    assert_int_equal(send(fd, zeros, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void expect_end_of_request(void)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static void cancelled_conn_counts_as_open_until_server_closes(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 1000, false);
    expect_end_of_request();
    send_bytes(100);
    turns();
    assert_int_equal(stats_of(0).open, 1);
    assert_int_equal(stats_of(0).idle, 0);
    mk_fd_close(&fd);
    until_closed();
    assert_true(mk_list_empty(&pool->backends[0].cancelled));
}

static void cancelled_conn_closed_frees_slot_for_waiting_request(void **state)
{
    (void)state;
    upstream.max = 1;
    start_pool();
    cancel(send_request(), 1000, false);
    struct mk_upstream_conn *l = acquire_for(1, &peers[1]);
    turns();
    assert_false(mk_upstream_conn_has_socket(l));
    mk_fd_close(&fd);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void cancelled_conn_counts_only_toward_its_client(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 1000, false);
    struct mk_upstream_conn *same = acquire_for(1, &peers[0]), *other = acquire_for(2, &peers[1]);
    wait_until_open(other);
    assert_false(mk_upstream_conn_has_socket(same));
    mk_fd_close(&fd);
    wait_until_open(same);
    mk_upstream_conn_release(same, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(other, MK_UPSTREAM_CONN_CLOSE);
}

static void cancelled_conn_is_closed_after_response_timeout(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 5000, false);
    assert_int_equal(cancelled()->until_ms, worker.loop.now_ms + 5000);
    turns();
    assert_int_equal(stats_of(0).open, 1);
    cancelled()->until_ms = worker.loop.now_ms;
    mk_pool_schedule_sweep(pool);
    until_closed();
}

static void cancelled_conn_without_timeout_uses_default(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 0, false);
    assert_int_equal(cancelled()->until_ms, worker.loop.now_ms + MK_UPSTREAM_CONN_CANCELLED_MS);
}

static void cancelled_conns_have_separate_deadlines(void **state)
{
    (void)state;
    settings.max_client = 0;
    start_pool();
    cancel(send_request(), 60000, false);
    int first = fd;
    cancel(send_request(), 1, false);
    for (unsigned i = 0; stats_of(0).open == 2 && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).open, 1);
    assert_true(cancelled()->until_ms > worker.loop.now_ms);
    mk_fd_close(&first);
    until_closed();
}

static void cancelled_conn_long_response_is_closed(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 60000, false);
    send_bytes(MK_CANCELLED_CONN_BYTES);
    turns();
    assert_int_equal(stats_of(0).open, 1);
    send_bytes(1);
    until_closed();
}

static void cancelled_conn_streaming_response_is_closed_at_next_bytes(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = send_request();
    send_bytes(MK_CANCELLED_CONN_BYTES); /* the server had sent these bytes before the cancellation */
    cancel(l, 60000, true);
    turns();
    assert_int_equal(stats_of(0).open, 1);
    send_bytes(1);
    until_closed();
}

static void cancelled_conn_closed_by_server_is_closed_at_once(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = send_request();
    mk_fd_close(&fd);
    cancel(l, 60000, false);
    assert_int_equal(stats_of(0).open, 0);
}

static void cancelled_conn_long_response_received_is_closed_at_once(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = send_request();
    send_bytes(MK_CANCELLED_CONN_BYTES + 1);
    cancel(l, 60000, false);
    assert_int_equal(stats_of(0).open, 0);
}

static void cancelled_conn_without_max_connections_is_closed_at_once(void **state)
{
    (void)state;
    upstream.max = 0;
    start_pool();
    cancel(send_request(), 60000, false);
    assert_int_equal(stats_of(0).open, 0);
}

static void cancelled_conn_to_redirected_server_is_closed_at_once(void **state)
{
    (void)state;
    char to[32];
    start_pool();
    (void)snprintf(to, sizeof to, "127.0.0.1:%u", servers[0].port);
    struct mk_upstream_conn *l =
        acquire_with(notified, (struct mk_upstream_conn_options){.server = -1, .address = mk_str_from_c(to)});
    wait_until_open(l);
    cancel(l, 60000, false);
    assert_int_equal(stats_of(0).open, 0);
}

static void cancelled_conn_while_connecting_is_closed(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire_for(0, &peers[0]);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    cancel(l, 60000, false);
    assert_int_equal(stats_of(0).open, 0);
}

static void cancelled_conn_failure_is_counted(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = send_request();
    mk_upstream_conn_mark_cancelled(l, 60000, false);
    mk_upstream_conn_set_error(l, -ETIMEDOUT, "the server does not answer");
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(stats_of(0).failures, 1);
    assert_int_equal(stats_of(0).open, 1);
}

static void failover_ignores_cancelled_conns(void **state)
{
    (void)state;
    start_pool();
    cancel(send_request(), 60000, false);
    uint32_t message = mk_failover_encode(&servers[0]);
    mk_failover_on_message(pool, mk_str_of((const char *)&message, sizeof message));
    assert_int_equal(stats_of(0).open, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(cancelled_conn_counts_as_open_until_server_closes, setup),
        fixture_test(cancelled_conn_closed_frees_slot_for_waiting_request, setup),
        fixture_test(cancelled_conn_counts_only_toward_its_client, setup),
        fixture_test(cancelled_conn_is_closed_after_response_timeout, setup),
        fixture_test(cancelled_conn_without_timeout_uses_default, setup),
        fixture_test(cancelled_conns_have_separate_deadlines, setup),
        fixture_test(cancelled_conn_long_response_is_closed, setup),
        fixture_test(cancelled_conn_streaming_response_is_closed_at_next_bytes, setup),
        fixture_test(cancelled_conn_closed_by_server_is_closed_at_once, setup),
        fixture_test(cancelled_conn_long_response_received_is_closed_at_once, setup),
        fixture_test(cancelled_conn_without_max_connections_is_closed_at_once, setup),
        fixture_test(cancelled_conn_to_redirected_server_is_closed_at_once, setup),
        fixture_test(cancelled_conn_while_connecting_is_closed, setup),
        fixture_test(cancelled_conn_failure_is_counted, setup),
        fixture_test(failover_ignores_cancelled_conns, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
