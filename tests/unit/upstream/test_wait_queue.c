/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a connection, and may not use every server, in this worker and in another one. */
#include <errno.h>

#include "unit/upstream/set.h"
#include "upstream/failure.h"

static struct told told[4];
static struct mk_upstream_conn *busy[2]; /* one for each server */

static int start(void **state)
{
    (void)state;
    group_begin(2);
    upstream.max = 1;
    begin_pool();
    for (int i = 0; i < 2; i++) {
        busy[i] = take(&told[i]);
        until_open(busy[i]);
        assert_int_equal(mk_upstream_conn_server(busy[i]), i);
    }
    return 0;
}

static struct mk_upstream_conn *take_without_the_first(struct told *t)
{
    struct mk_upstream_conn *l = take_with(t, (struct mk_upstream_conn_options){.server = -1, .avoid = 1});
    assert_int_equal(mk_upstream_conn_state(l), -EAGAIN);
    return l;
}

static void give_all(struct mk_upstream_conn *a, struct mk_upstream_conn *b, struct mk_upstream_conn *c)
{
    mk_upstream_conn_release(a, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(b, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(c, MK_UPSTREAM_CONN_CLOSE);
}

static void one_that_cannot_go_on_lets_others_pass(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = take_without_the_first(&told[2]), *next = take(&told[3]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    assert_int_equal(mk_upstream_conn_state(picky), -EAGAIN);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    until_open(picky);
    assert_int_equal(mk_upstream_conn_server(picky), 1);
    give_all(picky, next, NULL);
}

static void one_that_comes_later_does_not_wait_behind_it(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = take_without_the_first(&told[2]);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    struct mk_upstream_conn *next = take(&told[3]);
    until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    give_all(picky, next, busy[1]);
}

static void one_that_can_is_served_before_those_behind_it(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = take_without_the_first(&told[2]), *next = take(&told[3]);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    until_open(picky);
    assert_int_equal(mk_upstream_conn_server(picky), 1);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    give_all(picky, next, busy[0]);
}

/* However many come behind it meanwhile. */
static void one_that_waits_in_vain_is_told_in_time(void **state)
{
    enum { MOST = 99 };
    struct told more[MOST];
    struct mk_upstream_conn *all[MOST];
    unsigned n = 0;
    (void)state;
    settings.queue_ms = 30;
    struct mk_upstream_conn *first = take(&told[2]);
    while (mk_upstream_conn_state(first) == -EAGAIN && n < MOST) {
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
        all[n] = take(&more[n]);
        n++;
    }
    assert_int_equal(mk_upstream_conn_state(first), -EBUSY);
    while (n)
        mk_upstream_conn_release(all[--n], MK_UPSTREAM_CONN_CLOSE);
    give_all(first, busy[0], busy[1]);
}

/* A reload gives the server more connections: a worker that ends, and has requests waiting, would hold up
 * those of the new ones. */
static void one_that_waits_has_the_budget_that_is_shown(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = take(&told[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->max = 2;
    wake();
    until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 1);
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->max = 1;
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_CLOSE);
    next = take(&told[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    give_all(next, busy[0], busy[1]);
}

/* ---- In another worker ---- */

enum { OTHER = 9 };

/* The request of the other worker that may use this server waits since then. */
static void show_other(unsigned server, uint64_t since_ms)
{
    upstreams.limit.memory->n_rows = OTHER + 1;
    mk_conn_limit_backend(&upstreams.limit, servers[server].stats_slot)->waiters[OTHER][0].since_ms =
        since_ms;
}

static void one_of_another_worker_lets_pass_whom_it_does_not_concern(void **state)
{
    (void)state;
    show_other(1, mk_clock_ms() - 1000);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    struct mk_upstream_conn *next = take(&told[2]), *last = take(&told[3]);
    until_open(next);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    assert_int_equal(mk_upstream_conn_state(last), -EAGAIN);
    show_other(1, 0);
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_KEEP);
    until_open(last);
    give_all(last, NULL, NULL);
}

static void those_that_wait_pass_one_of_another_worker(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = take(&told[2]);
    show_other(1, mk_clock_ms() - 1000);
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(was_woken(&upstreams.limit, OTHER));
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), 0);
    assert_int_equal(mk_upstream_conn_server(next), 0);
    give_all(next, NULL, NULL);
}

/* A worker that is blocked ends no waiting. */
static void one_that_waits_beyond_its_time_is_not_waited_for(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = take(&told[2]);
    show_other(0, mk_clock_ms() - settings.queue_ms - 10000);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(mk_upstream_conn_state(next), 0);
    give_all(next, busy[1], NULL);
}

static uint64_t shown_for(unsigned server)
{
    return mk_conn_limit_backend(&upstreams.limit, servers[server].stats_slot)
        ->waiters[pool->row][0]
        .since_ms;
}

static void others_see_only_whom_it_concerns(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = take_without_the_first(&told[2]);
    assert_true(!shown_for(0) && shown_for(1));
    struct mk_upstream_conn *next = take(&told[3]);
    assert_true(shown_for(0) && shown_for(1));
    give_all(next, NULL, NULL);
    assert_true(!shown_for(0) && shown_for(1));
    give_all(picky, busy[0], busy[1]);
    assert_true(!shown_for(0) && !shown_for(1));
}

/* It has tried the first in vain while it waited for both. */
static void others_see_what_it_waits_for_no_more(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = take(&told[2]);
    assert_true(shown_for(0) && shown_for(1));
    const struct mk_upstream_server gone = {.path = MK_STR_INIT("/nowhere")};
    assert_true(mk_resolver_parse_server(&gone, &pool->backends[0].names.addresses[0]));
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(!shown_for(0) && shown_for(1));
    give_all(next, busy[1], NULL);
}

/* A worker that does not know its address yet. */
static void one_whose_name_is_not_resolved_holds_up_no_other_worker(void **state)
{
    (void)state;
    pool->backends[0].names.n = 0;
    struct mk_upstream_conn *next = take(&told[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(!shown_for(0) && shown_for(1));
    pool->backends[0].names.n = 1;
    pool->backends[0].names.on_change(&pool->backends[0].names);
    assert_true(shown_for(0) && shown_for(1));
    give_all(next, busy[0], busy[1]);
}

/* Another worker has given up a connection, and its wake-up has not come yet. */
static void one_that_comes_later_does_not_pass_it(void **state)
{
    (void)state;
    struct mk_upstream_conn *picky = take_without_the_first(&told[2]);
    mk_conn_limit_release_slot(&upstreams.limit, servers[1].stats_slot, busy[1]->slot);
    busy[1]->has_slot = false;
    struct mk_upstream_conn *next = take(&told[3]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    wake();
    until_open(picky);
    give_all(picky, next, NULL);
    give_all(busy[0], busy[1], NULL);
}

/* It was first, and held up another one. */
static void one_that_leaves_lets_another_worker_know(void **state)
{
    (void)state;
    struct mk_upstream_conn *next = take(&told[2]);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    show_other(1, mk_clock_ms() + 100);
    mk_conn_limit_release_slot(&upstreams.limit, servers[1].stats_slot, busy[1]->slot);
    busy[1]->has_slot = false;
    (void)was_woken(&upstreams.limit, OTHER);
    mk_upstream_conn_release(next, MK_UPSTREAM_CONN_CLOSE);
    assert_true(was_woken(&upstreams.limit, OTHER));
    give_all(busy[0], busy[1], NULL);
}

/* The other one looked when ours had the slot. */
static void a_slot_whose_connection_fails_is_for_another_worker(void **state)
{
    (void)state;
    mk_upstream_conn_release(busy[1], MK_UPSTREAM_CONN_CLOSE);
    const struct mk_upstream_server gone = {.path = MK_STR_INIT("/nowhere")};
    assert_true(mk_resolver_parse_server(&gone, &pool->backends[1].names.addresses[0]));
    show_other(1, mk_clock_ms() + 100);
    struct mk_upstream_conn *next =
        take_with(&told[2], (struct mk_upstream_conn_options){.server = -1, .avoid = 1});
    assert_int_equal(mk_upstream_conn_state(next), -ENOENT); /* it does not wait */
    assert_true(was_woken(&upstreams.limit, OTHER));
    give_all(next, busy[0], NULL);
}

/* Its worker does not run: ours is served when that is clear, and nothing else tells. */
static void one_of_a_blocked_worker_is_passed_in_time(void **state)
{
    (void)state;
    settings.queue_ms = 500;
    struct mk_upstream_conn *next = take(&told[2]);
    settings.queue_ms = 30000;
    uint64_t since = mk_clock_ms() - settings.queue_ms - 900;
    show_other(0, since);
    show_other(1, since);
    mk_upstream_conn_release(busy[0], MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(mk_upstream_conn_state(next), -EAGAIN);
    assert_true(pool->sweeps_at_ms <= worker.loop.now_ms + 200);
    until_open(next);
    give_all(next, busy[1], NULL);
}

/* It was down, and none of ours saw how it came back. */
static void one_that_waits_is_told_that_a_server_is_up_again(void **state)
{
    (void)state;
    show_other(1, mk_clock_ms());
    mk_upstream_stats_health(&upstreams.stats, servers[1].stats_slot)->down_until_ms = mk_clock_ms() + 5000;
    mk_upstream_failure_clear(&worker, &servers[1]);
    assert_true(was_woken(&upstreams.limit, OTHER));
    show_other(1, 0);
    give_all(busy[0], busy[1], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_cannot_go_on_lets_others_pass, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_comes_later_does_not_wait_behind_it, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_can_is_served_before_those_behind_it, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_waits_in_vain_is_told_in_time, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_waits_has_the_budget_that_is_shown, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_of_another_worker_lets_pass_whom_it_does_not_concern, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(those_that_wait_pass_one_of_another_worker, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_waits_beyond_its_time_is_not_waited_for, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(others_see_only_whom_it_concerns, start, harness_stop),
        cmocka_unit_test_setup_teardown(others_see_what_it_waits_for_no_more, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_whose_name_is_not_resolved_holds_up_no_other_worker, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(one_that_comes_later_does_not_pass_it, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_leaves_lets_another_worker_know, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_slot_whose_connection_fails_is_for_another_worker, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(one_of_a_blocked_worker_is_passed_in_time, start, harness_stop),
        cmocka_unit_test_setup_teardown(one_that_waits_is_told_that_a_server_is_up_again, start,
                                        harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
