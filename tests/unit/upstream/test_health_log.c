/* SPDX-License-Identifier: Apache-2.0 */
/* The error log has one line for each change of a server's state. */
#include "upstream/health.h"

#include <errno.h>

#include "unit/upstream/fixture.h"
#include "upstream/connect_error.h"
#include "upstream/failover.h"

static struct mk_upstream_server *s = &servers[0];

static void setup(void)
{
    upstream_setup(2);
    start_pool();
}

static struct mk_upstream_stats_health *health(void)
{
    return mk_upstream_stats_health(&upstreams.stats, s->stats_slot);
}

/* Pretends that the interval between two log lines has passed. */
static void pass_time(void)
{
    health()->trouble_ms = health()->nameless_ms = 1;
}

static void expect_line(enum mk_log_level level, const char *text)
{
    assert_int_equal(worker.n_logged, 1);
    assert_int_equal(worker.level, level);
    assert_contains(mk_str_from_c(worker.logged), text);
    assert_contains(mk_str_from_c(worker.logged), "upstream u: the server 127.0.0.1 ");
    worker.n_logged = 0;
}

static void failure_is_logged_once_until_it_changes(void **state)
{
    (void)state;
    settings.max_fails = 0;
    for (unsigned i = 0; i < 5; i++) {
        mk_health_report_failure(&worker, s, -ECONNREFUSED, NULL);
        pass_time();
    }
    expect_line(MK_LOG_ERROR, "failed: the server refused the connection");
    mk_health_report_failure(&worker, s, -ETIMEDOUT, "the server does not answer");
    expect_line(MK_LOG_ERROR, "failed: the server does not answer");
    pass_time();
    mk_health_report_success(&worker, s);
    expect_line(MK_LOG_INFO, "answers again");
    mk_health_report_success(&worker, s);
    assert_int_equal(worker.n_logged, 0);
    assert_int_equal(stats_of(0).failures, 6);
}

static void failure_flapping_server_does_not_flood_log(void **state)
{
    (void)state;
    settings.max_fails = 0;
    mk_health_report_failure(&worker, s, -ECONNRESET, NULL);
    for (unsigned i = 0; i < 50; i++) {
        mk_health_report_success(&worker, s);
        mk_health_report_failure(&worker, s, -ECONNRESET, NULL);
    }
    expect_line(MK_LOG_ERROR, "failed");
    pass_time();
    mk_health_report_success(&worker, s); /* the log ends with the current state */
    expect_line(MK_LOG_INFO, "answers again");
}

static void failure_logs_server_down_and_up(void **state)
{
    (void)state;
    settings.max_fails = 2;
    assert_false(mk_health_report_failure(&worker, s, -EPIPE, NULL));
    worker.n_logged = 0;
    assert_true(mk_health_report_failure(&worker, s, -EPIPE, NULL));
    expect_line(MK_LOG_WARN, "gets no requests for 10000 ms, after 2 failures in a row");
    assert_false(mk_health_report_failure(&worker, s, -EPIPE, NULL));
    assert_int_equal(worker.n_logged, 0);
    pass_time();
    mk_health_report_success(&worker, s);
    expect_line(MK_LOG_INFO, "is back");
}

static void failure_message_uses_singular(void **state)
{
    (void)state;
    settings.max_fails = 1;
    assert_true(mk_health_report_failure(&worker, s, -EPIPE, NULL));
    assert_int_equal(worker.n_logged, 2); /* the first line states the reason for the failure */
    assert_contains(mk_str_from_c(worker.logged), "gets no requests for 10000 ms, after 1 failure in a row");
}

static void failure_health_check_logs_reason(void **state)
{
    (void)state;
    settings.check = MK_STR("/health");
    settings.check_fall = 2;
    assert_false(mk_health_report_check(&worker, s, false, "it answers with status 503"));
    assert_int_equal(worker.n_logged, 0);
    assert_true(mk_health_report_check(&worker, s, false, "it answers with status 503"));
    expect_line(MK_LOG_WARN, "fails its health check: it answers with status 503");
    assert_false(mk_health_report_check(&worker, s, false, "it does not answer in time"));
    assert_int_equal(worker.n_logged, 0);
    assert_false(mk_health_report_check(&worker, s, true, NULL));
    expect_line(MK_LOG_INFO, "passes its health check");
}

static void failure_unresolved_name_logs_reason(void **state)
{
    (void)state;
    mk_health_report_dns(&worker, s, NULL);
    assert_int_equal(worker.n_logged, 0);
    for (unsigned i = 0; i < 3; i++) {
        mk_health_report_dns(&worker, s, "Name or service not known");
        pass_time();
    }
    expect_line(MK_LOG_ERROR, "does not resolve: Name or service not known");
    mk_health_report_dns(&worker, s, NULL);
    expect_line(MK_LOG_INFO, "resolves again");
}

