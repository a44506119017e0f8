/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without its own process: it serves a configuration whenever its loop runs. */
#include "worker/worker.h"

#include <sys/socket.h>

#include "os/sock.h"
#include "unit/fixtures.h"
#include "unit/setup/fixture.h"

static struct config_fixture c;
static struct mk_worker w;
static struct mk_counters counters;
static struct mk_sockaddr where;
static int listener, client;

static void setup(void)
{
    config_setup(&c);
    fd_setup(&client);
    listener_setup(&listener, &where);
    memset(&counters, 0, sizeof counters);
}

static void serve(const char *text)
{
    config_expect(&c, text);
    const struct mk_worker_options o = {.generation = c.g,
                                        .workers = 1,
                                        .counters = &counters,
                                        .listeners = &(struct mk_worker_socket){.fd = listener},
                                        .n_listeners = 1};
    assert_int_equal(mk_worker_init(&w, &o), 0);
}

static void run_loop(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(mk_loop_run_once(&w.loop, 5), 0);
}

static void send_request(const char *target)
{
    char request[256];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target);
    if (client < 0) {
        client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(client, &where.any, where.len), 0);
    }
    assert_int_equal(send(client, request, (size_t)len, 0), len);
}

static void request_target(const char *target)
{
    send_request(target);
    run_loop(5);
}

static mk_str receive(void)
{
    static char buffer[4096];
    ssize_t n = recv(client, buffer, sizeof buffer, MSG_DONTWAIT);
    return mk_str_of(buffer, n > 0 ? (size_t)n : 0);
}

#define HOST "[HOST]\n    DocumentRoot site\n"

static void worker_serves_configured_files(void **state)
{
    (void)state;
    serve(HOST);
    request_target("/");
    mk_str response = receive();
    assert_true(mk_str_starts(response, MK_STR("HTTP/1.1 200 OK\r\n")));
    assert_true(mk_str_ends(response, MK_STR("\r\n\r\nindex")));
    assert_contains(response, "Server: Monkey/" MK_VERSION "\r\n");
    assert_int_equal(counters.requests, 1);
    mk_worker_fini(&w);
    assert_int_equal(counters.by_class[2], 1);
}

static void worker_limits_come_from_configuration(void **state)
{
    (void)state;
    serve("[SERVER]\n    HeaderTimeout 3\n    KeepAliveTimeout 2\n    HandlerTimeout unlimited\n    "
          "MaxBodySize 5M\n"
          "    MaxRequestSize 7\n    MaxHeaderSize 1K\n    MaxURISize 512\n    MaxHeaders 9\n    "
          "MaxConnections "
          "33\n"
          "    MaxConnectionsPerAddress 4\n    OverCapacity TooBusy\n    KeepAlive off\n    HideVersion on\n"
          "    KeepAliveRequests 6\n    OpenFileCache off\n" HOST);
    assert_int_equal(w.limits.head_ms, 3000);
    assert_int_equal(w.limits.idle_ms, 2000);
    assert_int_equal(w.limits.request.content_max, 5 << 20);
    assert_int_equal(w.limits.request_max, 7 * 1024);
    assert_int_equal(w.limits.head.head_max, 1024);
    assert_int_equal(w.limits.head.target_max, 512);
    assert_int_equal(w.limits.head.fields_max, 9);
    assert_int_equal(w.limits.connections_max, 33);
    assert_int_equal(w.limits.per_peer_max, 4);
    assert_int_equal(w.limits.requests_max, 6);
    assert_int_equal(w.limits.overcapacity, MK_OVERCAPACITY_TOOBUSY);
    assert_false(w.limits.keep_alive);
    assert_int_equal(w.web.files.limits.files, 0);
    request_target("/");
    assert_contains(receive(), "Server: Monkey\r\n");
    mk_worker_fini(&w);
}

static void worker_access_log_is_flushed(void **state)
{
    (void)state;
    char path[PATH_MAX], buffer[1024];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    serve("[SERVER]\n    AccessLog access.log\n" HOST);
    request_target("/x");
    folder_path(&c.folder, "access.log", path);
    assert_int_equal(mk_file_read_all(path, &text), 0);
    assert_int_equal(text.len, 0); /* buffered */
    mk_worker_flush_logs(&w);
    assert_int_equal(mk_file_read_all(path, &text), 0);
    assert_contains(mk_buf_str(&text), "127.0.0.1 - - [");
    assert_contains(mk_buf_str(&text), "\"GET /x HTTP/1.1\" 404 ");
    request_target("/y");
    mk_worker_fini(&w); /* the last lines are not lost */
    mk_buf_clear(&text);
    assert_int_equal(mk_file_read_all(path, &text), 0);
    assert_contains(mk_buf_str(&text), "\"GET /y HTTP/1.1\" 404 ");
}

static void worker_draining_finishes_and_exits(void **state)
{
    (void)state;
    serve(HOST);
    request_target("/");
    assert_true(receive().len > 0);
    assert_false(mk_worker_is_draining(&w));
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    assert_true(mk_worker_is_draining(&w));
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    run_loop(3);
    assert_false(w.loop.stopped); /* the worker stays, because the client may have sent a request already */
    request_target("/");
    assert_contains(receive(), "Connection: close\r\n");
    mk_fd_close(&client);
    assert_int_equal(mk_worker_run(&w), 0); /* the worker exits by itself */
    mk_worker_fini(&w);
}

