/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 requests without a body: sequential, pipelined, byte by byte, and rejected requests. */
#include "connection/h1.h"

#include <netinet/in.h>

#include "unit/connection/conn_case.h"

/* Expects the next response, and checks whether it announces the close of the connection. */
static void expect(unsigned status, const char *content, bool closes)
{
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, status);
    if (content)
        assert_str(mk_buf_str(&r.content), content);
    assert_int_equal(r.closes, closes);
    h1_response_fini(&r);
}

static void h1_request_gets_response(void **state)
{
    (void)state;
    conn_open(&t, GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    conn_expect_nothing(&t);
    conn_expect_state(&t, MK_CONN_IDLE);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.statuses[0], 200);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
    assert_int_equal(t.content_sent[0], 6);
    assert_int_equal(t.counters.requests, 1);
    assert_int_equal(t.counters.by_class[2], 1);
    assert_int_equal(t.counters.by_outcome[MK_OUTCOME_OK], 1);
    assert_int_equal(t.counters.sent, t.received.len);
    assert_string_equal(t.counters.line, "GET /early");
}

static void h1_idle_connection_holds_no_memory(void **state)
{
    (void)state;
    conn_open(&t, GET("/early"));
    conn_run(&t);
    assert_null(t.conn->h1);
    assert_null(t.conn->saved);
    assert_true(mk_send_queue_is_empty(&t.conn->out));
    assert_true(t.manager.arenas.n > 0); /* the arena is free for the next request */
}

static void h1_connection_is_reused(void **state)
{
    (void)state;
    conn_open(&t, GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    for (int i = 0; i < 5; i++) {
        conn_send(&t, GET("/nothing"));
        conn_run(&t);
        expect(404, NULL, false);
    }
    assert_int_equal(t.n_records, 6);
    assert_int_equal(t.counters.accepted, 1);
}

/* Connects over TCP; the client has a small receive buffer. */
static void connect_by_tcp(int ends[2])
{
    int small_size = 4096;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &len), 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &small_size, sizeof small_size), 0);
    assert_int_equal(connect(ends[1], (struct sockaddr *)&here, sizeof here), 0);
    ends[0] = accept(listener, NULL, NULL);
    assert_true(ends[0] >= 0);
    close(listener);
}

static void on_record_say_more(const struct mk_access_record *record, void *data)
{
    (void)record;
    conn_send(data, "\r\n");
}

/* Makes the server close the connection although bytes have arrived since its last read; the client must
 * still receive the whole response. */
static void last_answer(const char *request, size_t size)
{
    const struct mk_addr peer = {.is_unix = 1};
    struct h1_response r;
    int ends[2];
    connect_by_tcp(ends);
    t.site.web.on_record = on_record_say_more;
    conn_open_by(&t, &mk_h1_ops, &peer, ends, request);
    conn_run_until_received(&t, size);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.content.len, size);
    assert_true(r.closes);
    h1_response_fini(&r);
}

static void h1_last_response_arrives_despite_further_input(void **state)
{
    (void)state;
    last_answer("GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 6);
}

static void h1_last_response_arrives_despite_full_receive_buffer(void **state)
{
    (void)state;
    last_answer("GET /source?n=30000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 30000);
}

static void h1_requests_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    const char *text = "\r\n" GET("/early") GET("/nothing");
    conn_open(&t, "");
    for (const char *at = text; *at; at++) {
        conn_send_bytes(&t, mk_str_of(at, 1));
        conn_run(&t);
    }
    expect(200, "early\n", false);
    expect(404, NULL, false);
    conn_expect_nothing(&t);
    assert_int_equal(t.n_records, 2);
}

static void h1_pipelined_requests_are_served(void **state)
{
    (void)state;
    enum { N = 3000 };
    char head[128];
    struct mk_buf all = mk_buf_growing(1 << 20);
    for (int i = 0; i < N; i++) {
        int len = snprintf(head, sizeof head, "GET /source?n=%d HTTP/1.1\r\nHost: a\r\n\r\n", i % 50);
        mk_buf_add(&all, mk_str_of(head, (size_t)len));
    }
    t.site.web.on_record = NULL;
    conn_open(&t, "");
    assert_int_equal(fcntl(t.fd, F_SETFL, O_NONBLOCK), 0);
    for (mk_str rest = mk_buf_str(&all); rest.len;) {
        ssize_t n = send(t.fd, rest.p, rest.len, 0);
        rest = mk_str_skip(rest, n > 0 ? (size_t)n : 0);
        conn_run(&t);
    }
    for (int i = 0; i < N; i++) {
        struct h1_response r;
        assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
        assert_int_equal(r.content.len, i % 50);
        h1_response_fini(&r);
    }
    conn_expect_nothing(&t);
    assert_int_equal(t.counters.requests, N);
    mk_buf_free(&all);
}

static void h1_pipelined_responses_keep_order(void **state)
{
    (void)state;
    conn_open(&t, GET("/early") GET("/slow?ms=60") GET("/nothing") GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    conn_expect_nothing(&t);
    conn_expect_state(&t, MK_CONN_DISPATCH);
    conn_run_until_received(&t, 1);
    expect(200, "slow\n", false);
    expect(404, NULL, false);
    expect(200, "early\n", false);
    conn_expect_nothing(&t);
    assert_int_equal(t.n_records, 4);
}

static void h1_thread_may_resume_request(void **state)
{
    (void)state;
    conn_open(&t, GET("/thread") GET("/early"));
    conn_run_until_received(&t, 1);
    expect(200, "thread\n", false);
    expect(200, "early\n", false);
}

static void h1_client_may_disconnect_while_thread_works(void **state)
{
    (void)state;
    conn_open(&t, GET("/thread"));
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_CLIENT_ABORTED);
    conn_run_for(&t, 50); /* the thread finishes after the connection was closed */
}

static void h1_head_response_has_no_body(void **state)
{
    (void)state;
    conn_open(&t, "HEAD /source?n=100 HTTP/1.1\r\nHost: a\r\n\r\n"
                  "HEAD /source?n=100&unknown=1 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/early"));
    conn_run(&t);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, true), H1_RESPONSE_COMPLETE);
    assert_str(h1_response_header(&r, MK_HEADER_CONTENT_LENGTH), "100");
    assert_int_equal(conn_response(&t, &r, true), H1_RESPONSE_COMPLETE);
    assert_str(h1_response_header(&r, MK_HEADER_TRANSFER_ENCODING), "chunked");
    expect(200, "early\n", false);
    assert_int_equal(t.content_sent[0], 0);
}

