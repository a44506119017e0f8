/* SPDX-License-Identifier: Apache-2.0 */
/* What this process lacks is no fault of the servers, and no other worker hears of it. */
#include <sys/resource.h>

#include "unit/upstream/set.h"
#include "upstream/health_check.h"

static struct rlimit before;

/* No descriptor is left from now on. */
static void use_up(void)
{
    struct rlimit none = {.rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void give_back(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static int start(void **state)
{
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    group_begin(2);
    settings.max_fails = 1;
    settings.check_ms = 100;
    return 0;
}

static int stop(void **state)
{
    give_back();
    return harness_stop(state);
}

static void exchanges_fail_and_servers_stay_up(void **state)
{
    struct told told;
    (void)state;
    begin_pool();
    use_up();
    struct mk_upstream_conn *l = take(&told);
    assert_int_equal(mk_upstream_conn_state(l), -EMFILE);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(info_of(i).failures, 0);
        assert_true(mk_health_is_up(&servers[i], mk_clock_ms()));
    }
    give_back();
    l = take(&told);
    until_open(l);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void a_check_judges_no_server(void **state)
{
    (void)state;
    upstream.n = upstreams.n_servers = 1;
    settings.check = MK_STR("connect");
    use_up();
    begin_pool();
    for (int i = 0; i < 30; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(info_of(0).checks, 0);
    assert_false(mk_health_is_check_failed(&servers[0]));
    give_back();
    for (int i = 0; !info_of(0).checks && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_true(info_of(0).checks);
    assert_int_equal(info_of(0).checks_failed, 0);
}

/* Else it would serve without one of its servers. */
static void a_worker_without_memory_for_a_server_does_not_start(void **state)
{
    (void)state;
    servers[0].host = MK_STR("back.example");
    worker.lacks_memory = true;
    assert_int_equal(mk_pool_start(&pool, &worker, &upstreams), -ENOMEM);
    assert_int_equal(upstreams.limit.memory->rows[0].is_taken, 0); /* its row is free */
    worker.lacks_memory = false;
    begin_pool();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exchanges_fail_and_servers_stay_up, start, stop),
        cmocka_unit_test_setup_teardown(a_check_judges_no_server, start, stop),
        cmocka_unit_test_setup_teardown(a_worker_without_memory_for_a_server_does_not_start, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
