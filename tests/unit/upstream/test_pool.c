/* SPDX-License-Identifier: Apache-2.0 */
/* The connection that the pool gives to a request: addresses of one server, explicit addresses, idle
 * connections, and the wait queue. */
#include "upstream/pool.h"

#include <errno.h>
#include <stdio.h>

#include "unit/upstream/fixture.h"

static struct mk_addr peers[2];
static struct notification notified[8];

static void setup(void)
{
    upstream_setup(1);
    for (unsigned i = 0; i < 2; i++)
        peers[i] = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 192, [15] = (uint8_t)(i + 1)}};
}

static struct mk_upstream_conn *acquire_for(unsigned i, const struct mk_addr *peer)
{
    return acquire_with(&notified[i], (struct mk_upstream_conn_options){.server = -1, .client = peer});
}

/* ---- Addresses ---- */

static void pool_address_refused_tries_next_address(void **state)
{
    (void)state;
    start_pool();
    struct mk_resolver *n = &pool->backends[0].names;
    n->addresses[1] = n->addresses[0];
    n->addresses[0].v4.sin_port = htons(1); /* nothing listens on this port */
    n->n = 2;
    struct mk_upstream_conn *l = acquire(&notified[0]);
    wait_until_open(l);
    assert_int_equal(stats_of(0).failures, 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void pool_refused_addresses_are_tried_once_each(void **state)
{
    (void)state;
    settings.fail_ms = 0; /* the pool avoids no failed address */
    start_pool();
    struct mk_resolver *n = &pool->backends[0].names;
    n->addresses[0].v4.sin_addr.s_addr = htonl(INADDR_BROADCAST); /* connect() fails immediately */
    n->addresses[1] = n->addresses[0];
    n->addresses[1].v4.sin_port = htons(1);
    n->n = 2;
    unsigned before = n->next;
    struct mk_upstream_conn *l = acquire(&notified[0]);
    for (int i = 0; mk_upstream_conn_state(l) == -EAGAIN && i < 100; i++)
        run_once(&worker);
    assert_true(mk_upstream_conn_state(l) < 0 && mk_upstream_conn_state(l) != -EAGAIN);
    assert_int_equal(n->next, before);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* The waiting request is also notified if connect() fails immediately. */
static void pool_waiting_request_is_notified_of_server_failure(void **state)
{
    (void)state;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *busy = acquire(&notified[0]), *waits = acquire(&notified[1]);
    wait_until_open(busy);
    assert_int_equal(mk_upstream_conn_state(waits), -EAGAIN);
    assert_int_equal(mk_upstream_conn_server(waits), -1);
    pool->backends[0].names.addresses[0].v4.sin_addr.s_addr = htonl(INADDR_BROADCAST);
    mk_upstream_conn_release(busy, MK_UPSTREAM_CONN_CLOSE);
    assert_true(mk_upstream_conn_state(waits) < 0 && mk_upstream_conn_state(waits) != -EAGAIN);
    assert_int_equal(mk_upstream_conn_server(waits), 0);
    assert_int_equal(stats_of(0).waiting, 0);
    run_once(&worker);
    assert_int_equal(notified[1].n, 1);
    mk_upstream_conn_release(waits, MK_UPSTREAM_CONN_CLOSE);
}

/* The pool sweeps twice: at the first sweep, the server is still down. */
static void pool_sweep_publishes_recovered_server(void **state)
{
    (void)state;
    settings.max_fails = 1;
    settings.fail_ms = 1500;
    stop_server(0);
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified[0]);
    for (int i = 0; mk_upstream_conn_state(l) == -EAGAIN && i < 100; i++)
        run_once(&worker);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    for (int i = 0; stats_of(0).state != MK_UPSTREAM_DOWN && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_DOWN);
    for (int i = 0; stats_of(0).state != MK_UPSTREAM_UP && i < 500; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_UP);
}

static void pool_unknown_failed_address_is_ignored(void **state)
{
    (void)state;
    start_pool();
    struct mk_resolver *n = &pool->backends[0].names;
    struct mk_sockaddr unknown = n->addresses[0];
    n->addresses[1] = n->addresses[0];
    n->addresses[1].v4.sin_port = htons(2);
    n->n = 2;
    unknown.v4.sin_port = htons(1);
    assert_true(mk_resolver_mark_failed(n, &unknown));
    for (unsigned i = 0; i < MK_ADDRESSES_MAX; i++)
        assert_int_equal(n->avoided_until_ms[i], 0);
}

static void pool_latency_is_time_to_first_byte(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified[0]);
    wait_until_open(l);
    usleep(3000);
    mk_upstream_conn_mark_first_byte(l);
    assert_in_range(stats_of(0).latency_us, 3000, 30 * 1000 * 1000);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void pool_refused_connection_names_server(void **state)
{
    (void)state;
    stop_server(0);
    start_pool();
    struct mk_upstream_conn *l = acquire(&notified[0]);
    for (int i = 0; mk_upstream_conn_state(l) == -EAGAIN && i < 100; i++)
        run_once(&worker);
    assert_int_equal(mk_upstream_conn_state(l), -ECONNREFUSED);
    assert_str(mk_upstream_conn_server_name(l), "127.0.0.1");
    assert_int_equal(stats_of(0).failures, 1);
    assert_contains(mk_str_from_c(worker.logged), "refused the connection");
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* For a broadcast address, connect() fails immediately. */
static void pool_connect_error_tries_next_address(void **state)
{
    (void)state;
    start_pool();
    struct mk_resolver *n = &pool->backends[0].names;
    n->addresses[1] = n->addresses[0];
    n->addresses[0].v4.sin_addr.s_addr = htonl(INADDR_BROADCAST);
    n->n = 2;
    struct mk_upstream_conn *l = acquire(&notified[0]);
    wait_until_open(l);
    assert_true(n->avoided_until_ms[0] > 0);
    assert_int_equal(n->avoided_until_ms[1], 0);
    assert_int_equal(stats_of(0).failures, 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* Explicit addresses come from responses that redirect a request to another server. */
static void pool_explicit_address_accepts_brackets(void **state)
{
    (void)state;
    static const struct {
        const char *form;
        int error;
    } cases[] = {{"127.0.0.1:%u", 0},        {"[127.0.0.1]:%u", 0},        {"[127.0.0.1:%u", -EINVAL},
                 {"127.0.0.1]:%u", -EINVAL}, {"[]:%u", -EINVAL},           {":%u", -EINVAL},
                 {"127.0.0.1", -EINVAL},     {"127.0.0.1:%u000", -EINVAL}, {"localhost:%u", -EINVAL},
                 {"[:%u", -EINVAL}};
    start_pool();
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char text[64], *port = text;
        const char *at = strstr(cases[i].form, "%u");
        size_t before = at ? (size_t)(at - cases[i].form) : strlen(cases[i].form);
        memcpy(text, cases[i].form, before);
        port += before;
        port += at ? snprintf(port, 16, "%u%s", servers[0].port, at + 2) : 0;
        *port = '\0';
        struct mk_upstream_conn *l = acquire_with(
            &notified[0], (struct mk_upstream_conn_options){.server = -1, .address = mk_str_from_c(text)});
        if (cases[i].error)
            assert_int_equal(mk_upstream_conn_state(l), cases[i].error);
        else
            wait_until_open(l);
        mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    }
}

/* ---- Idle connections ---- */

static void pool_reuses_most_recently_used_connection(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]), *b = acquire(&notified[1]);
    wait_until_open(a);
    wait_until_open(b);
    int last = b->stream.fd;
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_KEEP);
    a = acquire(&notified[0]);
    assert_int_equal(a->stream.fd, last);
    assert_true(mk_upstream_conn_was_reused(a));
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
}

static void pool_keeps_at_most_keep_idle_connections(void **state)
{
    (void)state;
    upstream.keep = 1;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]), *b = acquire(&notified[1]);
    wait_until_open(a);
    wait_until_open(b);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    assert_int_equal(stats_of(0).open, 1);
}

