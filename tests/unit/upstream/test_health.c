/* SPDX-License-Identifier: Apache-2.0 */
/* When a server is up, and with which weight: consecutive failures, health checks, hold-down time, slow
 * start. */
#include "upstream/health.h"

#include <errno.h>

#include "unit/upstream/fixture.h"

static struct mk_upstream_server *s = &servers[0];

static void setup(void)
{
    upstream_setup(1);
    start_pool();
}

static struct mk_upstream_stats_health *health(void)
{
    return mk_upstream_stats_health(&upstreams.stats, s->stats_slot);
}

static bool is_up(void)
{
    return mk_health_is_up(s, mk_clock_ms());
}

static bool is_up_in(uint64_t ms)
{
    return mk_health_is_up(s, mk_clock_ms() + ms);
}

/* ---- Failures ---- */

static void health_max_fails_in_a_row_takes_server_down(void **state)
{
    (void)state;
    assert_false(mk_health_record_failure(s));
    assert_false(mk_health_record_failure(s));
    assert_true(is_up());
    assert_true(mk_health_record_failure(s));
    assert_false(is_up());
    assert_false(mk_health_record_failure(s)); /* the server is already down */
    assert_int_equal(stats_of(0).failures, 4);
}

static void health_success_resets_failure_count(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        mk_health_record_failure(s);
        mk_health_record_failure(s);
        assert_false(mk_health_record_success(s));
        assert_true(is_up());
    }
}

static void health_passed_check_resets_failure_count(void **state)
{
    (void)state;
    mk_health_record_failure(s);
    mk_health_record_failure(s);
    mk_health_record_check(s, true);
    mk_health_record_failure(s);
    assert_true(is_up());
}

static void health_server_is_down_for_fail_time(void **state)
{
    (void)state;
    settings.max_fails = 1;
    mk_health_record_failure(s);
    assert_false(is_up_in(settings.fail_ms - 1000));
    assert_true(is_up_in(settings.fail_ms + 1000));
}

static void health_shorter_fail_time_after_reload_applies_at_once(void **state)
{
    (void)state;
    settings.max_fails = 1;
    mk_health_record_failure(s);
    settings.fail_ms = 100;
    assert_true(is_up());
    settings.fail_ms = 10000;
    settings.max_fails = 0;
    assert_true(is_up());
}

static void health_success_brings_server_up(void **state)
{
    (void)state;
    settings.max_fails = 1;
    mk_health_record_failure(s);
    assert_true(mk_health_record_success(s));
    assert_true(is_up());
    assert_false(mk_health_record_success(s));
}

static void health_passed_check_brings_server_up(void **state)
{
    (void)state;
    settings.max_fails = 1;
    mk_health_record_failure(s);
    mk_health_record_check(s, true);
    assert_true(is_up());
}

/* ---- Health checks ---- */

static void health_failed_check_takes_server_down(void **state)
{
    (void)state;
    settings.check = MK_STR("/health");
    mk_health_record_check(s, false);
    assert_true(mk_health_is_check_failed(s));
    assert_false(is_up());
    mk_health_record_check(s, true);
    assert_false(mk_health_is_check_failed(s));
    assert_true(is_up());
    assert_int_equal(stats_of(0).checks, 2);
    assert_int_equal(stats_of(0).checks_failed, 1);
}

static void health_check_off_ignores_old_result(void **state)
{
    (void)state;
    mk_health_record_check(s, false);
    assert_false(mk_health_is_check_failed(s));
    assert_true(is_up());
}

static void health_rise_and_fall_count_consecutive_results(void **state)
{
    (void)state;
    static const struct {
        const char *results; /* + for success, - for failure */
        bool is_up;
    } cases[] = {{"-", true},     {"--", true},      {"---", false},    {"--+--", true},   {"--+---", false},
                 {"---+", false}, {"---+-+", false}, {"---++", true},   {"---+-++", true}, {"---++--", true},
                 {"+", true},     {"++++--", true},  {"++++---", false}};
    settings.check = MK_STR("/health");
    settings.check_fall = 3;
    settings.check_rise = 2;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        *health() = (struct mk_upstream_stats_health){0};
        for (const char *c = cases[i].results; *c; c++)
            mk_health_record_check(s, *c == '+');
        if (is_up() != cases[i].is_up)
            fail_msg("%s", cases[i].results);
    }
}

static void health_check_below_rise_keeps_fail_time(void **state)
{
    (void)state;
    settings.check = MK_STR("/health");
    settings.check_rise = 2;
    settings.max_fails = 1;
    mk_health_record_check(s, false);
    mk_health_record_failure(s);
    mk_health_record_check(s, true);
    assert_true(health()->down_until_ms > 0);
    mk_health_record_check(s, true);
    assert_int_equal(health()->down_until_ms, 0);
}

