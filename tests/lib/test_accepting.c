/* SPDX-License-Identifier: Apache-2.0 */
/* A server that pauses accepting, servers that share a port, and the report about a handler that blocks. */
#include "lib/embed.h"

#include <poll.h>

static bool has_response_within(int client, int ms)
{
    struct pollfd p = {.fd = client, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static int ask(unsigned port)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    int client = dial(port);
    assert_int_equal(send(client, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    return client;
}

static void count_call(struct mk_worker *worker, void *n)
{
    (void)worker;
    atomic_fetch_add((atomic_int *)n, 1);
}

/* Waits until each worker has run a posted call. Workers run calls in order, so all earlier calls have run as
 * well. */
static void wait_for_workers(struct mk_server *s, int workers)
{
    atomic_int n = 0;
    assert_int_equal(mk_server_post(s, count_call, NULL, &n), 0);
    wait_until(&n, workers);
}

static void accepting_paused_connections_wait_until_resumed(void **state)
{
    unsigned port;
    struct mk_server *s = server_with("/", respond_hello, NULL, &port);
    (void)state;
    assert_int_equal(mk_server_pause_accepting(s), -ESHUTDOWN);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_int_equal(mk_server_pause_accepting(s), 0);
    wait_for_workers(s, 2);
    int first = ask(port), second = ask(port);
    assert_false(has_response_within(first, 300));
    assert_false(has_response_within(second, 0));
    assert_int_equal(mk_server_resume_accepting(s), 0);
    assert_true(has_response_within(first, PATIENCE_S * 1000));
    assert_true(has_response_within(second, PATIENCE_S * 1000));
    close(first);
    close(second);
    mk_server_pause_accepting(s); /* a paused server stops as well */
    mk_server_free(s);
}

/* ---- Several loops on one port ---- */

static int bind_shared(unsigned *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static enum mk_verdict count_request(struct mk_request *request, struct mk_response *response, void *n)
{
    atomic_fetch_add((atomic_int *)n, 1);
    return respond_hello(request, response, NULL);
}

static void servers_with_a_socket_each_share_a_port(void **state)
{
    enum { SERVERS = 2, CLIENTS = 64 };
    struct mk_server *s[SERVERS];
    atomic_int n[SERVERS] = {0};
    unsigned port = 0;
    int fds[SERVERS];
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        s[i] = mk_server_new(NULL);
        assert_int_equal(mk_server_add_route(s[i], "/", count_request, &n[i]), 0);
        assert_int_equal(mk_server_listen_fd(s[i], fds[i] = bind_shared(&port), false), 0);
        assert_int_equal(mk_server_start(s[i], 1), 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        assert_holds(fetch(port, "GET", "/"), "hello");
    assert_int_equal(n[0] + n[1], CLIENTS);
    assert_true(n[0] > 0 && n[1] > 0);
    for (int i = 0; i < SERVERS; i++) {
        mk_server_free(s[i]);
        close(fds[i]);
    }
}

static enum mk_verdict block(struct mk_request *request, struct mk_response *response, void *data)
{
    usleep(200000);
    return respond_hello(request, response, data);
}

static void count_warnings(void *n, enum mk_log_level level, mk_str text)
{
    if (level == MK_LOG_WARN && text.len && strstr(text.p, "the event loop was blocked for "))
        atomic_fetch_add((atomic_int *)n, 1);
}

static int warnings_of_blocking_handler(uint32_t slow_loop_ms)
{
    atomic_int n = 0;
    unsigned port;
    const struct mk_server_options options = {
        .size = sizeof options, .on_log = count_warnings, .log_ctx = &n, .slow_loop_ms = slow_loop_ms};
    struct mk_server *s = mk_server_new(&options);
    assert_non_null(s);
    assert_int_equal(mk_server_add_route(s, "/", block, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    int client = ask(port);
    assert_true(has_response_within(client, PATIENCE_S * 1000));
    wait_for_workers(s, 1);
    close(client);
    mk_server_free(s);
    return atomic_load(&n);
}

static void slow_loop_is_reported(void **state)
{
    (void)state;
    assert_true(warnings_of_blocking_handler(100) >= 1);
    assert_int_equal(warnings_of_blocking_handler(MK_FOREVER), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepting_paused_connections_wait_until_resumed),
        cmocka_unit_test(servers_with_a_socket_each_share_a_port),
        cmocka_unit_test(slow_loop_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
