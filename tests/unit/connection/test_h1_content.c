/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 request bodies: read on demand, limited, and discarded if the handler does not read them. */
#include "unit/connection/conn_case.h"

enum { WINDOW = 64 * 1024 };

#define GET_EARLY "GET /early HTTP/1.1\r\nHost: a\r\n\r\n"

/* Returns the response of `sink` to n bytes of 'x'. */
static const char *sum_of(size_t n, char buffer[64])
{
    struct handlers_sum s = {0};
    for (size_t i = 0; i < n; i++)
        handlers_add(&s, "x", 1);
    snprintf(buffer, 64, "%llu %llu\n", (unsigned long long)s.n, (unsigned long long)s.sum);
    return buffer;
}

/* Sends the text n times, then the rest. */
static void send_repeated(const char *text, size_t n, const char *rest)
{
    struct mk_buf all = mk_buf_growing(1 << 26);
    for (size_t i = 0; i < n; i++)
        mk_buf_add(&all, mk_str_from_c(text));
    mk_buf_add(&all, mk_str_from_c(rest));
    assert_false(all.failed);
    for (mk_str left = mk_buf_str(&all); left.len;) {
        ssize_t sent = send(t.fd, left.p, left.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        left = mk_str_skip(left, sent > 0 ? (size_t)sent : 0);
        conn_run(&t);
        if (t.ended || t.reset)
            break;
    }
    mk_buf_free(&all);
}

#define TEN      "xxxxxxxxxx"
#define HUNDRED  TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define THOUSAND HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED

static void open_post(const char *target, const char *fields)
{
    char head[512];
    snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n", target, fields);
    conn_open(&t, head);
    conn_run(&t);
}

/* ---- Reading ---- */

static void h1_body_with_content_length_is_read(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, WINDOW - 1, WINDOW, WINDOW + 1, 300000};
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        char buffer[64], fields[64];
        snprintf(fields, sizeof fields, "Content-Length: %zu\r\n", sizes[i]);
        open_post("/sink", fields);
        conn_expect_nothing(&t);
        send_repeated("x", sizes[i], GET_EARLY);
        conn_expect(&t, 200, sum_of(sizes[i], buffer));
        conn_expect(&t, 200, "early\n");
        conn_expect_nothing(&t);
    }
}

static void h1_body_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    char buffer[64];
    open_post("/sink", "Content-Length: 5\r\n");
    for (const char *at = "xxxxx" GET_EARLY; *at; at++) {
        conn_send_bytes(&t, mk_str_of(at, 1));
        conn_run(&t);
    }
    conn_expect(&t, 200, sum_of(5, buffer));
    conn_expect(&t, 200, "early\n");
}

static void h1_body_may_be_chunked(void **state)
{
    (void)state;
    char buffer[64];
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "5\r\nxxxxx\r\n3;name=\"a value\"\r\nxxx\r\n0\r\nX-Trailer: x\r\n\r\n" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, sum_of(8, buffer));
    conn_expect(&t, 200, "early\n");
}

static void h1_body_chunks_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    char buffer[64];
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    for (const char *at = "5\r\nxxxxx\r\n3;e\r\nxxx\r\n0\r\nX-Trailer: x\r\n\r\n" GET_EARLY; *at; at++) {
        conn_send_bytes(&t, mk_str_of(at, 1));
        conn_run(&t);
    }
    conn_expect(&t, 200, sum_of(8, buffer));
    conn_expect(&t, 200, "early\n");
}

static void h1_body_many_small_chunks_and_a_large_one(void **state)
{
    (void)state;
    char buffer[64];
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    send_repeated("1\r\nx\r\n", 50000, "0\r\n\r\n" GET_EARLY);
    conn_expect(&t, 200, sum_of(50000, buffer));
    conn_expect(&t, 200, "early\n");
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "493e0\r\n");
    send_repeated("x", 300000, "\r\n0\r\n\r\n" GET_EARLY);
    conn_expect(&t, 200, sum_of(300000, buffer));
    conn_expect(&t, 200, "early\n");
}