static void worker_draining_waits_for_references(void **state)
{
    (void)state;
    serve(HOST);
    mk_worker_ref(&w);
    mk_worker_ref(&w);
    mk_worker_unref(&w);
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    run_loop(2);
    assert_false(w.loop.stopped);
    mk_worker_unref(&w);
    assert_true(w.loop.stopped);
    mk_worker_fini(&w);
}

static void worker_drain_timeout_overrides_references(void **state)
{
    (void)state;
    serve("[SERVER]\n    DrainTimeout 50ms\n" HOST);
    mk_worker_ref(&w);
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    assert_int_equal(mk_worker_run(&w), 0);
    mk_worker_unref(&w);
    mk_worker_fini(&w);
}

static void worker_drain_timeout_overrides_connections(void **state)
{
    (void)state;
    serve("[SERVER]\n    DrainTimeout 50ms\n" HOST);
    request_target("/");
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    assert_int_equal(mk_worker_run(&w), 0);
    mk_worker_fini(&w);
}

static void worker_draining_without_successor_serves_queued_connections(void **state)
{
    (void)state;
    serve("[SERVER]\n    KeepAlive off\n    DrainTimeout 5\n" HOST);
    send_request("/");
    int first = client;
    client = -1;
    send_request("/");
    shutdown(first, SHUT_WR);
    mk_worker_drain(&w, false, c.g->server.drain_ms);
    assert_false(w.loop.stopped);
    run_loop(3);
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    mk_fd_close(&client);
    client = first;
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    mk_fd_close(&client);
    assert_int_equal(mk_worker_run(&w), 0);
    mk_worker_fini(&w);
}

static void worker_draining_leaves_queued_connections_to_successor(void **state)
{
    (void)state;
    serve(HOST);
    send_request("/");
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    assert_int_equal(mk_worker_run(&w), 0);
    mk_worker_fini(&w);
    assert_int_equal(counters.accepted, 0);
    serve(HOST);
    run_loop(5);
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    mk_worker_fini(&w);
}

static void worker_draining_without_connections_exits_at_once(void **state)
{
    (void)state;
    serve(HOST);
    mk_worker_drain(&w, true, c.g->server.drain_ms);
    assert_int_equal(mk_worker_run(&w), 0);
    mk_worker_fini(&w);
}

static void worker_accepts_when_nobody_pauses_it(void **state)
{
    (void)state;
    serve(HOST);
    mk_worker_pause_accepting(&w, true);
    mk_worker_hold_accepting(&w, MK_WORKER_HOLD_PROGRAM, true);
    request_target("/");
    assert_int_equal(counters.accepted, 0);
    mk_worker_pause_accepting(&w, false);
    run_loop(3);
    assert_int_equal(counters.accepted, 0);
    mk_worker_hold_accepting(&w, MK_WORKER_HOLD_PROGRAM, false);
    run_loop(5);
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    mk_worker_fini(&w);
}

static void worker_releasing_memory_closes_connections_without_requests(void **state)
{
    (void)state;
    serve(HOST);
    request_target("/");
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    mk_worker_release_memory(&w, MK_RELEASE_CACHES);
    assert_int_equal(w.manager.n_conns, 1);
    w.loop.now_ms += 1000;
    mk_worker_release_memory(&w, MK_RELEASE_IDLE);
    assert_int_equal(w.manager.n_conns, 1);
    w.loop.now_ms += 4100;
    assert_int_equal(send(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, 0), 27);
    mk_worker_release_memory(&w, MK_RELEASE_IDLE | MK_RELEASE_INCOMPLETE);
    assert_int_equal(w.manager.n_conns, 1);
    run_loop(3);
    assert_contains(receive(), "HTTP/1.1 200 OK\r\n");
    w.loop.now_ms += 5100;
    mk_worker_release_memory(&w, MK_RELEASE_IDLE);
    run_loop(2);
    assert_int_equal(w.manager.n_conns, 0);
    mk_fd_close(&client);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, &where.any, where.len), 0);
    assert_int_equal(send(client, "GET / HT", 8, 0), 8);
    run_loop(3);
    mk_worker_release_memory(&w, MK_RELEASE_IDLE);
    run_loop(2);
    assert_int_equal(w.manager.n_conns, 1);
    mk_worker_release_memory(&w, MK_RELEASE_INCOMPLETE);
    assert_contains(receive(), "HTTP/1.1 408 ");
    mk_worker_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(worker_serves_configured_files, setup),
        fixture_test(worker_limits_come_from_configuration, setup),
        fixture_test(worker_access_log_is_flushed, setup),
        fixture_test(worker_draining_finishes_and_exits, setup),
        fixture_test(worker_drain_timeout_overrides_connections, setup),
        fixture_test(worker_draining_waits_for_references, setup),
        fixture_test(worker_drain_timeout_overrides_references, setup),
        fixture_test(worker_draining_without_successor_serves_queued_connections, setup),
        fixture_test(worker_draining_leaves_queued_connections_to_successor, setup),
        fixture_test(worker_draining_without_connections_exits_at_once, setup),
        fixture_test(worker_accepts_when_nobody_pauses_it, setup),
        fixture_test(worker_releasing_memory_closes_connections_without_requests, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
