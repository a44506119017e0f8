/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 timeouts, and the fate of requests when their client disconnects or the server exits. */
#include "unit/http2/h2_conn_case.h"
#include "unit/wrap_clock.h"

enum { SHORT_MS = 60 };

static bool is_over(void)
{
    return h.conn.ended || h.conn.reset;
}

/* Waits until the connection has ended, at most this long. */
static void wait_for_end(unsigned ms)
{
    for (unsigned i = 0; i < ms && !is_over(); i += 5)
        h2_conn_run_for(&h, 5);
    assert_true(is_over());
}

static void wait_for_records(unsigned n)
{
    for (unsigned i = 0; i < 600 && h.conn.n_records < n; i++)
        h2_conn_run_for(&h, 5);
    assert_int_equal(h.conn.n_records, n);
    h2_conn_run(&h);
}

/* ---- Timeouts of the connection ---- */

static void h2_clock_new_connection_must_send_request(void **state)
{
    (void)state;
    h.conn.limits.head_ms = SHORT_MS * 3;
    h2_conn_open(&h);
    mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
    h2_conn_run_for(&h, SHORT_MS / 2);
    h2_conn_run(&h);
    assert_false(is_over());
    wait_for_end(SHORT_MS * 10);
    assert_int_equal(h.client.n_goaways, 1);
    assert_int_equal(h.client.error, MK_H2_NO_ERROR);
    assert_int_equal(h.conn.n_records, 0);
}

static void h2_clock_idle_connection_is_closed(void **state)
{
    (void)state;
    h.conn.limits.idle_ms = SHORT_MS * 4;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 13; id += 2) { /* the idle timeout restarts after each response */
        h2_conn_get(&h, id, "/early");
        h2_conn_run(&h);
        h2_conn_expect(&h, id, 200, "early\n");
        h2_conn_run_for(&h, SHORT_MS);
    }
    assert_false(is_over());
    wait_for_end(SHORT_MS * 20);
    assert_int_equal(h.client.n_goaways, 1);
    assert_int_equal(h.client.last_stream, 11);
}

static void h2_clock_pings_do_not_extend_idle_timeout(void **state)
{
    (void)state;
    h.conn.limits.idle_ms = SHORT_MS * 2;
    h.conn.limits.h2.abuse_budget = 100000;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/early");
    h2_conn_run(&h);
    for (int i = 0; i < 200 && !is_over(); i++) {
        mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
        (void)!send(h.conn.fd, h.say.p, h.say.len, MSG_NOSIGNAL);
        mk_buf_clear(&h.say);
        h2_conn_run_for(&h, 5);
    }
    assert_true(is_over());
}

static void h2_clock_frame_has_fixed_deadline(void **state)
{
    (void)state;
    h.conn.limits.head_ms = SHORT_MS * 2;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_run(&h);
    h2_expect(&h.client, 3);
    mk_h2_frame_emit_head(&h.say, 1000, MK_H2_HEADERS, MK_H2_END_HEADERS, 3);
    h2_conn_send(&h);
    uint64_t began = mk_clock_ms();
    while (!is_over() && mk_clock_ms() - began < 3000) {
        (void)!send(h.conn.fd, "\x82", 1, MSG_NOSIGNAL);
        h2_conn_run_for(&h, 5);
    }
    assert_in_range(mk_clock_ms() - began, SHORT_MS, SHORT_MS * 20);
    h2_conn_expect_records(&h, 1, 0, MK_OUTCOME_TIMEOUT);
}

static void h2_clock_head_in_pieces_has_fixed_deadline(void **state)
{
    (void)state;
    h.conn.limits.head_ms = SHORT_MS;
    h2_conn_open(&h);
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, 0, 1, MK_STR("\x82"));
    h2_conn_run(&h);
    wait_for_end(SHORT_MS * 20);
    assert_int_equal(h.conn.n_records, 0);
}

static void be_slow(void)
{
    h.conn.limits.request.rate_ms = SHORT_MS;
    h.conn.limits.request.rate_bytes = 100;
}

static void expect_slow(void)
{
    assert_int_equal(h.conn.counters.h2_ended[MK_H2_SLOW], 1);
    assert_int_equal(h.conn.manager.n_conns, 0);
    assert_int_equal(h.conn.outcomes[h.conn.n_records - 1], MK_OUTCOME_TIMEOUT);
}