/* ---- Persistent connections ---- */

static void h1_http10_closes_without_keep_alive(void **state)
{
    (void)state;
    conn_open(&t, "GET /early HTTP/1.0\r\n\r\n" GET("/early"));
    conn_run(&t);
    expect(200, "early\n", true);
    assert_true(t.ended);
    conn_expect_nothing(&t);
    conn_open(&t, "GET /early HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    conn_run(&t);
    struct h1_response r;
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_str(h1_response_header(&r, MK_HEADER_CONNECTION), "keep-alive");
    h1_response_fini(&r);
    assert_false(t.ended);
}

static void h1_connection_close_is_honored(void **state)
{
    (void)state;
    conn_open(&t, "GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/early"));
    conn_run(&t);
    expect(200, "early\n", true);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void h1_keep_alive_off_closes_after_response(void **state)
{
    (void)state;
    t.limits.keep_alive = false;
    conn_open(&t, GET("/early") GET("/early"));
    conn_run(&t);
    expect(200, "early\n", true);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void h1_requests_max_closes_connection(void **state)
{
    (void)state;
    t.limits.requests_max = 3;
    conn_open(&t, GET("/early") GET("/early") GET("/early") GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    expect(200, "early\n", false);
    expect(200, "early\n", true);
    conn_expect_end(&t, 3, 200, MK_OUTCOME_OK);
}

static void h1_draining_service_closes_after_response(void **state)
{
    (void)state;
    conn_open(&t, GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    t.manager.draining = true;
    conn_send(&t, GET("/early") GET("/early"));
    conn_run(&t);
    expect(200, "early\n", true);
    conn_expect_end(&t, 2, 200, MK_OUTCOME_OK);
}

static void h1_lingering_close_discards_input(void **state)
{
    (void)state;
    conn_open(&t, "GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/early"));
    conn_run(&t);
    expect(200, "early\n", true);
    assert_true(t.ended && !t.reset);
    conn_expect_state(&t, MK_CONN_LINGER);
    for (int i = 0; i < 10; i++) {
        conn_send(&t, GET("/early"));
        conn_run_server(&t);
    }
    conn_expect_state(&t, MK_CONN_LINGER);
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.n_records, 1);
}

/* ---- End of input ---- */

static void h1_half_closed_client_gets_responses(void **state)
{
    (void)state;
    conn_open(&t, "");
    conn_send(&t, GET("/early") GET("/slow?ms=30") GET("/early"));
    shutdown(t.fd, SHUT_WR);
    conn_run_until_received(&t, 1000);
    expect(200, "early\n", false);
    expect(200, "slow\n", false);
    expect(200, "early\n", false);
    conn_expect_end(&t, 3, 200, MK_OUTCOME_OK);
    assert_false(t.reset);
}

static void h1_truncated_body_aborts_request(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned status;
    } cases[] = {
        {"POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello", 400},
        {"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhello", 400},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", 400},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        t.n_records = 0;
        conn_open(&t, "");
        conn_send(&t, cases[i].text);
        shutdown(t.fd, SHUT_WR);
        conn_run(&t);
        expect(cases[i].status, NULL, true);
        conn_expect_end(&t, 1, cases[i].status, MK_OUTCOME_CLIENT_ABORTED);
    }
    t.n_records = 0;
    conn_open(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    conn_run(&t); /* the server has sent a part of the response */
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.statuses[0], 200);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_CLIENT_ABORTED);
}

