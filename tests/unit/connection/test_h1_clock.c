/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 timeouts, and the fate of requests when their client disconnects or the server exits. */
#include "unit/connection/conn_case.h"
#include "unit/wrap_clock.h"

enum { SHORT_MS = 60 };

#define POST(target) "POST " target " HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"

/* ---- Timeouts ---- */

static void h1_clock_new_connection_must_send_request(void **state)
{
    (void)state;
    t.limits.head_ms = SHORT_MS;
    conn_open(&t, "");
    conn_run_for(&t, SHORT_MS / 2);
    assert_false(t.ended);
    conn_run_for(&t, SHORT_MS * 2);
    assert_true(t.ended);
    conn_expect_nothing(&t); /* the client would take a response for the response to its next request */
    assert_int_equal(t.n_records, 0);
}

static void h1_clock_idle_connection_is_closed(void **state)
{
    (void)state;
    t.limits.idle_ms = SHORT_MS;
    conn_open(&t, GET("/early"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_run_for(&t, SHORT_MS / 2);
    conn_send(&t, GET("/early"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_run_for(&t, SHORT_MS * 3 / 4); /* the idle timeout restarts after each response */
    assert_false(t.ended);
    conn_run_for(&t, SHORT_MS * 2);
    assert_true(t.ended);
    conn_expect_nothing(&t);
    assert_int_equal(t.n_records, 2);
}

static void h1_clock_head_has_fixed_deadline(void **state)
{
    (void)state;
    t.limits.head_ms = SHORT_MS * 2;
    conn_open(&t, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    uint64_t began = mk_clock_ms();
    while (!t.ended && mk_clock_ms() - began < 3000) {
        (void)!send(t.fd, "x", 1, MSG_NOSIGNAL);
        conn_run_for(&t, 5);
    }
    assert_in_range(mk_clock_ms() - began, SHORT_MS, SHORT_MS * 20);
    conn_expect(&t, 408, NULL);
    conn_expect_end(&t, 1, 408, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_slow_upload_is_cut_off(void **state)
{
    (void)state;
    t.limits.request.rate_ms = SHORT_MS;
    t.limits.request.rate_bytes = 100;
    conn_open(&t, POST("/sink"));
    for (int i = 0; i < 4; i++) { /* 100 bytes in each interval are enough, however long the body takes */
        char piece[200] = "";
        conn_send_bytes(&t, mk_str_of(piece, sizeof piece));
        conn_run_for(&t, SHORT_MS);
    }
    conn_expect_nothing(&t);
    uint64_t began = mk_clock_ms();
    while (!t.ended && mk_clock_ms() - began < 3000) { /* single bytes are too slow */
        (void)!send(t.fd, "x", 1, MSG_NOSIGNAL);
        conn_run_for(&t, SHORT_MS / 4);
    }
    conn_expect(&t, 408, NULL);
    conn_expect_end(&t, 1, 408, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_slow_reader_is_cut_off(void **state)
{
    (void)state;
    t.limits.request.rate_ms = SHORT_MS;
    t.limits.request.rate_bytes = 100;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, GET("/source?n=1000000"));
    for (int i = 0; i < 1000 && t.manager.n_conns; i++)
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    assert_int_equal(t.manager.n_conns, 0);
    conn_run(&t);
    assert_true(t.received.len < 500000);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_TIMEOUT);
}

static void h1_clock_steady_reader_gets_whole_response(void **state)
{
    (void)state;
    t.limits.request.rate_ms = SHORT_MS;
    t.limits.request.rate_bytes = 100;
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, GET("/source?n=20000"));
    while (t.n_records == 0) {
        char piece[1500];
        for (int i = 0; i < 3; i++)
            assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
        ssize_t n = recv(t.fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n > 0)
            mk_buf_add(&t.received, mk_str_of(piece, (size_t)n));
    }
    assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
    conn_run(&t);
    conn_expect(&t, 200, NULL);
}

static void h1_clock_stuck_handler_gets_504(void **state)
{
    (void)state;
    t.limits.request.handler_ms = SHORT_MS;
    conn_open(&t, GET("/never"));
    conn_run_for(&t, SHORT_MS / 2);
    conn_expect_nothing(&t);
    conn_run_for(&t, SHORT_MS * 2);
    conn_expect(&t, 504, NULL);
    conn_expect_end(&t, 1, 504, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_request_may_set_handler_timeout(void **state)
{
    (void)state;
    conn_open(&t, "GET /never?wait=60 HTTP/1.1\r\nHost: a\r\n\r\n");
    conn_run_for(&t, SHORT_MS * 3);
    conn_expect(&t, 504, NULL);
    conn_expect_end(&t, 1, 504, MK_OUTCOME_TIMEOUT);
    t.limits.request.handler_ms = SHORT_MS;
    conn_open(&t, GET("/slow?ms=200&wait=0") GET("/drip?n=2&ms=200&wait=0") GET("/never"));
    while (t.n_records < 4)
        conn_run_for(&t, 10);
    conn_expect(&t, 200, "slow\n");
    conn_expect(&t, 200, "ab");
    conn_expect(&t, 504, NULL); /* other requests have the server's timeout */
}

static void h1_clock_unlimited_wait_ends_with_client(void **state)
{
    (void)state;
    static const char *const requests[] = {GET("/never?wait=0"), GET("/drip?ms=60000&wait=0")};
    t.limits.request.handler_ms = SHORT_MS;
    for (unsigned i = 0; i < MK_LEN(requests); i++) {
        conn_open(&t, requests[i]);
        conn_run_for(&t, SHORT_MS * 3);
        assert_int_equal(t.n_records, i);
        shutdown(t.fd, SHUT_WR);
        conn_run(&t);
        assert_int_equal(t.n_records, i + 1);
        assert_int_equal(t.outcomes[i], MK_OUTCOME_CLIENT_ABORTED);
    }
    t.limits.request.handler_ms = 0; /* the result is the same without a timeout in the configuration */
    conn_open(&t, GET("/never"));
    shutdown(t.fd, SHUT_WR);
    conn_run(&t);
    assert_int_equal(t.n_records, 3);
    t.limits.request.handler_ms = 60000;
    conn_open(&t, GET("/slow?ms=100"));
    shutdown(t.fd, SHUT_WR);
    conn_run_until_received(&t, 1);
    conn_expect(&t, 200, "slow\n");
}

/* Sets these limits for paths that match the pattern. */
static void set_location(const char *pattern, const struct mk_request_limits *limits)
{
    static struct mk_location location;
    static struct mk_location_path path;
    assert_true(mk_pattern_set(&path.pattern, mk_str_from_c(pattern)));
    location = (struct mk_location){.paths = &path, .n_paths = 1, .limits = *limits};
    t.site.host.locations = &location;
    t.site.host.n_locations = 1;
}

static void h1_clock_location_has_own_handler_timeout(void **state)
{
    (void)state;
    set_location("/never", &(struct mk_request_limits){.content_max = 1, .handler_ms = SHORT_MS});
    conn_open(&t, GET("/never"));
    conn_run_for(&t, SHORT_MS / 2);
    conn_expect_nothing(&t);
    conn_run_for(&t, SHORT_MS * 2);
    conn_expect(&t, 504, NULL);
    conn_expect_end(&t, 1, 504, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_vhost_has_own_handler_timeout(void **state)
{
    (void)state;
    const struct mk_request_limits limits = {.handler_ms = SHORT_MS};
    t.site.host.limits = &limits;
    conn_open(&t, GET("/never"));
    conn_run_for(&t, SHORT_MS * 2);
    conn_expect(&t, 504, NULL);
    conn_expect_end(&t, 1, 504, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_location_has_own_upload_rate(void **state)
{
    (void)state;
    set_location("/sink",
                 &(struct mk_request_limits){.content_max = 1000, .rate_ms = SHORT_MS, .rate_bytes = 1000});
    conn_open(&t, POST("/sink"));
    conn_run_for(&t, SHORT_MS * 3);
    conn_expect(&t, 408, NULL);
    conn_expect_end(&t, 1, 408, MK_OUTCOME_TIMEOUT);
}

static void h1_clock_location_may_disable_download_rate(void **state)
{
    (void)state;
    t.limits.request.rate_ms = SHORT_MS;
    t.limits.request.rate_bytes = 100;
    set_location("/source", &(struct mk_request_limits){.content_max = 1});
    conn_open(&t, "");
    conn_set_send_buffer(&t, 1);
    conn_send(&t, GET("/source?n=20000"));
    for (int i = 0; i < SHORT_MS; i++) /* runs for many intervals */
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    assert_int_equal(t.manager.n_conns, 1);
    while (t.n_records == 0)
        conn_run_for(&t, 1);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
    conn_run(&t);
    conn_expect(&t, 200, NULL);
}

static void h1_clock_handler_timeout_restarts_with_each_wait(void **state)
{
    (void)state;
    struct h1_response r;
    t.limits.request.handler_ms = SHORT_MS * 2;
    conn_open(&t, GET("/drip?n=10&ms=30"));
    for (int i = 0; i < 200 && t.n_records == 0; i++)
        conn_run_for(&t, 10);
    assert_int_equal(conn_response(&t, &r, false), H1_RESPONSE_COMPLETE);
    assert_int_equal(r.content.len, 10);
    h1_response_fini(&r);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_OK);
}

static void h1_clock_stuck_body_source_closes_connection(void **state)
{
    (void)state;
    t.limits.request.handler_ms = SHORT_MS;
    conn_open(&t, GET("/drip?n=10&ms=3000"));
    conn_run_for(&t, SHORT_MS * 3);
    assert_int_equal(t.n_records, 1);
    assert_int_equal(t.statuses[0], 200);
    assert_int_equal(t.outcomes[0], MK_OUTCOME_TIMEOUT);
    assert_int_equal(t.manager.n_conns, 0);
}

static void h1_clock_lingering_close_times_out(void **state)
{
    (void)state;
    t.limits.linger_ms = SHORT_MS;
    conn_open(&t, "nonsense\r\n\r\n");
    conn_run(&t);
    conn_expect(&t, 400, NULL);
    conn_expect_state(&t, MK_CONN_LINGER);
    uint64_t began = mk_clock_ms();
    while (t.manager.n_conns && mk_clock_ms() - began < 3000) {
        (void)!send(t.fd, "x", 1, MSG_NOSIGNAL); /* input does not extend the timeout */
        assert_int_equal(mk_loop_run_once(&t.loop, 5), 0);
    }
    assert_in_range(mk_clock_ms() - began, SHORT_MS / 2, SHORT_MS * 20);
    assert_int_equal(t.n_records, 1);
}

static void h1_clock_slow_discarded_upload_is_cut_off(void **state)
{
    (void)state;
    t.limits.request.rate_ms = SHORT_MS;
    t.limits.request.rate_bytes = 100;
    conn_open(&t, POST("/early"));
    conn_run(&t);
    conn_expect(&t, 200, "early\n");
    conn_expect_state(&t, MK_CONN_DRAIN);
    /* the bytes that the client has read count as progress for a while */
    for (int i = 0; i < 50 && t.manager.n_conns; i++)
        conn_run_for(&t, SHORT_MS);
    assert_int_equal(t.manager.n_conns, 0);
    assert_int_equal(t.n_records, 1);
}

/* ---- Disconnects and exits in every state ---- */

static const struct {
    const char *input;
    enum mk_conn_state state;
    unsigned n_records, status; /* expected when the client disconnects or the server exits in this state */
} situations[] = {
    {"", MK_CONN_IDLE, 0, 0},
    {"GET / HT", MK_CONN_HEAD, 0, 0},
    {GET("/early") "GET / HT", MK_CONN_HEAD, 1, 200},
    {GET("/never"), MK_CONN_DISPATCH, 1, 0},
    {GET("/never") GET("/early"), MK_CONN_DISPATCH, 1, 0},
    {POST("/sink"), MK_CONN_DISPATCH, 1, 0},
    {POST("/sink") "some of it", MK_CONN_DISPATCH, 1, 0},
    {"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", MK_CONN_DISPATCH, 1, 0},
    {GET("/thread"), MK_CONN_DISPATCH, 1, 0},
    {GET("/slow?ms=10"), MK_CONN_DISPATCH, 1, 0},
    {GET("/drip?ms=10"), MK_CONN_SEND, 1, 200},
    {POST("/echo"), MK_CONN_SEND, 1, 200},
    {GET("/source?n=9000000"), MK_CONN_SEND, 1, 200},
    {GET("/source?n=9000000") GET("/early"), MK_CONN_SEND, 1, 200},
    {GET("/large.bin"), MK_CONN_SEND, 1, 200},
    {POST("/early"), MK_CONN_DRAIN, 1, 200},
    {"nonsense\r\n\r\n", MK_CONN_LINGER, 1, 400},
};

static void add_large_file(void)
{
    static char large[5000000];
    site_add(&t.site, "large.bin", mk_str_of(large, sizeof large));
}

static void reach(size_t i)
{
    conn_open(&t, situations[i].input);
    conn_run_server(&t);
    conn_expect_state(&t, situations[i].state);
}

static void check_disconnect(size_t i, unsigned before, enum mk_outcome outcome)
{
    bool was_over = situations[i].state >= MK_CONN_DRAIN || situations[i].state <= MK_CONN_HEAD;
    assert_int_equal(t.manager.n_conns, 0);
    assert_true(t.n_records - before >= situations[i].n_records);
    if (situations[i].n_records) {
        assert_int_equal(t.statuses[before], situations[i].status);
        if (!was_over && t.outcomes[before] != outcome)
            fail_msg("case %zu ended as %s", i, mk_outcome_name(t.outcomes[before]));
    }
}

static void h1_clock_client_may_disconnect_in_every_state(void **state)
{
    (void)state;
    add_large_file();
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        unsigned before = t.n_records;
        reach(i);
        mk_fd_close(&t.fd);
        conn_run_server(&t);
        check_disconnect(i, before, MK_OUTCOME_CLIENT_ABORTED);
    }
    conn_run_for(&t, 50); /* lets late timers fire and late threads finish */
    assert_int_equal(t.manager.n_spare, 1);
}

static void h1_clock_server_may_exit_in_every_state(void **state)
{
    (void)state;
    add_large_file();
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        unsigned before = t.n_records;
        reach(i);
        mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
        check_disconnect(i, before, MK_OUTCOME_SHUTDOWN);
    }
    conn_run_for(&t, 50);
}

static void h1_clock_client_may_half_close_in_every_state(void **state)
{
    (void)state;
    add_large_file();
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        reach(i);
        shutdown(t.fd, SHUT_WR);
        for (int n = 0; n < 100 && !t.ended && !t.reset; n++)
            conn_run_for(&t, 5);
        bool waits_for_ever = strstr(situations[i].input, "/never");
        if ((t.ended || t.reset) == waits_for_ever)
            fail_msg("case %zu: %s", i, waits_for_ever ? "it ended" : "it did not end");
        mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_clock_new_connection_must_send_request, setup),
        fixture_test(h1_clock_idle_connection_is_closed, setup),
        fixture_test(h1_clock_head_has_fixed_deadline, setup),
        fixture_test(h1_clock_slow_upload_is_cut_off, setup),
        fixture_test(h1_clock_slow_reader_is_cut_off, setup),
        fixture_test(h1_clock_steady_reader_gets_whole_response, setup),
        fixture_test(h1_clock_stuck_handler_gets_504, setup),
        fixture_test(h1_clock_request_may_set_handler_timeout, setup),
        fixture_test(h1_clock_unlimited_wait_ends_with_client, setup),
        fixture_test(h1_clock_location_has_own_handler_timeout, setup),
        fixture_test(h1_clock_vhost_has_own_handler_timeout, setup),
        fixture_test(h1_clock_location_has_own_upload_rate, setup),
        fixture_test(h1_clock_location_may_disable_download_rate, setup),
        fixture_test(h1_clock_handler_timeout_restarts_with_each_wait, setup),
        fixture_test(h1_clock_stuck_body_source_closes_connection, setup),
        fixture_test(h1_clock_lingering_close_times_out, setup),
        fixture_test(h1_clock_slow_discarded_upload_is_cut_off, setup),
        fixture_test(h1_clock_client_may_disconnect_in_every_state, setup),
        fixture_test(h1_clock_server_may_exit_in_every_state, setup),
        fixture_test(h1_clock_client_may_half_close_in_every_state, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