/* ---- Slow start, latency, published state ---- */

static void health_slow_start_raises_weight(void **state)
{
    (void)state;
    uint64_t now = mk_clock_ms();
    s->weight = 3;
    assert_int_equal(mk_health_weight(s, now), 3000);
    settings.slow_ms = 1000;
    assert_int_equal(mk_health_weight(s, now), 3000); /* the server was never down */
    health()->up_since_ms = now - 500;
    assert_int_equal(mk_health_weight(s, now), 1501);
    health()->up_since_ms = now;
    assert_int_equal(mk_health_weight(s, now), 1);
    health()->up_since_ms = now - 1000;
    assert_int_equal(mk_health_weight(s, now), 3000);
    health()->up_since_ms = now + 50; /* set by a worker whose clock is slightly ahead */
    assert_int_equal(mk_health_weight(s, now), 1);
    settings.slow_ms = 0;
    assert_int_equal(mk_health_weight(s, now), 3000);
}

static void health_recovery_begins_slow_start(void **state)
{
    (void)state;
    settings.slow_ms = 60000;
    settings.max_fails = 1;
    mk_health_record_failure(s);
    mk_health_record_success(s);
    assert_true(mk_health_weight(s, mk_clock_ms()) < 1000);
    *health() = (struct mk_upstream_stats_health){0};
    settings.check = MK_STR("/health");
    mk_health_record_check(s, false);
    mk_health_record_check(s, true);
    assert_true(mk_health_weight(s, mk_clock_ms()) < 1000);
}

static void health_latency_is_moving_average(void **state)
{
    (void)state;
    mk_upstream_stats_add_latency(s->shared, 8000);
    assert_int_equal(stats_of(0).latency_us, 8000);
    mk_upstream_stats_add_latency(s->shared, 16000);
    assert_int_equal(stats_of(0).latency_us, 9000);
    for (unsigned i = 0; i < 100; i++)
        mk_upstream_stats_add_latency(s->shared, 800);
    assert_in_range(stats_of(0).latency_us, 700, 900);
    s->shared[MK_UPSTREAM_STATS_LATENCY] = 0;
    mk_upstream_stats_add_latency(s->shared, UINT64_MAX);
    assert_int_equal(stats_of(0).latency_us, UINT32_MAX);
}

static void health_publishes_state(void **state)
{
    (void)state;
    assert_true(mk_health_publish(s, true));
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_UP);
    assert_false(mk_health_publish(s, false));
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_UNRESOLVED);
    settings.max_fails = 1;
    mk_health_record_failure(s);
    assert_false(mk_health_publish(s, true));
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_DOWN);
    settings.slow_ms = 60000;
    mk_health_record_success(s);
    assert_false(mk_health_publish(s, true));
    assert_int_equal(stats_of(0).state, MK_UPSTREAM_SLOW_START);
}

static void health_local_shortage_is_not_a_server_failure(void **state)
{
    (void)state;
    static const int ours[] = {-ENOMEM, -ENOBUFS, -EMFILE, -ENFILE},
                     theirs[] = {-ECONNREFUSED, -ETIMEDOUT, -EACCES, 0};
    for (size_t i = 0; i < MK_LEN(ours); i++) {
        assert_true(mk_health_is_local_shortage(ours[i]));
        assert_false(mk_health_is_local_shortage(theirs[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(health_max_fails_in_a_row_takes_server_down, setup),
        fixture_test(health_success_resets_failure_count, setup),
        fixture_test(health_passed_check_resets_failure_count, setup),
        fixture_test(health_server_is_down_for_fail_time, setup),
        fixture_test(health_shorter_fail_time_after_reload_applies_at_once, setup),
        fixture_test(health_success_brings_server_up, setup),
        fixture_test(health_passed_check_brings_server_up, setup),
        fixture_test(health_failed_check_takes_server_down, setup),
        fixture_test(health_check_off_ignores_old_result, setup),
        fixture_test(health_rise_and_fall_count_consecutive_results, setup),
        fixture_test(health_check_below_rise_keeps_fail_time, setup),
        fixture_test(health_slow_start_raises_weight, setup),
        fixture_test(health_recovery_begins_slow_start, setup),
        fixture_test(health_latency_is_moving_average, setup),
        fixture_test(health_publishes_state, setup),
        fixture_test(health_local_shortage_is_not_a_server_failure, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
