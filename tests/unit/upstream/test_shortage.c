/* SPDX-License-Identifier: Apache-2.0 */
/* If this process lacks resources, the server does not count as failed, and no other worker is notified. */
#include <sys/resource.h>

#include "unit/upstream/fixture.h"
#include "upstream/health_check.h"

static struct rlimit before;

/* Uses up all file descriptors. */
static void use_up_descriptors(void)
{
    struct rlimit none = {.rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void free_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void setup(void)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    upstream_setup(2);
    settings.max_fails = 1;
    settings.check_ms = 100;
}

static void teardown(void)
{
    free_descriptors();
}

static void shortage_fails_requests_and_keeps_servers_up(void **state)
{
    struct notification notified;
    (void)state;
    start_pool();
    use_up_descriptors();
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), -EMFILE);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(stats_of(i).failures, 0);
        assert_true(mk_health_is_up(&servers[i], mk_clock_ms()));
    }
    free_descriptors();
    l = acquire(&notified);
    wait_until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void shortage_skips_health_check(void **state)
{
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    settings.check = MK_STR("connect");
    use_up_descriptors();
    start_pool();
    for (int i = 0; i < 30; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(stats_of(0).checks, 0);
    assert_false(mk_health_is_check_failed(&servers[0]));
    free_descriptors();
    for (int i = 0; !stats_of(0).checks && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_true(stats_of(0).checks);
    assert_int_equal(stats_of(0).checks_failed, 0);
}

/* If the pool started anyway, the worker would serve without one of its servers. */
static void shortage_of_memory_stops_pool_start(void **state)
{
    (void)state;
    servers[0].host = MK_STR("back.example");
    worker.lacks_memory = true;
    assert_int_equal(mk_pool_start(&pool, &worker, &upstreams), -ENOMEM);
    assert_int_equal(upstreams.limit.memory->rows[0].is_taken, 0); /* the worker's row is free again */
    worker.lacks_memory = false;
    start_pool();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(shortage_fails_requests_and_keeps_servers_up, setup, teardown),
        fixture_test(shortage_skips_health_check, setup, teardown),
        fixture_test(shortage_of_memory_stops_pool_start, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
