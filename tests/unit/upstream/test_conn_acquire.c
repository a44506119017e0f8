/* SPDX-License-Identifier: Apache-2.0 */

#include "event/tls.h"
#include "unit/upstream/fixture.h"
#include "upstream/failover.h"
#include "upstream/wait_queue.h"

static void acquire_connection_transfers_both_ways(void **state)
{
    struct notification notified;
    char buffer[16];
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    int fd = accept_from((unsigned)mk_upstream_conn_server(l));
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), -EAGAIN);
    assert_int_equal(mk_upstream_conn_write(l, MK_STR("hello"), false), 5);
    assert_int_equal(read(fd, buffer, sizeof buffer), 5);
    assert_int_equal(write(fd, "you", 3), 3);
    notified.which = 0;
    while (!(notified.which & MK_READABLE))
        run_once(&worker);
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), 3);
    mk_upstream_conn_shutdown_write(l);
    assert_int_equal(read(fd, buffer, sizeof buffer), 0);
    close(fd);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(stats_of(0).open + stats_of(1).open, 0);
}

/* Opens `n` connections whose requests have finished, so that the pool keeps them. */
static void keep_connections(unsigned n)
{
    struct notification notified;
    struct mk_upstream_conn *links[4];
    assert_true(n <= MK_LEN(links));
    for (unsigned i = 0; i < n; i++) {
        links[i] = acquire(&notified);
        wait_until_open(links[i]);
        assert_false(mk_pool_notify_if_reused(links[i])); /* this is a new connection */
    }
    for (unsigned i = 0; i < n; i++)
        mk_upstream_conn_release(links[i], MK_UPSTREAM_CONN_KEEP);
}

static char order[8];

static void note_order(void *ctx, unsigned which)
{
    struct notification *t = ctx;
    order[strlen(order)] = (char)('a' + t->n);
    t->which |= which;
}

static struct mk_upstream_conn *put_off(struct notification *t, unsigned n)
{
    struct mk_upstream_conn_options options = {.server = -1};
    *t = (struct notification){.n = n};
    struct mk_upstream_conn *l = mk_upstream_conn_acquire(&worker, &upstream, &options, note_order, t);
    assert_non_null(l);
    assert_true(mk_pool_notify_if_reused(l));
    return l;
}

static void acquire_deferred_callbacks_run_in_order_at_iteration_end(void **state)
{
    struct notification notified[4];
    struct mk_upstream_conn *links[4];
    (void)state;
    start_pool();
    memset(order, 0, sizeof order);
    keep_connections(4);
    for (unsigned i = 0; i < 4; i++)
        links[i] = put_off(&notified[i], i);
    mk_upstream_conn_release(links[1], MK_UPSTREAM_CONN_CLOSE);
    assert_string_equal(order, "");
    run_once(&worker);
    assert_string_equal(order, "acd");
    assert_int_equal(notified[0].which, MK_WRITABLE);
    run_once(&worker);
    assert_string_equal(order, "acd"); /* only once */
    mk_upstream_conn_release(links[0], MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(links[2], MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(links[3], MK_UPSTREAM_CONN_CLOSE);
}

static struct mk_upstream_conn *again;

static void put_off_again(void *ctx, unsigned which)
{
    struct notification *t = ctx;
    t->n++;
    t->which |= which;
    assert_true(mk_pool_notify_if_reused(again));
}

/* A callback that always has more to send does not starve the others. */
static void acquire_callback_deferred_by_callback_runs_in_next_iteration(void **state)
{
    struct mk_upstream_conn_options options = {.server = -1};
    struct notification notified = {0};
    (void)state;
    start_pool();
    keep_connections(2); /* opens one connection to each server */
    again = mk_upstream_conn_acquire(&worker, &upstream, &options, put_off_again, &notified);
    assert_true(mk_pool_notify_if_reused(again));
    for (unsigned i = 1; i < 4; i++) {
        run_once(&worker);
        assert_int_equal(notified.n, i);
    }
    mk_upstream_conn_release(again, MK_UPSTREAM_CONN_CLOSE);
}

/* Number of reads until the fake TLS layer yields a byte; until then it reports buffered data (`holds`),
 * which no event announces. */
static unsigned n_held;

static ssize_t read_held(struct mk_stream *s, char *buffer, size_t cap)
{
    assert_true(cap);
    s->holds = n_held > 1;
    if (n_held == 0)
        return -EAGAIN;
    if (--n_held)
        return -EAGAIN;
    buffer[0] = 'x';
    return 1;
}

static void acquire_tls_buffered_data_is_read_without_event(void **state)
{
    struct notification notified;
    char buffer[16];
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    int fd = accept_from((unsigned)mk_upstream_conn_server(l));
    run_once(&worker);
    struct mk_stream_ops ops = *l->stream.ops;
    ops.read = read_held;
    l->stream.ops = &ops;
    n_held = 3;
    for (unsigned i = 0; i < 2; i++) {
        notified = (struct notification){0};
        assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), -EAGAIN);
        assert_int_equal(notified.n, 0); /* other connections run first */
        run_once(&worker);
        assert_int_equal(notified.n, 1);
        assert_int_equal(notified.which, MK_READABLE);
    }
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), 1);
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), -EAGAIN);
    notified.n = 0;
    run_once(&worker);
    assert_int_equal(notified.n, 0);
    n_held = 3;
    assert_int_equal(mk_upstream_conn_read(l, buffer, sizeof buffer), -EAGAIN);
    /* releases the connection before its callback runs */
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    run_once(&worker);
    close(fd);
}