static void failure_every_error_has_text(void **state)
{
    (void)state;
    static const int errors[] = {-EHOSTUNREACH,  -EBUSY,       -ETIMEDOUT, -EPROTO,       -EMFILE,
                                 -ENFILE,        -ENOBUFS,     -ENOMEM,    -ENOENT,       -EACCES,
                                 -EPERM,         -ENETUNREACH, -EAGAIN,    -ECONNREFUSED, -ECONNRESET,
                                 -EADDRNOTAVAIL, -EIO};
    for (size_t i = 0; i < MK_LEN(errors); i++)
        assert_true(strlen(mk_connect_error_text(errors[i])) > 10);
    assert_contains(mk_str_from_c(mk_connect_error_text(-EACCES)), "Permission denied");
    assert_contains(mk_str_from_c(mk_connect_error_text(-ENOENT)), "No such file");
    assert_contains(mk_str_from_c(mk_connect_error_text(-ENETUNREACH)), "no route");
}

/* ---- Requests to a server that goes down ---- */

static unsigned n_out;

static void on_down(void *ctx)
{
    (void)ctx;
    n_out++;
}

static void receive_message(void)
{
    mk_failover_on_message(pool, mk_str_of((const char *)&worker.last_message, sizeof worker.last_message));
}

static void failover_notifies_requests_on_server_down(void **state)
{
    (void)state;
    struct notification notified[3];
    struct mk_upstream_conn *waits = acquire(&notified[0]), *other = acquire(&notified[1]),
                            *answered = acquire(&notified[2]);
    struct mk_upstream_conn *l[] = {waits, other, answered};
    n_out = 0;
    for (unsigned i = 0; i < 3; i++) {
        wait_until_open(l[i]);
        l[i]->on_down = on_down;
    }
    assert_int_equal(mk_upstream_conn_server(waits), mk_upstream_conn_server(answered));
    mk_upstream_conn_mark_first_byte(answered);
    mk_failover_broadcast(&pool->backends[mk_upstream_conn_server(waits)]);
    assert_int_equal(n_out, 0); /* reporting a failure never runs callbacks */
    receive_message();
    assert_int_equal(n_out, 1);
    for (unsigned i = 0; i < 3; i++)
        mk_upstream_conn_release(l[i], MK_UPSTREAM_CONN_CLOSE);
    receive_message();
    assert_int_equal(n_out, 1);
}

static void failover_keeps_requests_when_no_server_is_up(void **state)
{
    (void)state;
    struct notification notified;
    struct mk_upstream_conn *l = acquire(&notified);
    n_out = 0;
    wait_until_open(l);
    l->on_down = on_down;
    settings.max_fails = 1;
    mk_health_record_failure(&servers[1 - mk_upstream_conn_server(l)]);
    mk_failover_broadcast(&pool->backends[mk_upstream_conn_server(l)]);
    receive_message();
    assert_int_equal(n_out, 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void failover_message_about_unknown_server_is_dropped(void **state)
{
    (void)state;
    static const uint32_t messages[] = {3u << 16, 0xffffu << 16, 1u << 16 | 7, 7};
    for (size_t i = 0; i < MK_LEN(messages); i++)
        mk_failover_on_message(pool, mk_str_of((const char *)&messages[i], sizeof messages[i]));
    mk_failover_on_message(pool, MK_STR("abc"));
}

static void failover_max_fails_notifies_other_workers(void **state)
{
    (void)state;
    struct notification notified[2];
    settings.max_fails = 1;
    struct mk_upstream_conn *l = acquire(&notified[0]);
    wait_until_open(l);
    unsigned before = worker.n_messages;
    int server = mk_upstream_conn_server(l);
    mk_upstream_conn_set_error(l, -ECONNRESET, "the server closed the connection");
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(worker.n_messages, before + 1);
    assert_int_equal(worker.last_message, mk_failover_encode(&servers[server]));
    assert_int_equal(worker.last_to, MK_TO_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(failure_is_logged_once_until_it_changes, setup),
        fixture_test(failure_flapping_server_does_not_flood_log, setup),
        fixture_test(failure_logs_server_down_and_up, setup),
        fixture_test(failure_message_uses_singular, setup),
        fixture_test(failure_health_check_logs_reason, setup),
        fixture_test(failure_unresolved_name_logs_reason, setup),
        fixture_test(failure_every_error_has_text, setup),
        fixture_test(failover_notifies_requests_on_server_down, setup),
        fixture_test(failover_keeps_requests_when_no_server_is_up, setup),
        fixture_test(failover_message_about_unknown_server_is_dropped, setup),
        fixture_test(failover_max_fails_notifies_other_workers, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