static void h1_body_may_arrive_with_head(void **state)
{
    (void)state;
    char buffer[64];
    conn_open(
        &t,
        "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxx"
        "POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, sum_of(2, buffer));
    conn_expect(&t, 200, sum_of(1, buffer));
    conn_expect(&t, 200, "early\n");
}

static void h1_body_is_echoed_as_it_arrives(void **state)
{
    (void)state;
    open_post("/echo", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "3\r\none\r\n");
    conn_run(&t);
    /* the response begins before the whole body has arrived */
    assert_non_null(memmem(conn_received(&t).p, conn_received(&t).len, "one", 3));
    conn_send(&t, "3\r\ntwo\r\n0\r\n\r\n" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, "onetwo");
    conn_expect(&t, 200, "early\n");
}

/* ---- 100 Continue ---- */

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

static bool received_continue(void)
{
    return mk_str_starts(conn_received(&t), MK_STR(CONTINUE));
}

static void h1_body_read_sends_100_continue(void **state)
{
    (void)state;
    char buffer[64];
    static const char *const targets[] = {"/sink", "/echo"};
    for (size_t i = 0; i < MK_LEN(targets); i++) {
        open_post(targets[i], "Content-Length: 3\r\nExpect: 100-continue\r\n");
        assert_true(received_continue());
        conn_send(&t, "xxx" GET_EARLY);
        conn_run(&t);
        conn_expect(&t, 200, i ? "xxx" : sum_of(3, buffer));
        conn_expect(&t, 200, "early\n");
    }
}

static void h1_body_unread_sends_no_100_continue(void **state)
{
    (void)state;
    struct h1_response r;
    open_post("/early", "Content-Length: 3\r\nExpect: 100-continue\r\n");
    assert_false(received_continue());
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.status, 200);
    assert_true(r.closes); /* the connection closes, because the client may or may not send the body */
    h1_response_fini(&r);
    open_post("/nothing", "Content-Length: 3\r\nExpect: 100-continue\r\n");
    assert_false(received_continue());
    conn_expect(&t, 405, NULL);
    open_post("/sink", "Content-Length: 99999999\r\nExpect: 100-continue\r\n");
    assert_false(received_continue());
    conn_expect(&t, 413, NULL);
}

static void h1_body_sent_early_gets_no_100_continue(void **state)
{
    (void)state;
    char buffer[64];
    conn_open(&t, "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nxxx");
    conn_run(&t);
    assert_false(received_continue());
    conn_expect(&t, 200, sum_of(3, buffer));
}

static void h1_body_100_continue_follows_earlier_response(void **state)
{
    (void)state;
    conn_open(&t, GET_EARLY
              "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    assert_true(received_continue());
    conn_send(&t, "xxx");
    conn_run(&t);
    conn_expect(&t, 200, "xxx");
}

/* ---- Limits and errors ---- */

static void h1_body_over_limit_gets_413(void **state)
{
    (void)state;
    t.limits.request.content_max = 1000;
    open_post("/sink", "Content-Length: 1001\r\n");
    conn_expect(&t, 413, NULL);
    conn_expect_end(&t, 1, 413, MK_OUTCOME_REJECTED);
    t.n_records = 0;
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    send_repeated(
        "64\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxx"
        "\r\n",
        11, "0\r\n\r\n");
    conn_expect(&t, 413, NULL);
    conn_expect_end(&t, 1, 413, MK_OUTCOME_OK);
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "ffffffffffffffff0\r\n");
    conn_run(&t);
    conn_expect(&t, 413, NULL);
    char buffer[64], fields[] = "Content-Length: 1000\r\n";
    open_post("/sink", fields);
    send_repeated("x", 1000, "");
    conn_expect(&t, 200, sum_of(1000, buffer));
}