static void h2_clock_client_must_read_output(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=60000");
    h2_conn_get(&h, 3, "/never");
    h2_conn_send(&h);
    for (int i = 0; i < 1000 && h.conn.manager.n_conns; i++)
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 5), 0);
    assert_int_equal(h.conn.n_records, 2);
    expect_slow();
}

static void h2_clock_client_must_open_connection_window(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/source?n=100000");
    h2_send_window_update(&h.client, &h.say, 1, 100000);
    h2_conn_run(&h);
    wait_for_end(SHORT_MS * 20);
    expect_slow();
}

/* Frames that help no request do not count as progress. */
static void h2_clock_pings_do_not_replace_window_updates(void **state)
{
    (void)state;
    be_slow();
    h.conn.limits.h2.abuse_budget = 100000;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/source?n=100000");
    h2_send_window_update(&h.client, &h.say, 1, 100000);
    for (int i = 0; i < 200 && !is_over(); i++) {
        for (int n = 0; n < 10; n++)
            mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
        (void)!send(h.conn.fd, h.say.p, h.say.len, MSG_NOSIGNAL);
        mk_buf_clear(&h.say);
        h2_conn_run_for(&h, 5);
    }
    assert_true(is_over());
    expect_slow();
}

static void h2_clock_steady_reader_gets_whole_response(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=20000");
    h2_conn_send(&h);
    while (h.conn.n_records == 0 || !h2_find(&h.client, 1)->ended) {
        char piece[1500];
        for (int i = 0; i < 3; i++)
            assert_int_equal(mk_loop_run_once(&h.conn.loop, 5), 0);
        ssize_t n = recv(h.conn.fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n > 0)
            mk_buf_add(&h.conn.received, mk_str_of(piece, (size_t)n));
        h2_conn_receive(&h);
    }
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
}

/* ---- Timeouts of one stream; the others continue ---- */

static void h2_clock_slow_upload_is_cut_off(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_get(&h, 3, "/never");
    h2_conn_run(&h);
    for (int i = 0; i < 4; i++) { /* 100 bytes in each interval are enough, however long the body takes */
        assert_true(h2_conn_upload(&h, 1, 200, false));
        h2_conn_run_for(&h, SHORT_MS);
    }
    h2_conn_expect_open(&h, 1);
    for (int i = 0; i < 200 && h.conn.n_records == 0; i++) { /* single bytes are too slow */
        h2_conn_data(&h, 1, "x", false);
        h2_conn_run(&h);
        h2_conn_run_for(&h, SHORT_MS / 4);
    }
    h2_conn_expect(&h, 1, 408, NULL);
    h2_conn_expect_records(&h, 1, 408, MK_OUTCOME_TIMEOUT);
    h2_conn_expect_open(&h, 3);
    h2_conn_get(&h, 5, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 5, 200, "early\n");
}

static void h2_clock_client_must_open_stream_window(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_conn_get(&h, 1, "/source?n=100000");
    h2_conn_run(&h);
    wait_for_records(1);
    h2_conn_expect_reset(&h, 1, MK_H2_CANCEL);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_TIMEOUT);
    h2_conn_expect_idle(&h);
}

static void h2_clock_tiny_window_updates_are_not_enough(void **state)
{
    (void)state;
    be_slow();
    h.conn.limits.h2.abuse_budget = 100000;
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_conn_get(&h, 1, "/source?n=100000");
    h2_conn_run(&h);
    for (int i = 0; i < 100 && h.conn.n_records == 0; i++) {
        h2_send_window_update(&h.client, &h.say, 1, 1);
        h2_conn_run(&h);
        h2_conn_run_for(&h, SHORT_MS / 4);
    }
    h2_conn_expect_reset(&h, 1, MK_H2_CANCEL);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_TIMEOUT);
}

static void h2_clock_steady_window_updates_are_enough(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_conn_get(&h, 1, "/source?n=70000");
    h2_conn_run(&h);
    while (h.conn.n_records == 0) {
        h2_send_window_update(&h.client, &h.say, 1, 300);
        h2_conn_run(&h);
        h2_conn_run_for(&h, SHORT_MS / 2);
    }
    h2_conn_expect(&h, 1, 200, NULL);
}

static void h2_clock_stuck_handler_gets_504(void **state)
{
    (void)state;
    h.conn.limits.request.handler_ms = SHORT_MS * 3;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_post(&h, 3, "/never", "");
    h2_conn_run_for(&h, SHORT_MS / 2);
    h2_conn_run(&h);
    h2_conn_expect_open(&h, 1);
    wait_for_records(2);
    h2_conn_expect(&h, 1, 504, NULL);
    h2_conn_expect(&h, 3, 504, NULL);
    h2_conn_expect_records(&h, 2, 504, MK_OUTCOME_TIMEOUT);
    h2_conn_data(&h, 3, "x", true);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
}

