/* SPDX-License-Identifier: Apache-2.0 */
/* Requests without content: one after the other, all at once, byte by byte, and those that are refused. */
#include "proto/h1.h"

#include <netinet/in.h>

#include "unit/proto/talk_case.h"

/* The next reply, and whether it says that the connection is closed behind it. */
static void expect(unsigned status, const char *content, bool closes)
{
    struct reply r;
    assert_int_equal(talk_reply(&t, &r, false), REPLY_WHOLE);
    assert_int_equal(r.status, status);
    if (content)
        assert_str(mk_buf_str(&r.content), content);
    assert_int_equal(r.closes, closes);
    reply_fini(&r);
}

static void a_request_is_answered(void **state)
{
    (void)state;
    talk_open(&t, GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    talk_expect_nothing(&t);
    talk_expect_state(&t, MK_CONN_IDLE);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.statuses[0], 200);
    assert_int_equal(t.endings[0], MK_OUTCOME_OK);
    assert_int_equal(t.content_sent[0], 6);
    assert_int_equal(t.counters.requests, 1);
    assert_int_equal(t.counters.by_class[2], 1);
    assert_int_equal(t.counters.by_ending[MK_OUTCOME_OK], 1);
    assert_int_equal(t.counters.sent, t.heard.len);
    assert_string_equal(t.counters.line, "GET /early");
}

static void an_idle_connection_owns_nothing(void **state)
{
    (void)state;
    talk_open(&t, GET("/early"));
    talk_on(&t);
    assert_null(t.conn->h1);
    assert_null(t.conn->saved);
    assert_true(mk_send_queue_is_empty(&t.conn->out));
    assert_true(t.service.arenas.n > 0); /* its arena is the next one's */
}

static void another_may_follow(void **state)
{
    (void)state;
    talk_open(&t, GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    for (int i = 0; i < 5; i++) {
        talk_say(&t, GET("/nothing"));
        talk_on(&t);
        expect(404, NULL, false);
    }
    assert_int_equal(t.n_records, 6);
    assert_int_equal(t.counters.accepted, 1);
}

/* The client takes little at once. */
static void connect_by_tcp(int ends[2])
{
    int little = 4096;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &len), 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    assert_int_equal(connect(ends[1], (struct sockaddr *)&here, sizeof here), 0);
    ends[0] = accept(listener, NULL, NULL);
    assert_true(ends[0] >= 0);
    close(listener);
}

static void on_record_say_more(const struct mk_access_record *record, void *data)
{
    (void)record;
    talk_say(data, "\r\n");
}

/* The connection ends with unread bytes that came after the last read. */
static void last_answer(const char *request, size_t size)
{
    const struct mk_addr peer = {.is_unix = 1};
    struct reply r;
    int ends[2];
    connect_by_tcp(ends);
    t.site.web.on_record = on_record_say_more;
    talk_open_by(&t, &mk_h1_ops, &peer, ends, request);
    talk_wait(&t, size);
    assert_int_equal(talk_reply(&t, &r, false), REPLY_WHOLE);
    assert_int_equal(r.content.len, size);
    assert_true(r.closes);
    reply_fini(&r);
}