static void h1_body_request_max_counts_head_and_body(void **state)
{
    (void)state;
    const char *head = "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    t.limits.request_max = strlen(head) + 5;
    conn_open(&t, head);
    conn_send(&t, "xxxxx");
    conn_run(&t);
    conn_expect(&t, 200, NULL);
    t.limits.request_max--;
    conn_open(&t, head);
    conn_run(&t);
    conn_expect(&t, 413, NULL);
    t.limits.request_max = 1;
    conn_open(&t, GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 413, NULL); /* even a head alone may exceed the limit */
}

static void h1_body_length_beyond_int64_gets_413(void **state)
{
    (void)state;
    t.limits.request.content_max = UINT64_MAX;
    open_post("/never", "Content-Length: 9223372036854775808\r\n");
    conn_expect(&t, 413, NULL);
    open_post("/never", "Content-Length: 18446744073709551615\r\n");
    conn_expect(&t, 413, NULL);
    open_post("/never", "Content-Length: 9223372036854775807\r\n");
    conn_expect_nothing(&t);
}

static void h1_body_malformed_chunks_get_400(void **state)
{
    (void)state;
    static const char *const bad[] = {"x\r\n",  "3\r\nxxxx\r\n", "3\nxxx\r\n",
                                      "-1\r\n", "3 \r\nxxx\r\n", "3\r\nxxx\r\n0\r\nbad trailer\r\n\r\n"};
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        t.n_records = 0;
        open_post("/sink", "Transfer-Encoding: chunked\r\n");
        conn_send(&t, "2\r\nxx\r\n");
        conn_run(&t);
        conn_send(&t, bad[i]);
        conn_send(&t, GET_EARLY);
        conn_run(&t);
        conn_expect(&t, 400, NULL);
        conn_expect_end(&t, 1, 400, MK_OUTCOME_OK);
    }
}

static void h1_body_echo_of_malformed_chunks_is_truncated(void **state)
{
    (void)state;
    struct h1_response r;
    open_post("/echo", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "2\r\nxx\r\n");
    conn_run(&t);
    conn_send(&t, "nonsense\r\n");
    conn_run(&t);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_PARTIAL);
    assert_str(mk_buf_str(&r.content), "xx");
    h1_response_fini(&r);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_FAILED);
}

static void h1_body_truncated_gets_400(void **state)
{
    (void)state;
    open_post("/sink", "Content-Length: 10\r\n");
    conn_send(&t, "xxx");
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    conn_expect(&t, 400, NULL);
    conn_expect_end(&t, 1, 400, MK_OUTCOME_CLIENT_ABORTED);
    t.n_records = 0;
    open_post("/sink", "Transfer-Encoding: chunked\r\n");
    conn_send(&t, "5\r\nxx");
    mk_fd_close(&t.fd);
    conn_run_server(&t);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.manager.n_conns, 0);
}

/* ---- Unread bodies ---- */