/* Sets these limits for paths that match the pattern. */
static void set_location(const char *pattern, const struct mk_request_limits *limits)
{
    static struct mk_location location;
    static struct mk_location_path path;
    assert_true(mk_pattern_set(&path.pattern, mk_str_from_c(pattern)));
    location = (struct mk_location){.paths = &path, .n_paths = 1, .limits = *limits};
    h.conn.site.host.locations = &location;
    h.conn.site.host.n_locations = 1;
}

static void h2_clock_location_has_own_handler_timeout(void **state)
{
    (void)state;
    set_location("/never", &(struct mk_request_limits){.content_max = 1, .handler_ms = SHORT_MS});
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_get(&h, 3, "/drip?n=1&ms=30000");
    h2_conn_run(&h);
    wait_for_records(1);
    h2_conn_expect(&h, 1, 504, NULL);
    h2_conn_expect_open(&h, 3);
}

static void h2_clock_location_has_own_upload_rate(void **state)
{
    (void)state;
    set_location("/sink",
                 &(struct mk_request_limits){.content_max = 1000, .rate_ms = SHORT_MS, .rate_bytes = 1000});
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_get(&h, 3, "/never");
    h2_conn_run(&h);
    wait_for_records(1);
    h2_conn_expect(&h, 1, 408, NULL);
    h2_conn_expect_open(&h, 3);
}

/* Waits for as many intervals as the server needs to cut off a slow client. */
static void wait_without_reading(void)
{
    for (int i = 0; i < SHORT_MS; i++)
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 5), 0);
}

static void h2_clock_location_may_disable_download_rate(void **state)
{
    (void)state;
    be_slow();
    set_location("/source", &(struct mk_request_limits){.content_max = 1});
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=60000");
    h2_conn_get(&h, 3, "/early"); /* all streams share the socket */
    h2_conn_send(&h);
    wait_without_reading();
    assert_int_equal(h.conn.manager.n_conns, 1);
    wait_for_records(2);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect(&h, 3, 200, "early\n");
}

static void h2_clock_disabled_rate_covers_end_of_response(void **state)
{
    (void)state;
    be_slow();
    set_location("/source", &(struct mk_request_limits){.content_max = 1});
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1,
                /* a single write: the stream is closed already, but most of its data waits for the socket */
                "/source?n=20000");
    h2_conn_send(&h);
    wait_without_reading();
    assert_int_equal(h.conn.n_records, 1);
    assert_int_equal(h.conn.manager.n_conns, 1);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    h.conn.site.host.n_locations = 0; /* the location's limit does not apply to later responses */
    h2_conn_get(&h, 3, "/source?n=20000");
    h2_conn_send(&h);
    for (int i = 0; i < 1000 && h.conn.manager.n_conns; i++)
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 5), 0);
    assert_int_equal(h.conn.manager.n_conns, 0);
    assert_int_equal(h.conn.counters.h2_ended[MK_H2_SLOW], 1);
}

static void h2_clock_request_may_set_handler_timeout(void **state)
{
    (void)state;
    h.conn.limits.request.handler_ms = SHORT_MS;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/slow?ms=200&wait=0");
    h2_conn_get(&h, 3, "/drip?n=2&ms=200&wait=0");
    h2_conn_get(&h, 5, "/never");
    h2_conn_get(&h, 7, "/never?wait=0");
    h2_conn_get(&h, 9, "/drip?ms=60000&wait=0");
    h2_conn_get(&h, 11, "/drip?ms=60000&wait=0");
    h2_conn_run(&h);
    wait_for_records(3);
    h2_conn_expect(&h, 1, 200, "slow\n");
    h2_conn_expect(&h, 3, 200, "ab");
    h2_conn_expect(&h, 5, 504, NULL);
    h2_send_reset(&h.client, &h.say, 9, MK_H2_CANCEL);
    h2_conn_run(&h);
    h2_conn_expect_records(&h, 4, 200, MK_OUTCOME_CLIENT_ABORTED);
    h2_conn_expect_open(&h, 7);
    shutdown(h.conn.fd, SHUT_WR); /* an unlimited wait ends when the client disconnects */
    conn_run(&h.conn);
    h2_conn_expect_records(&h, 6, 200, MK_OUTCOME_CLIENT_ABORTED);
}

