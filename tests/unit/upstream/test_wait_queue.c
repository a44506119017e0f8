/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a connection and may not use every server, in this worker and in another one. */
#include <errno.h>

#include "unit/upstream/fixture.h"
#include "upstream/health.h"

static struct notification notified[4];
static struct mk_upstream_conn *busy[2]; /* one connection to each server */

static void setup(void)
{
    upstream_setup(2);
    upstream.max = 1;
    start_pool();
    for (int i = 0; i < 2; i++) {
        busy[i] = acquire(&notified[i]);
        wait_until_open(busy[i]);
        assert_int_equal(mk_upstream_conn_server(busy[i]), i);
    }
}

static struct mk_upstream_conn *acquire_except_first(struct notification *t)
{
    struct mk_upstream_conn *l = acquire_with(t, (struct mk_upstream_conn_options){.server = -1, .tried = 1});
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    return l;
}

static void release_all(struct mk_upstream_conn *a, struct mk_upstream_conn *b, struct mk_upstream_conn *c)
{
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(c, MK_UPSTREAM_CONN_CLOSE);
}

static void wait_queue_blocked_request_lets_others_pass(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = acquire_except_first(&notified[2]), *next = acquire(&notified[3]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    assert_int_equal(mk_upstream_conn_state(picky), -EAGAIN);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(picky);
    assert_int_equal(mk_upstream_conn_server(picky), 1);
    release_all(picky, next, NULL);
}

static void wait_queue_later_request_overtakes_blocked_one(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = acquire_except_first(&notified[2]);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    struct mk_upstream_conn *next = acquire(&notified[3]);
    wait_until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    release_all(picky, next, busy[1]);
}

static void wait_queue_eligible_request_keeps_its_place(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = acquire_except_first(&notified[2]), *next = acquire(&notified[3]);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    wait_until_open(picky);
    assert_int_equal(mk_upstream_conn_server(picky), 1);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    release_all(picky, next, busy[0]);
}

/* The timeout holds however many requests queue up later. */
static void wait_queue_times_out_despite_new_waiters(void **state)
{
    enum { MOST = 99 };
    struct notification more[MOST];
    struct mk_upstream_conn *all[MOST];
    unsigned n = 0;
    (void)state;
    settings.queue_ms = 30;
    struct mk_upstream_conn *first = acquire(&notified[2]);
    while (mk_upstream_conn_state(first) == -EAGAIN && n < MOST) {
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
        all[n] = acquire(&more[n]);
        n++;
    }
    assert_int_equal(mk_upstream_conn_state(first), -EBUSY);
    while (n)
        mk_upstream_conn_release(all[--n], MK_UPSTREAM_CONN_CLOSE);
    release_all(first, busy[0], busy[1]);
}

/* When a reload raises the connection limit, the new limit also applies to requests that wait in an exiting
 * worker. Otherwise they would block requests of the new workers. */
static void wait_queue_uses_published_connection_limit(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->max = 2;
    wake();
    wait_until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 1);
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->max = 1;
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_CLOSE);
    next = acquire(&notified[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    release_all(next, busy[0], busy[1]);
}

/* ---- In another worker ---- */

enum { OTHER = 9 };

/* Publishes a request of the other worker that waits for this server; it began to wait at `since_ms`. */
static void show_other(unsigned server, uint64_t since_ms)
{
    upstreams.limit.memory->n_rows = OTHER + 1;
    mk_conn_limit_backend(&upstreams.limit, servers[server].stats_slot)->waiters[OTHER][0].since_ms =
        since_ms;
}

static void wait_queue_waiter_of_other_worker_blocks_only_its_server(void **state)
{
    (void)state;
    show_other(1, mk_clock_ms() - 1000);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    struct mk_upstream_conn *next = acquire(&notified[2]), *last = acquire(&notified[3]);
    wait_until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    assert_int_equal(mk_upstream_conn_state(last), -EAGAIN);
    show_other(1, 0);
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_KEEP);
    wait_until_open(last);
    release_all(last, NULL, NULL);
}

static void wait_queue_skips_server_reserved_by_other_worker(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    show_other(1, mk_clock_ms() - 1000);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(was_woken(&upstreams.limit, OTHER));
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), 0);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    release_all(next, NULL, NULL);
}

/* A blocked worker does not remove its timed-out requests, so the other workers must ignore them. */
static void wait_queue_ignores_overdue_waiter_of_other_worker(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    show_other(0, mk_clock_ms() - settings.queue_ms - 10000);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), 0);
    release_all(next, busy[1], NULL);
}

static uint64_t published_for(unsigned server)
{
    return mk_conn_limit_backend(&upstreams.limit, servers[server].stats_slot)
        ->waiters[pool->row][0]
        .since_ms;
}

static void wait_queue_publishes_only_servers_a_request_may_use(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = acquire_except_first(&notified[2]);
    assert_true(!published_for(0) && published_for(1));
    struct mk_upstream_conn *next = acquire(&notified[3]);
    assert_true(published_for(0) && published_for(1));
    release_all(next, NULL, NULL);
    assert_true(!published_for(0) && published_for(1));
    release_all(picky, busy[0], busy[1]);
    assert_true(!published_for(0) && !published_for(1));
}