static void h1_body_small_unread_rest_is_drained(void **state)
{
    (void)state;
    open_post("/early", "Content-Length: 1000\r\n");
    conn_expect(&t, 200, "early\n");
    conn_expect_state(&t, MK_CONN_DRAIN);
    assert_int_equal(t.n_records, 1); /* the request completes with the response */
    send_repeated("x", 999, "");
    conn_expect_state(&t, MK_CONN_DRAIN);
    conn_send(&t, "x" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    open_post("/early", "Transfer-Encoding: chunked\r\n");
    conn_expect(&t, 200, "early\n");
    send_repeated("3\r\nxxx\r\n", 1000, "0\r\n\r\n" GET_EARLY);
    conn_expect(&t, 200, "early\n");
}

static void h1_body_large_unread_rest_closes_connection(void **state)
{
    (void)state;
    struct h1_response r;
    open_post("/early", "Content-Length: 70000\r\n");
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_true(r.closes);
    h1_response_fini(&r);
    conn_expect_state(&t, MK_CONN_LINGER);
    send_repeated("x", 70000, GET_EARLY);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
    open_post("/early", "Transfer-Encoding: chunked\r\n");
    conn_expect(&t, 200, "early\n");
    send_repeated("3e8\r\n" THOUSAND "\r\n", 1000, "0\r\n\r\n" GET_EARLY);
    conn_expect(&t, 200, "early\n");
    open_post("/early", "Transfer-Encoding: chunked\r\n");
    conn_expect(&t, 200, "early\n");
    send_repeated("3e8\r\n" THOUSAND "\r\n", 1100, "0\r\n\r\n" GET_EARLY);
    assert_true(t.ended || t.reset); /* only now has the unread rest turned out to be too large */
    conn_expect_nothing(&t);
}

static void h1_body_partly_read_is_drained(void **state)
{
    (void)state;
    open_post("/sip?n=100000", "Transfer-Encoding: chunked\r\n");
    send_repeated("a\r\nxxxxxxxxxx\r\n", 10100, "0\r\n\r\n" GET_EARLY);
    conn_expect(&t, 200, "sip\n");
    conn_expect(&t, 200, "early\n");
}

static void h1_body_read_by_source_is_not_drained(void **state)
{
    (void)state;
    open_post("/echo", "Content-Length: 100000\r\n");
    send_repeated("x", 100000, GET_EARLY);
    conn_expect(&t, 200, NULL);
    conn_expect(&t, 200, "early\n");
    conn_open(&t, "GET /source?n=10 HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 200, NULL);
    conn_expect_state(&t, MK_CONN_LINGER); /* the handler did not read the body */
    conn_open(&t, "GET /source?n=10 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, NULL);
    conn_expect(&t, 200, "early\n");
}

static void h1_body_malformed_while_draining_closes_connection(void **state)
{
    (void)state;
    open_post("/early", "Transfer-Encoding: chunked\r\n");
    conn_expect(&t, 200, "early\n");
    conn_send(&t, "nonsense\r\n" GET_EARLY);
    conn_run(&t);
    conn_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void h1_body_of_get_is_accepted(void **state)
{
    (void)state;
    conn_open(&t, "GET /early HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxxx" GET_EARLY);
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect(&t, 200, "early\n");
    conn_expect_nothing(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_body_with_content_length_is_read, setup),
        fixture_test(h1_body_may_arrive_byte_by_byte, setup),
        fixture_test(h1_body_may_be_chunked, setup),
        fixture_test(h1_body_chunks_may_arrive_byte_by_byte, setup),
        fixture_test(h1_body_many_small_chunks_and_a_large_one, setup),
        fixture_test(h1_body_may_arrive_with_head, setup),
        fixture_test(h1_body_is_echoed_as_it_arrives, setup),
        fixture_test(h1_body_read_sends_100_continue, setup),
        fixture_test(h1_body_unread_sends_no_100_continue, setup),
        fixture_test(h1_body_sent_early_gets_no_100_continue, setup),
        fixture_test(h1_body_100_continue_follows_earlier_response, setup),
        fixture_test(h1_body_over_limit_gets_413, setup),
        fixture_test(h1_body_request_max_counts_head_and_body, setup),
        fixture_test(h1_body_length_beyond_int64_gets_413, setup),
        fixture_test(h1_body_malformed_chunks_get_400, setup),
        fixture_test(h1_body_echo_of_malformed_chunks_is_truncated, setup),
        fixture_test(h1_body_truncated_gets_400, setup),
        fixture_test(h1_body_small_unread_rest_is_drained, setup),
        fixture_test(h1_body_large_unread_rest_closes_connection, setup),
        fixture_test(h1_body_partly_read_is_drained, setup),
        fixture_test(h1_body_read_by_source_is_not_drained, setup),
        fixture_test(h1_body_malformed_while_draining_closes_connection, setup),
        fixture_test(h1_body_of_get_is_accepted, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
