/* SPDX-License-Identifier: Apache-2.0 */
/* Floods of useless frames close the connection, and the reason is counted; normal use does neither. */
#include "unit/http2/h2_conn_case.h"

enum { ROUNDS = 2000 };

/* Calls `once` until the connection closes. */
static void flood(void (*once)(unsigned i))
{
    for (unsigned i = 0; i < ROUNDS && !h.conn.ended && !h.conn.reset; i += 50) {
        for (unsigned j = 0; j < 50; j++)
            once(i + j);
        h2_conn_run(&h);
    }
    assert_true(h.conn.ended || h.conn.reset);
}

static void expect_calm(enum mk_h2_reason why)
{
    h2_conn_expect_failed(&h, MK_H2_ENHANCE_YOUR_CALM, why);
    for (unsigned i = 0; i < h.conn.n_records; i++)
        assert_true(h.conn.outcomes[i] != MK_OUTCOME_OK || h.conn.statuses[i] == 200);
}

static void ping(unsigned i)
{
    (void)i;
    mk_h2_frame_emit_ping(&h.say, i % 2, MK_STR("12345678"));
}

static void h2_abuse_ping_flood_closes_connection(void **state)
{
    (void)state;
    flood(ping);
    expect_calm(MK_H2_MANY_PINGS);
    assert_true(h.client.n_pongs <= H2_CONN_PATIENCE);
}

static void set(unsigned i)
{
    if (h.client.n_pending + 1 < H2_PENDING)
        h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, i);
}

static void h2_abuse_settings_flood_closes_connection(void **state)
{
    (void)state;
    flood(set);
    expect_calm(MK_H2_MANY_SETTINGS);
}

static void agree(unsigned i)
{
    (void)i;
    h2_send_frame(&h.say, MK_H2_SETTINGS, MK_H2_ACK, 0, MK_STR(""));
}

static void h2_abuse_unsolicited_settings_acks_close_connection(void **state)
{
    (void)state;
    flood(agree);
    expect_calm(MK_H2_MANY_SETTINGS);
}

static void set_all(unsigned i)
{
    if (h.conn.ended || h.client.n_pending + 1 >= H2_PENDING)
        return;
    mk_h2_frame_emit_head(&h.say, 16380, MK_H2_SETTINGS, 0, 0);
    for (int n = 0; n < 16380 / 6; n++)
        mk_h2_frame_emit_setting(&h.say, (enum mk_h2_setting)99, i);
    h.client.pending[h.client.n_pending++] = (struct h2_pending){0, 0};
}

static void h2_abuse_long_settings_cost_more(void **state)
{
    (void)state;
    set_all(0);
    h2_conn_run(&h);
    expect_calm(MK_H2_MANY_SETTINGS);
}

static void request_and_cancel(unsigned i)
{
    if (h.client.n >= H2_STREAMS - 1)
        return;
    h2_conn_get(&h, 1 + 2 * i, "/never");
    h2_send_reset(&h.client, &h.say, 1 + 2 * i, MK_H2_CANCEL);
}

static void h2_abuse_rapid_resets_close_connection(void **state)
{
    (void)state;
    flood(request_and_cancel);
    expect_calm(MK_H2_MANY_RESETS);
    assert_true(h.conn.n_records <= H2_CONN_PATIENCE / 5 + 1);
    for (unsigned i = 0; i + 1 < h.conn.n_records; i++)
        assert_int_equal(h.conn.outcomes[i], MK_OUTCOME_CLIENT_ABORTED);
}

/* Provokes a reset by the server. Such resets must count like those of the client (CVE-2025-8671). */
static void (*mistake)(uint32_t id);

static void send_failing_request(unsigned i)
{
    if (h.client.n >= H2_STREAMS - 1)
        return;
    h2_conn_post(&h, 1 + 2 * i, "/never", "content-length: 3\n");
    mistake(1 + 2 * i);
}

static void too_long(uint32_t id)
{
    h2_conn_data(&h, id, "xxxx", false);
}

static void too_short(uint32_t id)
{
    h2_conn_data(&h, id, "xx", true);
}

static void no_window(uint32_t id)
{
    mk_h2_frame_emit_window_update(&h.say, id, 0);
}

static void wide_window(uint32_t id)
{
    mk_h2_frame_emit_window_update(&h.say, id, MK_H2_WINDOW_MAX);
}

static void bad_trailers(uint32_t id)
{
    h2_send_headers(&h.client, &h.say, id, 0, "x-trailer: x\n");
}

static void worse_trailers(uint32_t id)
{
    h2_send_headers(&h.client, &h.say, id, MK_H2_END_STREAM, ":path: /\n");
}

static void send_data_after_end(uint32_t id)
{
    h2_conn_data(&h, id, "xxx", true);
    h2_conn_data(&h, id, "x", false);
}

