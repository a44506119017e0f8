/* SPDX-License-Identifier: Apache-2.0 */
/* Orderly ends of HTTP/2 connections: the worker drains, the client sends GOAWAY, or the request limit is
 * reached. */
#include "unit/http2/h2_conn_case.h"

static void start_drain(void)
{
    h.conn.manager.draining = true;
    h.conn.conn->ops->on_drain(h.conn.conn);
    h2_conn_run(&h);
}

static void h2_drain_sends_goaway_in_two_steps(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_run(&h);
    start_drain();
    assert_int_equal(h.client.n_goaways, 1);
    assert_int_equal(h.client.last_stream, MK_H2_STREAM_MAX);
    assert_int_equal(h.client.n_pings, 1);
    h2_conn_get(&h, 3, "/early"); /* this request was in flight */
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_run(&h);
    h2_conn_expect(&h, 3, 200, "early\n");
    assert_int_equal(h.client.n_goaways, 2);
    assert_int_equal(h.client.last_stream, 3);
    h2_conn_expect_open(&h, 1);
    h2_conn_data(&h, 1, "xxx", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    assert_true(h.conn.ended);
    assert_int_equal(h.client.error, MK_H2_NO_ERROR);
    h2_conn_expect_records(&h, 2, 200, MK_OUTCOME_OK);
}

static void h2_drain_ignores_late_streams(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_run(&h);
    start_drain();
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_post(&h, 3, "/sink", "");
    for (int i = 0; i < 50; i++)
        h2_conn_data(&h, 3, "too late", false);
    h2_send_headers(&h.client, &h.say, 3, MK_H2_END_STREAM, "x-trailer: x\n");
    h2_conn_get(&h, 5, "/early");
    mk_h2_frame_emit_window_update(&h.say, 5, 1000);
    h2_send_reset(&h.client, &h.say, 5, MK_H2_CANCEL);
    h2_conn_run(&h);
    assert_int_equal(h.client.last_stream, 1);
    assert_int_equal(h2_find(&h.client, 3)->reset, false);
    h2_conn_data(&h, 1, "xxx", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    assert_int_equal(h.client.error, MK_H2_NO_ERROR);
    assert_int_equal(h.conn.n_records, 1);
}

/* The last stream ID announced does not change. */
static void h2_drain_error_keeps_last_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_run(&h);
    start_drain();
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_get(&h, 3, "/early");
    h2_send_frame(&h.say, MK_H2_PUSH_PROMISE, 0, 1, MK_STR(""));
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
    assert_int_equal(h.client.last_stream, 1);
}

static void h2_drain_idle_connection_closes_at_once(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/early");
    h2_conn_run(&h);
    start_drain();
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_run(&h);
    assert_true(h.conn.ended);
    assert_int_equal(h.client.last_stream, 1);
}

static void h2_requests_max_sends_goaway(void **state)
{
    (void)state;
    h.conn.limits.requests_max = 3;
    h2_conn_open(&h);
    for (uint32_t id = 1; id <= 3; id += 2) {
        h2_conn_get(&h, id, "/early");
        h2_conn_run(&h);
    }
    assert_int_equal(h.client.n_goaways, 0);
    h2_conn_get(&h, 5, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 5, 200, "early\n");
    assert_int_equal(h.client.n_goaways, 1);
    mk_h2_frame_emit_ping(&h.say, true, mk_str_of(h.client.ping, 8));
    h2_conn_run(&h);
    assert_true(h.conn.ended);
}

/* A client that never acknowledges GOAWAY is not served forever. */
static void h2_goaway_ignored_closes_connection(void **state)
{
    (void)state;
    h.conn.limits.requests_max = 3;
    h2_conn_open(&h);
    uint32_t id = 1;
    for (; id < 200 && !h.conn.ended; id += 2) {
        h2_conn_get(&h, id, "/early");
        h2_conn_run(&h);
    }
    assert_true(h.conn.ended);
    assert_true(h.conn.n_records > 3 && h.conn.n_records < 3 + 2 * H2_CONN_STREAMS);
    assert_int_equal(h.client.n_goaways, 2);
    assert_int_equal(h.client.error, MK_H2_NO_ERROR);
}

static void h2_client_goaway_finishes_open_streams(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    mk_h2_frame_emit_goaway(&h.say, 0, MK_H2_NO_ERROR);
    h2_conn_run(&h);
    h2_conn_expect_open(&h, 1);
    h2_conn_get(&h, 3, "/early"); /* the client's GOAWAY concerns only streams that the server would open */
    h2_conn_data(&h, 1, "xxx", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 3, 200, "early\n");
    h2_conn_expect(&h, 1, 200, NULL);
    assert_true(h.conn.ended);
}

/* A client that sends GOAWAY and continues is not served forever. */
static void h2_client_goaway_with_new_requests_closes_connection(void **state)
{
    (void)state;
    h.conn.limits.requests_max = 3;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    mk_h2_frame_emit_goaway(&h.say, 0, MK_H2_NO_ERROR);
    for (uint32_t id = 3; id < 200 && h.client.n_goaways < 2; id += 2) {
        h2_conn_get(&h, id, "/early");
        h2_conn_run(&h);
    }
    assert_int_equal(h.client.n_goaways, 2);
    h2_send_reset(&h.client, &h.say, 1, MK_H2_CANCEL);
    h2_conn_run(&h);
    assert_true(h.conn.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_drain_sends_goaway_in_two_steps, setup),
        fixture_test(h2_drain_ignores_late_streams, setup),
        fixture_test(h2_drain_error_keeps_last_stream, setup),
        fixture_test(h2_drain_idle_connection_closes_at_once, setup),
        fixture_test(h2_requests_max_sends_goaway, setup),
        fixture_test(h2_goaway_ignored_closes_connection, setup),
        fixture_test(h2_client_goaway_finishes_open_streams, setup),
        fixture_test(h2_client_goaway_with_new_requests_closes_connection, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