static void the_last_answer_arrives_whatever_comes_behind_its_request(void **state)
{
    (void)state;
    last_answer("GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 6);
}

static void so_does_one_that_the_peer_has_no_room_for(void **state)
{
    (void)state;
    last_answer("GET /source?n=30000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 30000);
}

static void every_byte_may_come_alone(void **state)
{
    (void)state;
    const char *text = "\r\n" GET("/early") GET("/nothing");
    talk_open(&t, "");
    for (const char *at = text; *at; at++) {
        talk_say_bytes(&t, mk_str_of(at, 1));
        talk_on(&t);
    }
    expect(200, "early\n", false);
    expect(404, NULL, false);
    talk_expect_nothing(&t);
    assert_int_equal(t.n_records, 2);
}

static void many_may_come_at_once(void **state)
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
    talk_open(&t, "");
    assert_int_equal(fcntl(t.fd, F_SETFL, O_NONBLOCK), 0);
    for (mk_str rest = mk_buf_str(&all); rest.len;) {
        ssize_t n = send(t.fd, rest.p, rest.len, 0);
        rest = mk_str_skip(rest, n > 0 ? (size_t)n : 0);
        talk_on(&t);
    }
    for (int i = 0; i < N; i++) {
        struct reply r;
        assert_int_equal(talk_reply(&t, &r, false), REPLY_WHOLE);
        assert_int_equal(r.content.len, i % 50);
        reply_fini(&r);
    }
    talk_expect_nothing(&t);
    assert_int_equal(t.counters.requests, N);
    mk_buf_free(&all);
}

static void they_are_answered_in_order_though_one_waits(void **state)
{
    (void)state;
    talk_open(&t, GET("/early") GET("/slow?ms=60") GET("/nothing") GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    talk_expect_nothing(&t);
    talk_expect_state(&t, MK_CONN_FLOW);
    talk_wait(&t, 1);
    expect(200, "slow\n", false);
    expect(404, NULL, false);
    expect(200, "early\n", false);
    talk_expect_nothing(&t);
    assert_int_equal(t.n_records, 4);
}

static void another_thread_may_resume(void **state)
{
    (void)state;
    talk_open(&t, GET("/thread") GET("/early"));
    talk_wait(&t, 1);
    expect(200, "thread\n", false);
    expect(200, "early\n", false);
}

static void a_client_may_leave_while_a_thread_works(void **state)
{
    (void)state;
    talk_open(&t, GET("/thread"));
    mk_fd_close(&t.fd);
    talk_work(&t);
    assert_int_equal(t.service.n_conns, 0);
    assert_int_equal(t.endings[0], MK_OUTCOME_CLIENT_ABORTED);
    talk_pass(&t, 50); /* the thread returns to a closed connection */
}

static void head_has_no_content(void **state)
{
    (void)state;
    talk_open(&t, "HEAD /source?n=100 HTTP/1.1\r\nHost: a\r\n\r\n"
                  "HEAD /source?n=100&unknown=1 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/early"));
    talk_on(&t);
    struct reply r;
    assert_int_equal(talk_reply(&t, &r, true), REPLY_WHOLE);
    assert_str(reply_field(&r, MK_HEADER_CONTENT_LENGTH), "100");
    assert_int_equal(talk_reply(&t, &r, true), REPLY_WHOLE);
    assert_str(reply_field(&r, MK_HEADER_TRANSFER_ENCODING), "chunked");
    expect(200, "early\n", false);
    assert_int_equal(t.content_sent[0], 0);
}

/* ---- How connections go on, or not ---- */

static void the_old_version_closes_unless_asked(void **state)
{
    (void)state;
    talk_open(&t, "GET /early HTTP/1.0\r\n\r\n" GET("/early"));
    talk_on(&t);
    expect(200, "early\n", true);
    assert_true(t.ended);
    talk_expect_nothing(&t);
    talk_open(&t, "GET /early HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    talk_on(&t);
    struct reply r;
    assert_int_equal(talk_reply(&t, &r, false), REPLY_WHOLE);
    assert_str(reply_field(&r, MK_HEADER_CONNECTION), "keep-alive");
    reply_fini(&r);
    assert_false(t.ended);
}

static void a_client_may_ask_for_the_end(void **state)
{
    (void)state;
    talk_open(&t, "GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/early"));
    talk_on(&t);
    expect(200, "early\n", true);
    talk_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void connections_may_be_for_one_request(void **state)
{
    (void)state;
    t.limits.keep_alive = false;
    talk_open(&t, GET("/early") GET("/early"));
    talk_on(&t);
    expect(200, "early\n", true);
    talk_expect_end(&t, 1, 200, MK_OUTCOME_OK);
}

static void requests_on_a_connection_may_be_limited(void **state)
{
    (void)state;
    t.limits.requests_max = 3;
    talk_open(&t, GET("/early") GET("/early") GET("/early") GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    expect(200, "early\n", false);
    expect(200, "early\n", true);
    talk_expect_end(&t, 3, 200, MK_OUTCOME_OK);
}

static void a_service_that_drains_answers_once_more(void **state)
{
    (void)state;
    talk_open(&t, GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    t.service.draining = true;
    talk_say(&t, GET("/early") GET("/early"));
    talk_on(&t);
    expect(200, "early\n", true);
    talk_expect_end(&t, 2, 200, MK_OUTCOME_OK);
}

static void what_a_client_still_says_is_listened_to(void **state)
{
    (void)state;
    talk_open(&t, "GET /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/early"));
    talk_on(&t);
    expect(200, "early\n", true);
    assert_true(t.ended && !t.reset);
    talk_expect_state(&t, MK_CONN_LINGER);
    for (int i = 0; i < 10; i++) {
        talk_say(&t, GET("/early"));
        talk_work(&t);
    }
    talk_expect_state(&t, MK_CONN_LINGER);
    mk_fd_close(&t.fd);
    talk_work(&t);
    assert_int_equal(t.service.n_conns, 0);
    assert_int_equal(t.n_records, 1);
}

/* ---- Ends of input ---- */

static void a_half_closed_client_is_answered(void **state)
{
    (void)state;
    talk_open(&t, "");
    talk_say(&t, GET("/early") GET("/slow?ms=30") GET("/early"));
    shutdown(t.fd, SHUT_WR);
    talk_wait(&t, 1000);
    expect(200, "early\n", false);
    expect(200, "slow\n", false);
    expect(200, "early\n", false);
    talk_expect_end(&t, 3, 200, MK_OUTCOME_OK);
    assert_false(t.reset);
}

static void a_client_that_stops_in_its_content_has_aborted_the_request(void **state)
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
        talk_open(&t, "");
        talk_say(&t, cases[i].text);
        shutdown(t.fd, SHUT_WR);
        talk_on(&t);
        expect(cases[i].status, NULL, true);
        talk_expect_end(&t, 1, cases[i].status, MK_OUTCOME_CLIENT_ABORTED);
    }
    t.n_records = 0;
    talk_open(&t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    talk_on(&t); /* a part of the answer is on its way */
    shutdown(t.fd, SHUT_WR);
    talk_on(&t);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.statuses[0], 200);
    assert_int_equal(t.endings[0], MK_OUTCOME_CLIENT_ABORTED);
}

static void requests_before_the_end_of_input_are_answered(void **state)
{
    (void)state;
    static const char *const tails[] = {"\r\n", "GE", "GET / HTTP/1.1\r\nHost"};
    for (size_t i = 0; i < MK_LEN(tails); i++) {
        t.n_records = 0;
        talk_open(&t, GET("/early"));
        talk_on(&t);
        expect(200, "early\n", false);
        talk_say(&t, GET("/nothing"));
        talk_say(&t, tails[i]);
        shutdown(t.fd, SHUT_WR);
        talk_on(&t);
        expect(404, NULL, false);
        talk_expect_end(&t, 3, 0, MK_OUTCOME_CLIENT_ABORTED);
    }
}

static void a_silent_client_leaves_no_record(void **state)
{
    (void)state;
    talk_open(&t, "");
    shutdown(t.fd, SHUT_WR);
    talk_on(&t);
    assert_true(t.ended);
    talk_expect_nothing(&t);
    assert_int_equal(t.n_records, 0);
    assert_int_equal(t.service.n_conns, 0);
}

/* ---- Refusals ---- */

static void what_is_no_request_is_refused_and_closed(void **state)
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
        talk_open(&t, cases[i].text);
        talk_say(&t, GET("/early")); /* where it begins is unknown */
        talk_on(&t);
        expect(cases[i].status, NULL, true);
        talk_expect_end(&t, 1, cases[i].status, MK_OUTCOME_REJECTED);
    }
}

