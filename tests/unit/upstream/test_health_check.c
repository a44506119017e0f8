/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/health_check.h"

#include <poll.h>

#include "unit/upstream/fixture.h"
#include "upstream/backend_set.h"

static void setup(void)
{
    upstream_setup(1);
    settings.check = MK_STR("/health");
    settings.check_ms = 100;
}

static struct backend_stats info(void)
{
    return sum_stats(&upstreams.stats, servers[0].stats_slot);
}

static void until_checked(uint64_t n)
{
    for (int i = 0; info().checks < n && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_true(info().checks >= n);
}

static char request_text[2048];

/* Responds to one health check and stores the text of its request in `request_text`. */
static void respond(const char *text)
{
    struct pollfd waiting = {.fd = listening[0], .events = POLLIN};
    while (poll(&waiting, 1, 0) == 0)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    int fd = accept4(listening[0], NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n;
    while ((n = recv(fd, request_text, sizeof request_text - 1, MSG_DONTWAIT)) < 0)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    request_text[n] = '\0';
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Asserts that the request contains this text, with the port of the server. */
#define assert_request(text)                                                                                 \
    do {                                                                                                     \
        char expected[200];                                                                                  \
        snprintf(expected, sizeof expected, text, servers[0].port);                                          \
        assert_contains(mk_str_from_c(request_text), expected);                                              \
    } while (0)

static void health_check_status_below_400_passes(void **state)
{
    (void)state;
    start_pool();
    respond("HTTP/1.1 204 No Content\r\n\r\n");
    until_checked(1);
    assert_int_equal(info().checks_failed, 0);
    assert_int_equal(info().state, MK_UPSTREAM_UP);
    assert_request("GET /health HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n");
}

static void health_check_host_header_brackets_ipv6_address(void **state)
{
    (void)state;
    servers[0].host = MK_STR("::ffff:127.0.0.1");
    start_pool();
    respond("HTTP/1.1 204 No Content\r\n\r\n");
    until_checked(1);
    assert_request("\r\nHost: [::ffff:127.0.0.1]:%u\r\n");
}

static void health_check_reads_whole_response(void **state)
{
    (void)state;
    settings.check_ms = 60 * 1000; /* the next check is too far away to end this one */
    start_pool();
    struct pollfd waiting = {.fd = listening[0], .events = POLLIN};
    while (poll(&waiting, 1, 0) == 0)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    int fd = accept4(listening[0], NULL, NULL, SOCK_CLOEXEC);
    const char *pieces[] = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "world"};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(send(fd, pieces[i], strlen(pieces[i]), MSG_NOSIGNAL), (ssize_t)strlen(pieces[i]));
        until_checked(1);
    }
    assert_int_equal(info().checks_failed, 0);
    shutdown(fd, SHUT_WR);
    ssize_t n;
    while ((n = recv(fd, request_text, sizeof request_text, MSG_DONTWAIT)) > 0 || (n < 0 && errno == EAGAIN))
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(n, 0); /* the connection was closed, not reset */
    close(fd);
}

static void health_check_bad_response_fails_until_next_pass(void **state)
{
    static const char *const bad[] = {"HTTP/1.1 503 No\r\n\r\n", "HTTP/1.1 ",
                                      "nonsense, at least a line of it\r\n"};
    (void)state;
    start_pool();
    for (unsigned i = 0; i < 3; i++) {
        respond(bad[i]);
        until_checked(i + 1);
        assert_int_equal(info().checks_failed, i + 1);
        assert_true(mk_health_is_check_failed(&servers[0]));
    }
    respond("HTTP/1.1 200 OK\r\n\r\n");
    until_checked(4);
    assert_false(mk_health_is_check_failed(&servers[0]));
}

static void health_check_refused_connection_fails(void **state)
{
    (void)state;
    stop_server(0);
    start_pool();
    until_checked(2);
    assert_int_equal(info().checks_failed, info().checks);
    assert_int_equal(info().state, MK_UPSTREAM_DOWN);
    struct notification notified;
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_state(l), -EHOSTUNREACH); /* the pool has not even tried the server */
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

static void health_check_silent_server_fails(void **state)
{
    (void)state;
    start_pool();
    until_checked(1);
    assert_int_equal(info().checks_failed, 1);
}

static void health_check_connect_passes_when_server_accepts(void **state)
{
    (void)state;
    settings.check = MK_STR("connect");
    start_pool();
    until_checked(1);
    assert_int_equal(info().checks_failed, 0);
}

static void health_check_runs_only_in_first_worker(void **state)
{
    (void)state;
    worker.index = 1;
    start_pool();
    for (int i = 0; i < 20; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(info().checks, 0);
}

static void drain(void)
{
    worker.is_draining = true;
    mk_pool_drain(pool);
}

/* The workers of a newer configuration check the server: a check of an older one must not change its state. */
static void health_check_of_draining_worker_ends(void **state)
{
    struct pollfd waiting = {.fd = listening[0], .events = POLLIN};
    (void)state;
    start_pool();
    respond("HTTP/1.1 503 No\r\n\r\n");
    until_checked(1);
    while (poll(&waiting, 1, 0) == 0) /* the next check has begun */
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    mk_health_shared(&servers[0])->is_check_failed = 0;
    drain();
    close(accept4(listening[0], NULL, NULL, SOCK_CLOEXEC));
    for (int i = 0; i < 30; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(info().checks, 1);
    assert_false(mk_health_is_check_failed(&servers[0]));
    assert_int_equal(poll(&waiting, 1, 0), 0);
}

static void health_check_of_draining_worker_does_not_start(void **state)
{
    (void)state;
    worker.is_draining = true;
    start_pool(); /* opens backends like a server that is added */
    for (int i = 0; i < 20; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(info().checks, 0);
}

/* Its settings may differ: here, the newer configuration has no check, or another one that passes. */
static void health_of_draining_worker_is_not_published(void **state)
{
    (void)state;
    start_pool();
    respond("HTTP/1.1 503 No\r\n\r\n");
    until_checked(1);
    assert_int_equal(info().state, MK_UPSTREAM_DOWN);
    drain();
    mk_stat_set(&servers[0].shared[MK_UPSTREAM_STATS_STATE], MK_UPSTREAM_UP);
    assert_true(mk_backend_publish_health(&pool->backends[0]));
    assert_int_equal(info().state, MK_UPSTREAM_UP);
}

/* A server that starts late must serve before HealthInterval has passed. */
static void health_check_failure_is_retried_soon(void **state)
{
    (void)state;
    settings.check_ms = 3600 * 1000;
    start_pool();
    respond("HTTP/1.1 503 No\r\n\r\n");
    until_checked(1);
    respond("HTTP/1.1 200 OK\r\n\r\n");
    until_checked(2);
    assert_int_equal(info().checks_failed, 1);
    assert_int_equal(info().state, MK_UPSTREAM_UP);
}

static void health_check_refused_connection_is_retried_soon(void **state)
{
    (void)state;
    settings.check_ms = 3600 * 1000;
    stop_server(0);
    start_pool();
    until_checked(3);
    assert_int_equal(info().checks_failed, 3);
}

static void health_check_has_its_own_timeout(void **state)
{
    (void)state;
    settings.check_ms = 3600 * 1000;
    settings.check_timeout_ms = 50;
    start_pool();
    until_checked(1);
    assert_int_equal(info().checks_failed, 1);
    assert_contains(mk_str_from_c(worker.logged), "fails its health check: it does not answer in time");
}

static void health_check_status_out_of_range_fails(void **state)
{
    static const struct {
        const char *status;
        bool is_good;
    } cases[] = {{"199", false}, {"200", true}, {"204", true}, {"299", true}, {"300", false}, {"404", false}};
    (void)state;
    settings.check_status = (struct mk_health_check_status){200, 299};
    start_pool();
    unsigned failed = 0;
    for (unsigned i = 0; i < MK_LEN(cases); i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "HTTP/1.1 %s x\r\n\r\n", cases[i].status);
        respond(text);
        until_checked(i + 1);
        failed += !cases[i].is_good;
        assert_int_equal(info().checks_failed, failed);
    }
}

static void health_check_unresolved_server_fails(void **state)
{
    (void)state;
    servers[0].host = MK_STR("name.invalid");
    start_pool();
    until_checked(1);
    assert_int_equal(info().checks_failed, 1);
    assert_contains(mk_str_from_c(worker.logged), "it has no address");
}

static void health_check_sends_configured_host(void **state)
{
    (void)state;
    settings.check_host = MK_STR("app.example");
    start_pool();
    respond("HTTP/1.1 200 OK\r\n\r\n");
    until_checked(1);
    assert_contains(mk_str_from_c(request_text), "\r\nHost: app.example\r\n");
}

static void health_check_failure_notifies_all_workers(void **state)
{
    (void)state;
    stop_server(0);
    start_pool();
    until_checked(1);
    assert_int_equal(worker.n_messages, 0); /* there is no other server */
    upstream_fini();
    upstream_init(2);
    settings.check = MK_STR("connect");
    settings.check_ms = 100;
    stop_server(1);
    start_pool();
    for (int i = 0; !worker.n_messages && i < 100; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(worker.last_to, MK_TO_ALL);
    assert_int_equal(worker.last_message, upstream.index | 2u << 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(health_check_status_below_400_passes, setup),
        fixture_test(health_check_host_header_brackets_ipv6_address, setup),
        fixture_test(health_check_reads_whole_response, setup),
        fixture_test(health_check_bad_response_fails_until_next_pass, setup),
        fixture_test(health_check_refused_connection_fails, setup),
        fixture_test(health_check_silent_server_fails, setup),
        fixture_test(health_check_connect_passes_when_server_accepts, setup),
        fixture_test(health_check_failure_is_retried_soon, setup),
        fixture_test(health_check_refused_connection_is_retried_soon, setup),
        fixture_test(health_check_has_its_own_timeout, setup),
        fixture_test(health_check_status_out_of_range_fails, setup),
        fixture_test(health_check_unresolved_server_fails, setup),
        fixture_test(health_check_sends_configured_host, setup),
        fixture_test(health_check_failure_notifies_all_workers, setup),
        fixture_test(health_check_runs_only_in_first_worker, setup),
        fixture_test(health_check_of_draining_worker_ends, setup),
        fixture_test(health_check_of_draining_worker_does_not_start, setup),
        fixture_test(health_of_draining_worker_is_not_published, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