static void h2_abuse_provoked_resets_close_connection(void **state)
{
    (void)state;
    static void (*const mistakes[])(uint32_t) = {
        too_long, too_short, no_window, wide_window, bad_trailers, worse_trailers, send_data_after_end};
    for (size_t i = 0; i < MK_LEN(mistakes); i++) {
        memset(&h.conn.counters, 0, sizeof h.conn.counters);
        h.conn.n_records = 0;
        h2_conn_open(&h);
        mistake = mistakes[i];
        flood(send_failing_request);
        expect_calm(MK_H2_MANY_RESETS);
        assert_true(h.conn.n_records <= H2_CONN_PATIENCE / 5 + 1);
    }
}

static void send_malformed_head(unsigned i)
{
    if (h.client.n < H2_STREAMS - 1)
        h2_send_headers(&h.client, &h.say, 1 + 2 * i, MK_H2_END_STREAM, ":method: GET\n");
}

static void h2_abuse_malformed_requests_close_connection(void **state)
{
    (void)state;
    flood(send_malformed_head);
    expect_calm(MK_H2_MANY_RESETS);
}

static void send_empty_frame(unsigned i)
{
    if (i == 0)
        h2_conn_post(&h, 1, "/sink", "");
    h2_conn_data(&h, 1, "", false);
}

static void h2_abuse_empty_frames_close_connection(void **state)
{
    (void)state;
    flood(send_empty_frame);
    expect_calm(MK_H2_MANY_EMPTY);
}

static void pad(unsigned i)
{
    static const char padding[256] = {(char)255};
    if (i == 0)
        h2_conn_post(&h, 1, "/sink", "");
    h2_send_frame(&h.say, MK_H2_DATA, MK_H2_PADDED, 1, mk_str_of(padding, 256));
}

static void h2_abuse_padding_only_closes_connection(void **state)
{
    (void)state;
    flood(pad);
    expect_calm(MK_H2_MANY_EMPTY);
}

static void open_stream(unsigned i)
{
    if (h.client.n < H2_STREAMS - 1)
        h2_conn_get(&h, 1 + 2 * i, "/never");
}

static void h2_abuse_streams_over_limit_close_connection(void **state)
{
    (void)state;
    flood(open_stream);
    expect_calm(MK_H2_MANY_STREAMS);
    assert_int_equal(h.conn.n_records, H2_CONN_STREAMS);
}

static void prefer(unsigned i)
{
    h2_send_frame(&h.say, MK_H2_PRIORITY, 0, 3, mk_str_of(i % 2 ? "\0\0\0\1\3" : "\0\0\0\0\3", 5));
}

static void h2_abuse_priority_flood_closes_connection(void **state)
{
    (void)state;
    flood(prefer);
    expect_calm(MK_H2_MANY_OTHERS);
}

static void prefer_newly(unsigned i)
{
    mk_h2_frame_emit_head(&h.say, 7, MK_H2_PRIORITY_UPDATE, 0, 0);
    mk_h2_frame_emit_u32(&h.say, 2 * i + 1);
    mk_buf_add(&h.say, MK_STR("u=1"));
}

static void h2_abuse_priority_update_flood_closes_connection(void **state)
{
    (void)state;
    flood(prefer_newly);
    expect_calm(MK_H2_MANY_OTHERS);
}

static void send_unknown_frame(unsigned i)
{
    h2_send_frame(&h.say, 0x20 + i % 100, 0, i, MK_STR("?"));
}

static void h2_abuse_unknown_frames_close_connection(void **state)
{
    (void)state;
    flood(send_unknown_frame);
    expect_calm(MK_H2_MANY_OTHERS);
}

static void open_a_little(unsigned i)
{
    if (i == 0) {
        h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 0);
        h2_conn_get(&h, 1, "/source?n=100000");
    }
    h2_send_window_update(&h.client, &h.say, 1, 1);
}

static void h2_abuse_tiny_window_updates_close_connection(void **state)
{
    (void)state;
    flood(open_a_little);
    expect_calm(MK_H2_TINY_WINDOWS);
}

/* Opening the windows in tiny steps with SETTINGS has the same effect as tiny WINDOW_UPDATE frames. */
static void h2_abuse_tiny_initial_window_steps_close_connection(void **state)
{
    (void)state;
    h.conn.limits.h2.abuse_budget = 1000;
    h2_conn_open(&h);
    uint32_t size = 0;
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 0);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_get(&h, id, "/source?n=100000");
    for (int i = 0; i < 1000 && !h.conn.ended; i++) {
        h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, ++size);
        h2_conn_run(&h);
    }
    /* SETTINGS frames also consume the abuse budget: the reason depends on the frame that exhausts it. */
    expect_calm(h.conn.counters.h2_ended[MK_H2_TINY_WINDOWS] ? MK_H2_TINY_WINDOWS : MK_H2_MANY_SETTINGS);
    /* A part of the budget is restored over time: the slower the machine, the larger the part. */
    assert_true(size < 500);
}