/* The limits of a finished stream apply until its last byte is sent. */
static void h2_clock_request_may_set_rate(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=20000&rate=0");
    h2_conn_send(&h);
    wait_without_reading();
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
    assert_int_equal(h.conn.manager.n_conns, 1);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
}

static void h2_clock_handler_timeout_restarts_with_each_wait(void **state)
{
    (void)state;
    h.conn.limits.request.handler_ms = SHORT_MS * 2;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/drip?n=10&ms=30");
    h2_conn_run(&h);
    wait_for_records(1);
    h2_conn_expect(&h, 1, 200, "abcdefghij");
}

static void h2_clock_stuck_body_source_is_reset(void **state)
{
    (void)state;
    h.conn.limits.request.handler_ms = SHORT_MS;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/drip?n=10&ms=30000");
    h2_conn_get(&h, 3, "/early");
    h2_conn_run(&h);
    wait_for_records(2);
    h2_conn_expect_reset(&h, 1, MK_H2_INTERNAL_ERROR);
    h2_conn_expect_records(&h, 2, 200, MK_OUTCOME_TIMEOUT);
    h2_conn_expect_idle(&h);
}

static void h2_clock_slow_discarded_upload_is_cut_off(void **state)
{
    (void)state;
    be_slow();
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/early", "");
    h2_conn_run(&h);
    for (int i = 0; i < 100 && !h2_find(&h.client, 1)->reset; i++)
        h2_conn_run_for(&h, 5);
    h2_conn_expect(&h, 1, 200, "early\n");
    h2_conn_expect_reset(&h, 1, MK_H2_NO_ERROR);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_OK);
    h2_conn_expect_idle(&h);
}

static void h2_clock_silent_tunnel_is_closed(void **state)
{
    (void)state;
    h.conn.limits.request.tunnel_ms = SHORT_MS * 3;
    h2_conn_open(&h);
    h2_send_headers(&h.client, &h.say, 1, 0,
                    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel\n");
    for (int i = 0; i < 10; i++) {
        h2_conn_data(&h, 1, "x", false);
        h2_conn_run(&h);
        h2_conn_run_for(&h, SHORT_MS / 3);
    }
    h2_conn_expect_open(&h, 1);
    wait_for_records(1);
    h2_conn_expect_reset(&h, 1, MK_H2_CANCEL);
    h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_TIMEOUT);
    h2_conn_expect_idle(&h);
}

/* The server accepted the tunnel, but could not send the response head. */
static void h2_clock_tunnel_with_unsent_head_times_out(void **state)
{
    (void)state;
    h.conn.limits.request.tunnel_ms = SHORT_MS;
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=60000");
    h2_conn_send(&h);
    conn_run_server(&h.conn);
    h2_send_headers(&h.client, &h.say, 3, 0,
                    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel\n");
    h2_conn_send(&h);
    for (int i = 0; i < 100; i++)
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 5), 0);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect_reset(&h, 3, MK_H2_CANCEL);
    h2_conn_expect_idle(&h);
}

/* ---- Client disconnects, server exits ---- */

static const char tunnel_fields[] =
    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel?n=10\n";

static void nothing(void)
{
}

static void send_partial_frame(void)
{
    mk_buf_add(&h.say, mk_str_of("\0\1\0\1\4", 5));
}

static void send_partial_head(void)
{
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, 0, 1, MK_STR("\x82"));
}

static void handlers_that_wait(void)
{
    h2_conn_get(&h, 1, "/never");
    h2_conn_get(&h, 3, "/slow?ms=10");
    h2_conn_get(&h, 5, "/thread");
}

static void a_handler_and_part_of_a_frame(void)
{
    h2_conn_get(&h, 1, "/slow?ms=100");
    mk_buf_add(&h.say, mk_str_of("\0\1\0\1\4", 5));
}

static void sources_that_wait(void)
{
    h2_conn_get(&h, 1, "/drip?ms=10");
    h2_conn_get(&h, 3, "/source?n=9000000");
    h2_conn_post(&h, 5, "/echo", "");
}

static void content_that_waits(void)
{
    h2_conn_post(&h, 1, "/never", "");
    h2_conn_data(&h, 1, "some of it", false);
    h2_conn_post(&h, 3, "/sink", "content-length: 1000\n");
    h2_conn_data(&h, 3, "some of it", false);
    h2_conn_post(&h, 5, "/early", "");
}