static void pool_idle_connection_is_closed_after_idle_time(void **state)
{
    (void)state;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]);
    wait_until_open(a);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    struct mk_upstream_conn *c =
        MK_LIST_ENTRY(pool->backends[0].idle.next, struct mk_upstream_conn, backend_link);
    c->idle_since_ms = worker.loop.now_ms - upstream.idle_ms;
    for (int i = 0; stats_of(0).idle && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).open, 0);
}

/* ---- Waiting requests ---- */

static void pool_free_slot_skips_requests_over_client_share(void **state)
{
    (void)state;
    settings.max_client = MK_SETTING_UNSET;
    upstream.max = 4;
    start_pool();
    struct mk_upstream_conn *a[4], *b[3];
    for (unsigned i = 0; i < 4; i++)
        a[i] = acquire_for(i, &peers[0]); /* a[2] and a[3] have to wait */
    b[0] = acquire(&notified[4]);
    b[1] = acquire(&notified[5]);
    b[2] = acquire_for(6, &peers[1]); /* b[2] waits after a[2] and a[3] */
    wait_until_open(b[0]);
    wait_until_open(b[1]);
    assert_int_equal(mk_upstream_conn_state(b[2]), -EAGAIN);
    mk_upstream_conn_release(b[0], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(b[2]);
    assert_int_equal(mk_upstream_conn_state(a[2]), -EAGAIN);
    assert_int_equal(mk_upstream_conn_state(a[3]), -EAGAIN);
    mk_upstream_conn_release(a[0], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(a[2]);
    assert_int_equal(mk_upstream_conn_state(a[3]), -EAGAIN);
    struct mk_upstream_conn *all[] = {a[1], a[2], a[3], b[1], b[2]};
    for (size_t i = 0; i < MK_LEN(all); i++)
        mk_upstream_conn_release(all[i], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(stats_of(0).open + stats_of(0).waiting, 0);
}

static void pool_full_queue_rejects_request(void **state)
{
    (void)state;
    upstream.max = 1;
    settings.queue_max = 2;
    start_pool();
    struct mk_upstream_conn *l[4];
    for (unsigned i = 0; i < 4; i++)
        l[i] = acquire(&notified[i]);
    assert_int_equal(mk_upstream_conn_state(l[2]), -EAGAIN);
    assert_int_equal(mk_upstream_conn_state(l[3]), -EBUSY);
    assert_int_equal(stats_of(0).waiting, 2);
    for (unsigned i = 0; i < 4; i++)
        mk_upstream_conn_release(l[i], MK_UPSTREAM_CONN_CLOSE);
}

static void pool_fresh_connection_replaces_idle_one(void **state)
{
    (void)state;
    upstream.max = 1;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]);
    wait_until_open(a);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(stats_of(0).idle, 1);
    a = acquire_with(&notified[0], (struct mk_upstream_conn_options){.server = -1, .fresh = true});
    wait_until_open(a);
    assert_false(mk_upstream_conn_was_reused(a));
    assert_int_equal(stats_of(0).open, 1);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
}

static void pool_full_wakes_workers_with_idle_connections(void **state)
{
    (void)state;
    upstream.max = 1;
    start_pool();
    unsigned slot;
    assert_true(mk_conn_limit_acquire_slot(&upstreams.limit, servers[0].stats_slot, 1, 9, &slot));
    upstreams.limit.memory->n_rows = 10;
    upstreams.stats.memory->idle[servers[0].stats_slot][9] = 1;
    struct mk_upstream_conn *a = acquire(&notified[0]);
    assert_int_equal(mk_upstream_conn_state(a), -EAGAIN);
    assert_true(was_woken(&upstreams.limit, 9));
    mk_conn_limit_release_slot(&upstreams.limit, servers[0].stats_slot, slot);
    wake();
    assert_true(mk_upstream_conn_has_socket(a)); /* the request connects without another wait */
    wait_until_open(a);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
}

static void pool_idle_connection_is_closed_for_older_request_of_other_worker(void **state)
{
    (void)state;
    upstream.max = 2;
    start_pool();
    struct mk_upstream_conn *a = acquire(&notified[0]);
    wait_until_open(a);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_KEEP);
    upstreams.limit.memory->n_rows = 10;
    mk_conn_limit_backend(&upstreams.limit, servers[0].stats_slot)->waiters[9][0].since_ms =
        mk_clock_ms() - 1000;
    a = acquire(&notified[0]); /* this request must wait, so the pool closes the idle connection */
    assert_int_equal(mk_upstream_conn_state(a), -EAGAIN);
    assert_int_equal(stats_of(0).open, 0);
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
}

