/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels over HTTP/1.1: two independent directions. */
#include "unit/connection/conn_case.h"

enum { MANY = 3000000, SHORT_MS = 40 };

#define WISH(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"

static void open_tunnel(const char *wish)
{
    conn_open(&t, wish);
    conn_run(&t);
    conn_expect(&t, 101, NULL);
    conn_expect_state(&t, MK_CONN_TUNNEL);
}

static void expect_received(const char *text)
{
    conn_run(&t);
    assert_str(conn_received(&t), text);
    t.read = t.received.len;
}

static void h1_tunnel_echoes_bytes(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel") "behind the head");
    expect_received("behind the head");
    conn_send(&t, "a");
    expect_received("a");
    conn_send(&t, WISH("/early"));
    expect_received(WISH("/early"));
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_OK);
    assert_int_equal(t.content_sent[0], 16 + sizeof WISH("/early") - 1);
    assert_int_equal(t.counters.by_class[1], 1);
}

static void h1_tunnel_server_may_send_first(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel?n=4"));
    expect_received("tttt");
    conn_send(&t, "x");
    expect_received("x");
}

/* A call that only announces space for output must not announce input. */
static void h1_tunnel_output_alone_is_no_input(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel?n=3000000&stops=1000"));
    memset(handlers_input_calls, 0, sizeof handlers_input_calls);
    conn_run(&t);
    assert_true(t.ended);
    t.read = t.received.len;
    assert_int_equal(handlers_input_calls[true], 0);
    conn_send(&t, "more"); /* the handler is notified although it has not read anything yet */
    conn_run_server(&t);
    assert_int_equal(handlers_input_calls[true], 1);
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_OK);
}

/* The response head precedes the tunnel data even if the socket buffer is full. */
static void h1_tunnel_follows_unread_responses(void **state)
{
    (void)state;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, "GET /source?n=20000 HTTP/1.1\r\nHost: a\r\n\r\n" WISH("/tunnel?n=20000"));
    conn_run_server(&t);
    conn_run(&t);
    conn_expect(&t, 200, NULL);
    conn_expect(&t, 101, NULL);
    assert_int_equal(conn_received(&t).len, 20000);
    t.read = t.received.len;
    conn_send(&t, "x");
    expect_received("x");
}

/* After the server has closed its side, it may continue to receive. */
static void h1_tunnel_server_may_half_close(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel?n=3&stops=1000"));
    expect_received("ttt");
    assert_true(t.ended);
    conn_send(&t, "more");
    conn_run_server(&t);
    conn_expect_state(&t, MK_CONN_TUNNEL);
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_OK);
    assert_int_equal(t.manager.n_conns, 0);
}

static void h1_tunnel_unread_input_is_discarded(void **state)
{
    (void)state;
    static char large_input[100000];
    open_tunnel(WISH("/tunnel?n=3&stops=5"));
    expect_received("ttt");
    conn_send(&t, "12345");
    conn_run_server(&t);
    conn_expect_state(&t, MK_CONN_LINGER);
    assert_int_equal(t.n_records, 1);
    conn_send_bytes(
        &t, mk_str_of(large_input, sizeof large_input)); /* the server does not reset the connection */
    conn_run_server(&t);
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_OK);
}

/* The server keeps receiving from a client that does not read. */
static void h1_tunnel_directions_are_independent(void **state)
{
    (void)state;
    static char piece[10000];
    open_tunnel(WISH("/tunnel?n=3000000&stops=1000000000"));
    t.read = t.received.len;
    for (int i = 0; i < 100; i++) {
        conn_send_bytes(&t, mk_str_of(piece, sizeof piece)); /* blocks forever if the server does not read */
        conn_run_server(&t);
    }
    conn_run(&t);
    assert_true(t.ended);
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_OK);
    assert_int_equal(t.content_sent[0], MANY);
}

/* While the output buffer of the tunnel is full, the server does not read from the client. */
static void h1_tunnel_client_not_reading_is_not_read(void **state)
{
    (void)state;
    char piece[4096];
    memset(piece, 'p', sizeof piece);
    open_tunnel(WISH("/tunnel"));
    conn_set_send_buffer(&t, 1);
    size_t sent = 0;
    for (int quiet = 0; quiet < 10 && sent < MANY;) {
        ssize_t n = send(t.fd, piece, sizeof piece, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        quiet = n > 0 ? 0 : quiet + 1;
        conn_run_server(&t);
    }
    assert_true(sent < MANY / 2);
    size_t before = t.received.len;
    conn_run(&t);
    assert_int_equal(t.received.len - before, sent);
}

static void h1_tunnel_failure_closes_connection(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel?fails=3"));
    conn_send(&t, "abc");
    conn_run(&t);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_FAILED);
    assert_int_equal(t.manager.n_conns, 0);
}

static void h1_tunnel_client_disconnect_closes_tunnel(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel?n=3000000"));
    mk_fd_close(&t.fd);
    for (int i = 0; i < 10 && !t.n_records; i++)
        conn_run_server(&t);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.manager.n_conns, 0);
}