static void tunnels(void)
{
    h2_send_headers(&h.client, &h.say, 1, 0, tunnel_fields);
    h2_send_headers(&h.client, &h.say, 3, 0, tunnel_fields);
    h2_send_headers(&h.client, &h.say, 5, 0, tunnel_fields);
    h2_conn_data(&h, 3, "some", false);
}

static void an_error(void)
{
    h2_conn_get(&h, 1, "/never");
    h2_send_frame(&h.say, MK_H2_PUSH_PROMISE, 0, 1, MK_STR(""));
}

static const struct situation {
    void (*reach)(void);
    unsigned n_records;
} situations[] = {
    {nothing, 0},
    {send_partial_frame, 0},
    {send_partial_head, 0},
    {handlers_that_wait, 3},
    {sources_that_wait, 3},
    {content_that_waits, 3},
    {tunnels, 3},
    {an_error, 1},
    {a_handler_and_part_of_a_frame, 1},
};

static void reach(size_t i)
{
    h.conn.n_records = 0;
    h2_conn_open(&h);
    situations[i].reach();
    h2_conn_send(&h);
    conn_run_server(&h.conn);
}

static void check_gone(size_t i)
{
    assert_int_equal(h.conn.manager.n_conns, 0);
    if (h.conn.n_records != situations[i].n_records)
        fail_msg("case %zu left %u records", i, h.conn.n_records);
}

static void h2_clock_client_may_disconnect_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        reach(i);
        mk_fd_close(&h.conn.fd);
        conn_run_server(&h.conn);
        check_gone(i);
    }
    conn_run_for(&h.conn, 50); /* lets late timers fire and late threads finish */
}

static void h2_clock_server_may_exit_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        reach(i);
        mk_conn_close_all(&h.conn.manager, MK_OUTCOME_SHUTDOWN);
        check_gone(i);
    }
    conn_run_for(&h.conn, 50);
}

static void h2_clock_client_may_half_close_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(situations); i++) {
        reach(i);
        shutdown(h.conn.fd, SHUT_WR);
        bool waits_for_ever =
            situations[i].reach == handlers_that_wait || situations[i].reach == content_that_waits;
        for (int n = 0; n < (waits_for_ever ? 20 : 200) && !is_over(); n++)
            h2_conn_run_for(&h, 5);
        if (is_over() == waits_for_ever)
            fail_msg("case %zu: %s", i, waits_for_ever ? "it ended" : "it did not end");
        mk_conn_close_all(&h.conn.manager, MK_OUTCOME_SHUTDOWN);
        check_gone(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_clock_new_connection_must_send_request, setup),
        fixture_test(h2_clock_idle_connection_is_closed, setup),
        fixture_test(h2_clock_pings_do_not_extend_idle_timeout, setup),
        fixture_test(h2_clock_frame_has_fixed_deadline, setup),
        fixture_test(h2_clock_head_in_pieces_has_fixed_deadline, setup),
        fixture_test(h2_clock_client_must_read_output, setup),
        fixture_test(h2_clock_client_must_open_connection_window, setup),
        fixture_test(h2_clock_pings_do_not_replace_window_updates, setup),
        fixture_test(h2_clock_steady_reader_gets_whole_response, setup),
        fixture_test(h2_clock_slow_upload_is_cut_off, setup),
        fixture_test(h2_clock_client_must_open_stream_window, setup),
        fixture_test(h2_clock_tiny_window_updates_are_not_enough, setup),
        fixture_test(h2_clock_steady_window_updates_are_enough, setup),
        fixture_test(h2_clock_stuck_handler_gets_504, setup),
        fixture_test(h2_clock_request_may_set_handler_timeout, setup),
        fixture_test(h2_clock_request_may_set_rate, setup),
        fixture_test(h2_clock_location_has_own_handler_timeout, setup),
        fixture_test(h2_clock_location_has_own_upload_rate, setup),
        fixture_test(h2_clock_location_may_disable_download_rate, setup),
        fixture_test(h2_clock_disabled_rate_covers_end_of_response, setup),
        fixture_test(h2_clock_handler_timeout_restarts_with_each_wait, setup),
        fixture_test(h2_clock_stuck_body_source_is_reset, setup),
        fixture_test(h2_clock_slow_discarded_upload_is_cut_off, setup),
        fixture_test(h2_clock_silent_tunnel_is_closed, setup),
        fixture_test(h2_clock_tunnel_with_unsent_head_times_out, setup),
        fixture_test(h2_clock_client_may_disconnect_in_every_state, setup),
        fixture_test(h2_clock_server_may_exit_in_every_state, setup),
        fixture_test(h2_clock_client_may_half_close_in_every_state, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