/* The leak checker verifies that no memory remains. */
static void pool_frees_released_blocks(void **state)
{
    (void)state;
    start_pool();
    struct mk_freelist *blocks = mk_pool_request_freelist(pool);
    void *one = mk_freelist_pop(blocks);
    assert_non_null(one);
    memset(one, 'x', MK_POOL_BLOCK);
    mk_freelist_push(blocks, one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(pool_address_refused_tries_next_address, setup),
        fixture_test(pool_refused_connection_names_server, setup),
        fixture_test(pool_refused_addresses_are_tried_once_each, setup),
        fixture_test(pool_unknown_failed_address_is_ignored, setup),
        fixture_test(pool_sweep_publishes_recovered_server, setup),
        fixture_test(pool_waiting_request_is_notified_of_server_failure, setup),
        fixture_test(pool_latency_is_time_to_first_byte, setup),
        fixture_test(pool_connect_error_tries_next_address, setup),
        fixture_test(pool_explicit_address_accepts_brackets, setup),
        fixture_test(pool_reuses_most_recently_used_connection, setup),
        fixture_test(pool_keeps_at_most_keep_idle_connections, setup),
        fixture_test(pool_idle_connection_is_closed_after_idle_time, setup),
        fixture_test(pool_free_slot_skips_requests_over_client_share, setup),
        fixture_test(pool_full_queue_rejects_request, setup),
        fixture_test(pool_fresh_connection_replaces_idle_one, setup),
        fixture_test(pool_full_wakes_workers_with_idle_connections, setup),
        fixture_test(pool_idle_connection_is_closed_for_older_request_of_other_worker, setup),
        fixture_test(pool_frees_released_blocks, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