static enum { HELD, SHAKEN } handshake;

static mk_err fake_connect(struct mk_stream *s, int fd, struct mk_tls_client *client, const char *name,
                           struct mk_tls_session **session, bool http2)
{
    (void)client, (void)name, (void)session;
    assert_false(http2);
    assert_int_equal(s->fd, fd);
    return 0;
}

static mk_err fake_handshake(struct mk_stream *s, const char **why)
{
    (void)why;
    s->holds = handshake == HELD;
    return handshake++ == HELD ? -EAGAIN : 0;
}

static void acquire_tls_handshake_continues_with_buffered_data(void **state)
{
    static const struct mk_tls_module tls = {.connect = fake_connect, .handshake = fake_handshake};
    struct notification notified;
    (void)state;
    upstreams.tls = &tls;
    upstream.tls = (struct mk_tls_client *)&worker;
    handshake = HELD;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    for (int i = 0; handshake == HELD && i < 100; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    run_once(&worker);
    run_once(&worker);
    assert_int_equal(mk_upstream_conn_state(l), 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    upstream.tls = NULL;
}

static void acquire_reuses_clean_connection(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    assert_false(mk_upstream_conn_was_reused(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), 0);
    assert_true(mk_upstream_conn_was_reused(l));
    assert_int_equal(stats_of(0).idle, 0);
    assert_int_equal(stats_of(0).requests, 2);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    l = acquire_with(&notified, (struct mk_upstream_conn_options){.server = -1, .fresh = true});
    wait_until_open(l);
    assert_false(mk_upstream_conn_was_reused(l));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void acquire_idle_connection_closed_by_server_is_dropped(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    int fd = accept_from(0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).open, 1);
    close(fd);
    for (int i = 0; stats_of(0).open && i < 100; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).open, 0);
    assert_int_equal(stats_of(0).failures, 0);
}

static void acquire_idle_connection_times_out(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.idle_ms = 20;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    for (int i = 0; stats_of(0).open && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).open, 0);
}

static void acquire_round_robin_follows_weights(void **state)
{
    struct notification notified;
    unsigned n[2] = {0};
    (void)state;
    servers[0].weight = 3;
    start_pool();
    for (int i = 0; i < 40; i++) {
        struct mk_upstream_conn *l = acquire(&notified);
        wait_until_open(l);
        n[mk_upstream_conn_server(l)]++;
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    }
    assert_int_equal(n[0], 30);
    assert_int_equal(n[1], 10);
}