static void h1_complete_requests_before_eof_are_served(void **state)
{
    (void)state;
    static const char *const tails[] = {"\r\n", "GE", "GET / HTTP/1.1\r\nHost"};
    for (size_t i = 0; i < MK_LEN(tails); i++) {
        t.n_records = 0;
        conn_open(&t, GET("/early"));
        conn_run(&t);
        expect(200, "early\n", false);
        conn_send(&t, GET("/nothing"));
        conn_send(&t, tails[i]);
        shutdown(t.fd, SHUT_WR);
        conn_run(&t);
        expect(404, NULL, false);
        conn_expect_end(&t, 3, 0, MK_OUTCOME_CLIENT_ABORTED);
    }
}

static void h1_silent_client_leaves_no_record(void **state)
{
    (void)state;
    conn_open(&t, "");
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    assert_true(t.ended);
    conn_expect_nothing(&t);
    assert_int_equal(t.n_records, 0);
    assert_int_equal(t.manager.n_conns, 0);
}

/* ---- Rejected requests ---- */

static void h1_malformed_request_is_rejected_and_closed(void **state)
{
    (void)state;
    static char long_target[2000], long_field[5000], many_fields[2000];
    snprintf(long_target, sizeof long_target, "GET /%01500d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    snprintf(long_field, sizeof long_field, "GET / HTTP/1.1\r\nHost: a\r\nX: %04500d\r\n\r\n", 1);
    struct mk_buf many = mk_buf_fixed(many_fields, sizeof many_fields - 1);
    mk_buf_add(&many, MK_STR("GET / HTTP/1.1\r\nHost: a\r\n"));
    for (int i = 0; i < 40; i++)
        mk_buf_add(&many, MK_STR("X: y\r\n"));
    mk_buf_add(&many, MK_STR("\r\n"));
    const struct {
        const char *text;
        unsigned status;
    } cases[] = {
        {"hello\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET /../etc HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {long_target, 414},
        {long_field, 431},
        {many_fields, 431},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        t.n_records = 0;
        conn_open(&t, cases[i].text);
        conn_send(&t, GET("/early")); /* the server cannot know where this request begins */
        conn_run(&t);
        expect(cases[i].status, NULL, true);
        conn_expect_end(&t, 1, cases[i].status, MK_OUTCOME_REJECTED);
    }
}

static void h1_rejection_follows_earlier_responses(void **state)
{
    (void)state;
    conn_open(&t, GET("/early") GET("/early") "nonsense\r\n\r\n" GET("/early"));
    conn_run(&t);
    expect(200, "early\n", false);
    expect(200, "early\n", false);
    expect(400, NULL, true);
    conn_expect_end(&t, 3, 400, MK_OUTCOME_REJECTED);
}

static void h1_absolute_target_sets_host(void **state)
{
    (void)state;
    conn_open(&t, "GET http://b/early HTTP/1.1\r\nHost: a\r\n\r\n");
    conn_run(&t);
    expect(200, "early\n", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_request_gets_response, setup),
        fixture_test(h1_idle_connection_holds_no_memory, setup),
        fixture_test(h1_connection_is_reused, setup),
        fixture_test(h1_last_response_arrives_despite_further_input, setup),
        fixture_test(h1_last_response_arrives_despite_full_receive_buffer, setup),
        fixture_test(h1_requests_may_arrive_byte_by_byte, setup),
        fixture_test(h1_pipelined_requests_are_served, setup),
        fixture_test(h1_pipelined_responses_keep_order, setup),
        fixture_test(h1_thread_may_resume_request, setup),
        fixture_test(h1_client_may_disconnect_while_thread_works, setup),
        fixture_test(h1_head_response_has_no_body, setup),
        fixture_test(h1_http10_closes_without_keep_alive, setup),
        fixture_test(h1_connection_close_is_honored, setup),
        fixture_test(h1_keep_alive_off_closes_after_response, setup),
        fixture_test(h1_requests_max_closes_connection, setup),
        fixture_test(h1_draining_service_closes_after_response, setup),
        fixture_test(h1_lingering_close_discards_input, setup),
        fixture_test(h1_half_closed_client_gets_responses, setup),
        fixture_test(h1_truncated_body_aborts_request, setup),
        fixture_test(h1_complete_requests_before_eof_are_served, setup),
        fixture_test(h1_silent_client_leaves_no_record, setup),
        fixture_test(h1_malformed_request_is_rejected_and_closed, setup),
        fixture_test(h1_rejection_follows_earlier_responses, setup),
        fixture_test(h1_absolute_target_sets_host, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