/* ---- Timeouts ---- */

static void h1_tunnel_uses_only_tunnel_timeout(void **state)
{
    (void)state;
    t.limits.request.handler_ms = t.limits.request.rate_ms = t.limits.idle_ms = t.limits.head_ms = SHORT_MS;
    t.limits.request.rate_bytes = 1 << 20;
    t.limits.request.content_max = t.limits.request_max = 1;
    conn_open(&t, WISH("/tunnel"));
    conn_run_for(&t, SHORT_MS * 5);
    /* The request itself exceeds request_max. */
    conn_expect(&t, 413, NULL);
    t.limits.request_max = 0;
    open_tunnel(WISH("/tunnel"));
    conn_run_for(&t, SHORT_MS * 5);
    conn_send(&t, "x");
    expect_received("x");
}

static void h1_tunnel_idle_times_out(void **state)
{
    (void)state;
    t.limits.request.tunnel_ms = SHORT_MS;
    open_tunnel(WISH("/tunnel"));
    conn_run_for(&t, SHORT_MS * 3);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_TIMEOUT);
}

static void h1_tunnel_each_byte_restarts_timeout(void **state)
{
    (void)state;
    t.limits.request.tunnel_ms = SHORT_MS * 2;
    open_tunnel(WISH("/tunnel"));
    for (int i = 0; i < 8; i++) {
        conn_send(&t, "x");
        conn_run_for(&t, SHORT_MS);
        assert_false(t.ended || t.reset);
    }
    assert_int_equal(conn_received(&t).len, 8);
    t.read = t.received.len;
    conn_run_for(&t, SHORT_MS * 6);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_TIMEOUT);
}

static void h1_tunnel_zero_timeout_is_unlimited(void **state)
{
    (void)state;
    t.limits.request.tunnel_ms = 0;
    open_tunnel(WISH("/tunnel"));
    conn_run_for(&t, SHORT_MS);
    conn_send(&t, "x");
    expect_received("x");
}

static void h1_tunnel_client_not_reading_times_out(void **state)
{
    (void)state;
    t.limits.request.tunnel_ms = SHORT_MS;
    open_tunnel(WISH("/tunnel"));
    conn_set_send_buffer(&t, 1);
    static char piece[200000];
    conn_send_bytes(&t, mk_str_of(piece, 50000));
    uint64_t until = mk_clock_ms() + 5000;
    while (!t.n_records && mk_clock_ms() < until)
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_TIMEOUT);
}

static void h1_tunnel_closes_when_server_stops(void **state)
{
    (void)state;
    open_tunnel(WISH("/tunnel"));
    mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
    conn_run(&t);
    conn_expect_end(&t, 1, 101, MK_OUTCOME_SHUTDOWN);
}

/* ---- Rejected upgrades ---- */

static void h1_tunnel_wrong_websocket_version_gets_426(void **state)
{
    (void)state;
    conn_open(&t, "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 9\r\n\r\n");
    conn_run(&t);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 426);
    assert_str(h1_response_header(&r, MK_HEADER_UPGRADE), "websocket");
    assert_str(h1_response_header(&r, MK_HEADER_SEC_WEBSOCKET_VERSION), "13");
    assert_str(h1_response_header(&r, MK_HEADER_CONNECTION), "upgrade");
    h1_response_fini(&r);
    conn_expect_state(&t, MK_CONN_IDLE);
}

static void h1_tunnel_needs_upgrade(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "GET /tunnel HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        "GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\na",
        "GET /tunnel HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
    };
    for (size_t i = 0; i < MK_LEN(heads); i++) {
        conn_open(&t, heads[i]);
        conn_run(&t);
        conn_expect(&t, 404, NULL);
    }
    conn_open(&t, "POST /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n"
                  "Content-Length: 0\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 405, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_tunnel_echoes_bytes, setup),
        fixture_test(h1_tunnel_server_may_send_first, setup),
        fixture_test(h1_tunnel_output_alone_is_no_input, setup),
        fixture_test(h1_tunnel_follows_unread_responses, setup),
        fixture_test(h1_tunnel_server_may_half_close, setup),
        fixture_test(h1_tunnel_unread_input_is_discarded, setup),
        fixture_test(h1_tunnel_directions_are_independent, setup),
        fixture_test(h1_tunnel_client_not_reading_is_not_read, setup),
        fixture_test(h1_tunnel_failure_closes_connection, setup),
        fixture_test(h1_tunnel_client_disconnect_closes_tunnel, setup),
        fixture_test(h1_tunnel_uses_only_tunnel_timeout, setup),
        fixture_test(h1_tunnel_idle_times_out, setup),
        fixture_test(h1_tunnel_each_byte_restarts_timeout, setup),
        fixture_test(h1_tunnel_zero_timeout_is_unlimited, setup),
        fixture_test(h1_tunnel_client_not_reading_times_out, setup),
        fixture_test(h1_tunnel_closes_when_server_stops, setup),
        fixture_test(h1_tunnel_wrong_websocket_version_gets_426, setup),
        fixture_test(h1_tunnel_needs_upgrade, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