static void acquire_least_conn_chooses_least_busy(void **state)
{
    struct notification notified[3];
    struct mk_upstream_conn *l[3];
    unsigned n[2] = {0};
    (void)state;
    settings.balance = MK_BALANCE_LEAST_CONN;
    servers[0].weight = 2;
    start_pool();
    for (int i = 0; i < 3; i++) {
        l[i] = acquire(&notified[i]);
        wait_until_open(l[i]);
        n[mk_upstream_conn_server(l[i])]++;
    }
    assert_int_equal(n[0], 2);
    for (int i = 0; i < 3; i++)
        mk_upstream_conn_release(l[i], MK_UPSTREAM_CONN_KEEP);
}

static int server_of_hash(uint64_t hash)
{
    struct notification notified;
    struct mk_upstream_conn *l = acquire_with(
        &notified, (struct mk_upstream_conn_options){.server = -1, .hash = hash, .has_hash = true});
    wait_until_open(l);
    int server = mk_upstream_conn_server(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    return server;
}

static void acquire_equal_hashes_use_same_server(void **state)
{
    unsigned n = 0;
    (void)state;
    settings.balance = MK_BALANCE_HASH;
    start_pool();
    for (uint64_t hash = 0; hash < 200; hash++) {
        int server = server_of_hash(hash);
        assert_int_equal(server_of_hash(hash), server);
        n += (unsigned)server;
    }
    assert_in_range(n, 60, 140);
}

static void acquire_skips_server_that_refuses(void **state)
{
    struct notification notified;
    (void)state;
    stop_server(0);
    start_pool();
    for (int i = 0; i < 6; i++) {
        struct mk_upstream_conn *l = acquire(&notified);
        wait_until_open(l);
        assert_int_equal(mk_upstream_conn_server(l), 1);
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    }
    assert_int_equal(stats_of(0).failures, 3);
    assert_false(mk_health_is_up(&servers[0], mk_clock_ms()));
}

static void acquire_all_servers_refuse_reports_error(void **state)
{
    struct notification notified;
    (void)state;
    start_pool();
    stop_server(0);
    stop_server(1);
    for (int i = 0; i < 8; i++) { /* all servers are down, so they are tried anyway */
        struct mk_upstream_conn *l = acquire(&notified);
        for (int k = 0; mk_upstream_conn_state(l) == -EAGAIN && k < 100; k++)
            assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
        assert_int_equal(mk_upstream_conn_state(l), -ECONNREFUSED);
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    }
    uint16_t port = servers[0].port;
    listening[0] = listen_on(&port);
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    assert_int_equal(mk_upstream_conn_server(l), 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static struct mk_upstream_conn *acquire_to(struct notification *t, uint16_t port)
{
    static char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    return acquire_with(t, (struct mk_upstream_conn_options){.server = -1, .address = mk_str_from_c(text)});
}

static void acquire_may_name_another_server(void **state)
{
    struct notification notified;
    uint16_t port = 0;
    (void)state;
    start_pool();
    int fd = listen_on(&port);
    struct mk_upstream_conn *l = acquire_to(&notified, port);
    wait_until_open(l);
    assert_int_equal(mk_upstream_conn_server(l), -1);
    int accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
    assert_int_equal(mk_upstream_conn_write(l, MK_STR("hello"), false), 5);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP); /* the pool does not keep this connection */
    char buffer[8];
    assert_int_equal(read(accepted, buffer, sizeof buffer), 5);
    assert_int_equal(read(accepted, buffer, sizeof buffer), 0);
    close(accepted);
    mk_fd_close(&fd);
    l = acquire_to(&notified, port);
    for (int k = 0; mk_upstream_conn_state(l) == -EAGAIN && k < 100; k++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(mk_upstream_conn_state(l), -ECONNREFUSED);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_UP);
    assert_int_equal(stats_of(0).open + stats_of(1).open, 0);
}

static void acquire_backup_serves_when_primary_is_down(void **state)
{
    struct notification notified;
    (void)state;
    servers[1].backup = true;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    assert_int_equal(mk_upstream_conn_server(l), 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    settings.check = MK_STR("connect");
    mk_health_record_check(&servers[0], false);
    l = acquire(&notified);
    wait_until_open(l);
    assert_int_equal(mk_upstream_conn_server(l), 1);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void acquire_over_limit_queues_in_order(void **state)
{
    struct notification notified[4];
    struct mk_upstream_conn *l[4];
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 2;
    start_pool();
    for (int i = 0; i < 4; i++)
        l[i] = acquire(&notified[i]);
    wait_until_open(l[0]);
    wait_until_open(l[1]);
    assert_int_equal(mk_upstream_conn_state(l[2]), -EAGAIN);
    assert_int_equal(stats_of(0).waiting, 2);
    mk_upstream_conn_release(l[1], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(notified[2].n, 0); /* acquiring never runs callbacks */
    run_once(&worker);
    assert_int_equal(notified[2].n, 1);
    assert_int_equal(mk_upstream_conn_state(l[2]), 0);
    assert_int_equal(mk_upstream_conn_state(l[3]), -EAGAIN);
    mk_upstream_conn_release(l[0], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(l[3]);
    assert_int_equal(stats_of(0).waiting, 0);
    mk_upstream_conn_release(l[2], MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(l[3], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 2);
}

static void acquire_queue_has_length_and_time_limits(void **state)
{
    struct notification notified[3];
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    settings.queue_max = 1;
    settings.queue_ms = 30;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]), *b = acquire(&notified[1]),
                            *c = acquire(&notified[2]);
    assert_int_equal(mk_upstream_conn_state(b), -EAGAIN);
    assert_int_equal(mk_upstream_conn_state(c), -EBUSY);
    for (int i = 0; mk_upstream_conn_state(b) == -EAGAIN && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(mk_upstream_conn_state(b), -EBUSY);
    assert_int_equal(notified[1].n, 1);
    mk_upstream_conn_release(c, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
}

static void acquire_waiting_request_can_be_cancelled(void **state)
{
    struct notification notified[2];
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]), *b = acquire(&notified[1]);
    wait_until_open(a);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(stats_of(0).waiting, 0);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    run_once(&worker);
    assert_int_equal(notified[1].n, 0);
}

/* Publishes a waiting request of another worker; `since_ms` is the time at which it began to wait. */
static void add_other_waiter(uint64_t since_ms)
{
    upstreams.limit.memory->n_rows = 10;
    mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->waiters[9][0].since_ms = since_ms;
}

static void acquire_older_request_of_other_worker_goes_first(void **state)
{
    struct notification notified[2];
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]), *b = acquire(&notified[1]);
    wait_until_open(a);
    add_other_waiter(mk_clock_ms() - 1000);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    assert_true(was_woken(&upstreams.limit, 9));
    assert_int_equal(mk_upstream_conn_state(b), -EAGAIN);
    assert_int_equal(stats_of(0).open, 0); /* the slot is free for the other worker */
    add_other_waiter(0);
    wake();
    wait_until_open(b);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_KEEP);
}

static void acquire_idle_connection_is_closed_for_other_worker(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified);
    wait_until_open(a);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    wake(); /* no request waits any longer */
    assert_int_equal(stats_of(0).idle, 1);
    add_other_waiter(mk_clock_ms() - 1000);
    wake();
    assert_int_equal(stats_of(0).open, 0);
    assert_true(was_woken(&upstreams.limit, 9));
}

static void acquire_fresh_connection_replaces_idle_one(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    l = acquire_with(&notified, (struct mk_upstream_conn_options){.server = -1, .fresh = true});
    wait_until_open(l);
    assert_int_equal(stats_of(0).open, 1);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
}

static void acquire_fresh_request_keeps_its_place_in_queue(void **state)
{
    struct notification notified[3];
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *busy = acquire(&notified[0]);
    wait_until_open(busy);
    struct mk_upstream_conn *fresh = acquire_with(
                                &notified[1], (struct mk_upstream_conn_options){.server = -1, .fresh = true}),
                            *next = acquire(&notified[2]);
    mk_upstream_conn_release(busy, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    wait_until_open(fresh);
    assert_false(mk_upstream_conn_was_reused(fresh));
    assert_int_equal(stats_of(0).open, 1);
    mk_upstream_conn_release(fresh, MK_UPSTREAM_CONN_KEEP);
    wait_until_open(next);
    assert_true(mk_upstream_conn_was_reused(next));
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_KEEP);
}

static void acquire_waiting_request_closes_idle_connections(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_KEEP);
    add_other_waiter(mk_clock_ms() - 1000);
    l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    assert_int_equal(stats_of(0).open, 0);
    assert_true(was_woken(&upstreams.limit, 9));
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void acquire_waiting_request_gets_slot_of_other_worker(void **state)
{
    struct notification notified;
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    upstream.max = 1;
    start_pool();
    unsigned slot;
    assert_true(mk_conn_limit_acquire_slot(&upstreams.limit, servers[0].stats_slot, 1, 9, &slot));
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    /* the pool does not poll */
    assert_true(pool->sweeps_at_ms >= worker.loop.now_ms + settings.queue_ms - 100);
    mk_conn_limit_release_slot(&upstreams.limit, servers[0].stats_slot, slot);
    wake();
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void acquire_malformed_failover_messages_are_ignored(void **state)
{
    (void)state;
    start_pool();
    mk_failover_on_message(pool, MK_STR("x"));
    mk_failover_on_message(pool, MK_STR("\x77\x00\x77\x00"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(acquire_connection_transfers_both_ways, setup_two),
        fixture_test(acquire_deferred_callbacks_run_in_order_at_iteration_end, setup_two),
        fixture_test(acquire_callback_deferred_by_callback_runs_in_next_iteration, setup_two),
        fixture_test(acquire_tls_buffered_data_is_read_without_event, setup_two),
        fixture_test(acquire_tls_handshake_continues_with_buffered_data, setup_two),
        fixture_test(acquire_reuses_clean_connection, setup_two),
        fixture_test(acquire_idle_connection_closed_by_server_is_dropped, setup_two),
        fixture_test(acquire_idle_connection_times_out, setup_two),
        fixture_test(acquire_round_robin_follows_weights, setup_two),
        fixture_test(acquire_least_conn_chooses_least_busy, setup_two),
        fixture_test(acquire_equal_hashes_use_same_server, setup_two),
        fixture_test(acquire_skips_server_that_refuses, setup_two),
        fixture_test(acquire_all_servers_refuse_reports_error, setup_two),
        fixture_test(acquire_may_name_another_server, setup_two),
        fixture_test(acquire_backup_serves_when_primary_is_down, setup_two),
        fixture_test(acquire_over_limit_queues_in_order, setup_two),
        fixture_test(acquire_queue_has_length_and_time_limits, setup_two),
        fixture_test(acquire_waiting_request_can_be_cancelled, setup_two),
        fixture_test(acquire_older_request_of_other_worker_goes_first, setup_two),
        fixture_test(acquire_idle_connection_is_closed_for_other_worker, setup_two),
        fixture_test(acquire_fresh_connection_replaces_idle_one, setup_two),
        fixture_test(acquire_fresh_request_keeps_its_place_in_queue, setup_two),
        fixture_test(acquire_waiting_request_closes_idle_connections, setup_two),
        fixture_test(acquire_waiting_request_gets_slot_of_other_worker, setup_two),
        fixture_test(acquire_malformed_failover_messages_are_ignored, setup_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