static void a_refusal_comes_behind_what_was_fine(void **state)
{
    (void)state;
    talk_open(&t, GET("/early") GET("/early") "nonsense\r\n\r\n" GET("/early"));
    talk_on(&t);
    expect(200, "early\n", false);
    expect(200, "early\n", false);
    expect(400, NULL, true);
    talk_expect_end(&t, 3, 400, MK_OUTCOME_REJECTED);
}

static void a_target_that_is_absolute_names_the_host(void **state)
{
    (void)state;
    talk_open(&t, "GET http://b/early HTTP/1.1\r\nHost: a\r\n\r\n");
    talk_on(&t);
    expect(200, "early\n", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_is_answered, start, harness_stop),
        cmocka_unit_test_setup_teardown(an_idle_connection_owns_nothing, start, harness_stop),
        cmocka_unit_test_setup_teardown(another_may_follow, start, harness_stop),
        cmocka_unit_test_setup_teardown(the_last_answer_arrives_whatever_comes_behind_its_request, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(so_does_one_that_the_peer_has_no_room_for, start, harness_stop),
        cmocka_unit_test_setup_teardown(every_byte_may_come_alone, start, harness_stop),
        cmocka_unit_test_setup_teardown(many_may_come_at_once, start, harness_stop),
        cmocka_unit_test_setup_teardown(they_are_answered_in_order_though_one_waits, start, harness_stop),
        cmocka_unit_test_setup_teardown(another_thread_may_resume, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_client_may_leave_while_a_thread_works, start, harness_stop),
        cmocka_unit_test_setup_teardown(head_has_no_content, start, harness_stop),
        cmocka_unit_test_setup_teardown(the_old_version_closes_unless_asked, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_client_may_ask_for_the_end, start, harness_stop),
        cmocka_unit_test_setup_teardown(connections_may_be_for_one_request, start, harness_stop),
        cmocka_unit_test_setup_teardown(requests_on_a_connection_may_be_limited, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_service_that_drains_answers_once_more, start, harness_stop),
        cmocka_unit_test_setup_teardown(what_a_client_still_says_is_listened_to, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_half_closed_client_is_answered, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_client_that_stops_in_its_content_has_aborted_the_request, start,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(requests_before_the_end_of_input_are_answered, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_silent_client_leaves_no_record, start, harness_stop),
        cmocka_unit_test_setup_teardown(what_is_no_request_is_refused_and_closed, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_refusal_comes_behind_what_was_fine, start, harness_stop),
        cmocka_unit_test_setup_teardown(a_target_that_is_absolute_names_the_host, start, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