/* The request waited for both servers and has failed on the first. */
static void wait_queue_unpublishes_failed_server(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    assert_true(published_for(0) && published_for(1));
    const struct mk_upstream_server missing = {.path = MK_STR_INIT("/nowhere")};
    assert_true(mk_resolver_parse_server(&missing, &pool->backends[0].names.addresses[0]));
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(!published_for(0) && published_for(1));
    release_all(next, busy[1], NULL);
}

/* This worker does not know the address yet. */
static void wait_queue_unresolved_server_is_not_published(void **state)
{
    (void)state;
    pool->backends[0].names.n = 0;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(!published_for(0) && published_for(1));
    pool->backends[0].names.n = 1;
    pool->backends[0].names.on_change(&pool->backends[0].names);
    assert_true(published_for(0) && published_for(1));
    release_all(next, busy[0], busy[1]);
}

/* Another worker has closed a connection, but its wake-up has not arrived yet. */
static void wait_queue_later_request_does_not_take_freed_slot(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = acquire_except_first(&notified[2]);
    mk_conn_limit_release_slot(&upstreams.limit, servers[1].stats_slot, busy[1]->slot);
    busy[1]->slot = MK_UPSTREAM_CONN_NO_SLOT;
    struct mk_upstream_conn *next = acquire(&notified[3]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    wake();
    wait_until_open(picky);
    release_all(picky, next, NULL);
    release_all(busy[0], busy[1], NULL);
}

/* The request was first in the queue, and so it blocked the request of the other worker. */
static void wait_queue_cancelled_waiter_wakes_other_worker(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    show_other(1, mk_clock_ms() + 100);
    mk_conn_limit_release_slot(&upstreams.limit, servers[1].stats_slot, busy[1]->slot);
    busy[1]->slot = MK_UPSTREAM_CONN_NO_SLOT;
    (void)was_woken(&upstreams.limit, OTHER);
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_CLOSE);
    assert_true(was_woken(&upstreams.limit, OTHER));
    release_all(busy[0], busy[1], NULL);
}

/* The other worker checked the queue while this worker held the slot. */
static void wait_queue_failed_connection_wakes_other_worker(void **state)
{
    (void)state;
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    const struct mk_upstream_server missing = {.path = MK_STR_INIT("/nowhere")};
    assert_true(mk_resolver_parse_server(&missing, &pool->backends[1].names.addresses[0]));
    show_other(1, mk_clock_ms() + 100);
    struct mk_upstream_conn *next =
        acquire_with(&notified[2], (struct mk_upstream_conn_options){.server = -1, .tried = 1});
    assert_int_equal(mk_upstream_conn_state(next), -ENOENT); /* the request fails instead of waiting */
    assert_true(was_woken(&upstreams.limit, OTHER));
    release_all(next, busy[0], NULL);
}

/* The other worker is blocked: this worker proceeds as soon as it detects that, without a notification. */
static void wait_queue_waiter_of_blocked_worker_is_passed_in_time(void **state)
{
    (void)state;
    settings.queue_ms = 500;
    struct mk_upstream_conn *next = acquire(&notified[2]);
    settings.queue_ms = 30000;
    uint64_t since = mk_clock_ms() - settings.queue_ms - 900;
    show_other(0, since);
    show_other(1, since);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(pool->sweeps_at_ms <= worker.loop.now_ms + 200);
    wait_until_open(next);
    release_all(next, busy[1], NULL);
}

/* The server recovers while no request of this worker waits for it. */
static void wait_queue_recovered_server_wakes_other_worker(void **state)
{
    (void)state;
    show_other(1, mk_clock_ms());
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->down_until_ms = mk_clock_ms() + 5000;
    mk_health_report_success(&worker, &servers[1]);
    assert_true(was_woken(&upstreams.limit, OTHER));
    show_other(1, 0);
    release_all(busy[0], busy[1], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(wait_queue_blocked_request_lets_others_pass, setup),
        fixture_test(wait_queue_later_request_overtakes_blocked_one, setup),
        fixture_test(wait_queue_eligible_request_keeps_its_place, setup),
        fixture_test(wait_queue_times_out_despite_new_waiters, setup),
        fixture_test(wait_queue_uses_published_connection_limit, setup),
        fixture_test(wait_queue_waiter_of_other_worker_blocks_only_its_server, setup),
        fixture_test(wait_queue_skips_server_reserved_by_other_worker, setup),
        fixture_test(wait_queue_ignores_overdue_waiter_of_other_worker, setup),
        fixture_test(wait_queue_publishes_only_servers_a_request_may_use, setup),
        fixture_test(wait_queue_unpublishes_failed_server, setup),
        fixture_test(wait_queue_unresolved_server_is_not_published, setup),
        fixture_test(wait_queue_later_request_does_not_take_freed_slot, setup),
        fixture_test(wait_queue_cancelled_waiter_wakes_other_worker, setup),
        fixture_test(wait_queue_failed_connection_wakes_other_worker, setup),
        fixture_test(wait_queue_waiter_of_blocked_worker_is_passed_in_time, setup),
        fixture_test(wait_queue_recovered_server_wakes_other_worker, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