static void h2_abuse_endless_continuations_close_connection(void **state)
{
    (void)state;
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, 0, 1, MK_STR(""));
    for (int i = 0; i < 100; i++)
        h2_send_frame(&h.say, MK_H2_CONTINUATION, 0, 1, MK_STR(""));
    h2_conn_run(&h);
    expect_calm(MK_H2_LONG_HEAD);
    assert_int_equal(h.conn.n_records, 0);
}

static void h2_abuse_oversized_head_closes_connection(void **state)
{
    (void)state;
    static char piece[MK_H2_FRAME_MAX];
    h2_expect(&h.client, 1);
    for (unsigned i = 0; i < 8; i++)
        h2_send_frame(&h.say, i ? MK_H2_CONTINUATION : MK_H2_HEADERS, 0, 1, mk_str_of(piece, sizeof piece));
    h2_conn_run(&h);
    expect_calm(MK_H2_LONG_HEAD);
}

/* A few bytes that decode to a huge head: the request is refused before it grows large. */
static void h2_abuse_header_bomb_is_refused(void **state)
{
    (void)state;
    struct mk_buf block = mk_buf_growing(1 << 16);
    char value[3000];
    memset(value, 'b', sizeof value);
    h2_pack(&block, ":method: GET\n:scheme: http\n:authority: a\n:path: /early\n");
    /* inserts "x" with 3000 bytes into the dynamic table */
    mk_buf_add(&block, mk_str_of("\x40\x01x\x7f\xb9\x16", 6));
    mk_buf_add(&block, mk_str_of(value, 3000));
    for (int i = 0; i < 10000; i++)
        mk_buf_add(&block, MK_STR("\xbe"));
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, MK_H2_END_STREAM | MK_H2_END_HEADERS, 1, mk_buf_str(&block));
    h2_conn_get(&h, 3, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 431, NULL);
    h2_conn_expect(&h, 3, 200, "early\n");
    mk_buf_free(&block);
}

/* ---- Normal use ---- */

static void h2_abuse_budget_is_restored_over_time(void **state)
{
    (void)state;
    h.conn.limits.h2.abuse_budget = 10;
    h2_conn_open(&h);
    for (int i = 0; i < 20; i++) {
        h.conn.loop.now_ms += 1000; /* restores a tenth of the budget */
        ping(0);
        h2_conn_send(&h);
        mk_stream_on_input(&h.conn.conn->stream, false);
        h.conn.conn->ops->advance(h.conn.conn);
        h.conn.conn->h2->abuse_refilled_ms -=
            1000; /* moves the refill time back, since the loop sets the clock */
        h2_conn_run(&h);
    }
    assert_int_equal(h.client.n_pongs, 20);
    h2_conn_expect_idle(&h);
}

static void h2_abuse_useful_frames_cost_nothing(void **state)
{
    (void)state;
    h.conn.limits.h2.abuse_budget = 10;
    h.conn.limits.request.content_max = UINT64_MAX;
    h2_conn_open(&h);
    uint32_t id = 1;
    for (; id < 400; id += 2) {
        h2_conn_get(&h, id, "/source?n=2000");
        if (id % 20 == 1)
            h2_send_window_update(&h.client, &h.say, 0, 20000);
        h2_conn_run(&h);
        h2_conn_expect(&h, id, 200, NULL);
    }
    h2_conn_post(&h, id, "/sink", "");
    for (int i = 0; i < 500; i++)
        h2_conn_data(&h, id, "x", false);
    h2_conn_data(&h, id, "", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, id, 200, NULL);
    h2_conn_expect_idle(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_abuse_ping_flood_closes_connection, setup_open),
        fixture_test(h2_abuse_settings_flood_closes_connection, setup_open),
        fixture_test(h2_abuse_unsolicited_settings_acks_close_connection, setup_open),
        fixture_test(h2_abuse_long_settings_cost_more, setup_open),
        fixture_test(h2_abuse_rapid_resets_close_connection, setup_open),
        fixture_test(h2_abuse_provoked_resets_close_connection, setup_open),
        fixture_test(h2_abuse_malformed_requests_close_connection, setup_open),
        fixture_test(h2_abuse_empty_frames_close_connection, setup_open),
        fixture_test(h2_abuse_padding_only_closes_connection, setup_open),
        fixture_test(h2_abuse_streams_over_limit_close_connection, setup_open),
        fixture_test(h2_abuse_priority_flood_closes_connection, setup_open),
        fixture_test(h2_abuse_priority_update_flood_closes_connection, setup_open),
        fixture_test(h2_abuse_unknown_frames_close_connection, setup_open),
        fixture_test(h2_abuse_tiny_window_updates_close_connection, setup_open),
        fixture_test(h2_abuse_tiny_initial_window_steps_close_connection, setup_open),
        fixture_test(h2_abuse_endless_continuations_close_connection, setup_open),
        fixture_test(h2_abuse_oversized_head_closes_connection, setup_open),
        fixture_test(h2_abuse_header_bomb_is_refused, setup_open),
        fixture_test(h2_abuse_budget_is_restored_over_time, setup_open),
        fixture_test(h2_abuse_useful_frames_cost_nothing, setup_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
