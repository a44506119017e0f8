/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 connections: how they begin, how requests share them, and errors that end them. */
#include "unit/http2/h2_conn_case.h"

/* ---- Connection preface ---- */

static void h2_preface_exchanges_settings(void **state)
{
    (void)state;
    h2_conn_open(&h);
    assert_int_equal(h.client.streams_max, H2_CONN_STREAMS);
    assert_int_equal(h.client.upload, H2_CONN_UNREAD);
    h2_conn_expect_idle(&h);
}

static void h2_preface_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    h2_init(&h.client);
    conn_open(&h.conn, "");
    h2_send_preface(&h.client, &h.say);
    h2_conn_get(&h, 1, "/early");
    for (size_t i = 0; i < h.say.len; i++) {
        conn_send_bytes(&h.conn, mk_str_of(h.say.p + i, 1));
        conn_run_server(&h.conn);
    }
    mk_buf_clear(&h.say);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "early\n");
    h2_conn_expect_idle(&h);
}

static void h2_preface_and_requests_may_arrive_at_once(void **state)
{
    (void)state;
    h2_init(&h.client);
    h2_send_preface(&h.client, &h.say);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_data(&h, 1, "xxx", true);
    h2_conn_get(&h, 3, "/early");
    mk_buf_add_char(&h.say, '\0');
    h.say.len--;
    conn_open(&h.conn, "");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect(&h, 3, 200, "early\n");
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 2);
}

static void h2_preface_malformed_fails_connection(void **state)
{
    (void)state;
    h2_init(&h.client);
    conn_open(&h.conn, "PRI * HTTP/2.0\r\n\r\n");
    conn_send(&h.conn, "SM\r\n\rX");
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
    assert_int_equal(h.conn.n_records, 0);
}

static void h2_off_responds_505(void **state)
{
    (void)state;
    h.conn.limits.h2.on = false;
    conn_open(&h.conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    conn_run(&h.conn);
    conn_expect(&h.conn, 505, NULL);
}

static void h2_preface_without_settings_fails_connection(void **state)
{
    (void)state;
    h2_init(&h.client);
    conn_open(&h.conn, "");
    mk_buf_add(&h.say, MK_H2_PREFACE);
    mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
}

/* ---- Requests ---- */

static void h2_many_requests_in_one_piece_are_served(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_get(&h, id, id % 4 == 1 ? "/early" : "/source?n=3000");
    h2_conn_run(&h);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2) {
        h2_conn_expect(&h, id, 200, id % 4 == 1 ? "early\n" : NULL);
        if (id % 4 != 1)
            assert_int_equal(h2_find(&h.client, id)->content.len, 3000);
    }
    assert_int_equal(h.conn.n_records, H2_CONN_STREAMS);
    h2_conn_expect_idle(&h);
}

static void h2_waiting_stream_does_not_block_others(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/slow?ms=30");
    h2_conn_get(&h, 3, "/never");
    h2_conn_get(&h, 5, "/early");
    h2_conn_get(&h, 7, "/thread");
    h2_conn_get(&h, 9, "/drip?ms=2");
    h2_conn_run(&h);
    h2_conn_expect(&h, 5, 200, "early\n");
    h2_conn_expect_open(&h, 1);
    for (int i = 0; i < 200 && h.conn.n_records < 4; i++)
        h2_conn_run_for(&h, 5);
    h2_conn_expect(&h, 1, 200, "slow\n");
    h2_conn_expect(&h, 7, 200, "thread\n");
    h2_conn_expect(&h, 9, 200, "abcde");
    h2_conn_expect_open(&h, 3);
    assert_int_equal(h.conn.conn->h2->n_streams, 1);
}

static void h2_responses_without_body_end_stream(void **state)
{
    (void)state;
    site_add(&h.conn.site, "page.html", MK_STR("page"));
    h2_conn_open(&h);
    h2_send_request(&h.client, &h.say, 1, "HEAD", "/page.html", true, "");
    h2_send_request(&h.client, &h.say, 3, "HEAD", "/source?n=100000000", true, "");
    h2_send_request(&h.client, &h.say, 5, "GET", "/page.html", true,
                    "if-modified-since: Fri, 01 Jan 2100 00:00:00 GMT\n");
    h2_send_request(&h.client, &h.say, 7, "OPTIONS", "*", true, "");
    h2_send_request(&h.client, &h.say, 9, "HEAD", "/nothing", true, "");
    h2_send_request(&h.client, &h.say, 11, "GET", "/page.html", true, "");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "");
    assert_int_equal(h2_find(&h.client, 1)->length, 4);
    h2_conn_expect(&h, 3, 200, "");
    assert_int_equal(h2_find(&h.client, 3)->length, 100000000);
    h2_conn_expect(&h, 5, 304, "");
    assert_int_equal(h2_find(&h.client, 5)->length, UINT64_MAX);
    h2_conn_expect(&h, 7, 200, "");
    h2_conn_expect(&h, 9, 404, "");
    h2_conn_expect(&h, 11, 200, "page");
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 6);
}

static void h2_invalid_requests_get_error_responses(void **state)
{
    (void)state;
    char path[2000] = "/";
    memset(path + 1, 'p', sizeof path - 2);
    h2_conn_open(&h);
    h2_conn_get(&h, 1, path);
    h2_send_request(&h.client, &h.say, 3, "GET", "/%zz", true, "");
    h2_send_request(&h.client, &h.say, 5, "GET", "/early", true, "expect: something\n");
    h2_send_request(&h.client, &h.say, 7, "BREW", "/early", true, "");
    h2_send_headers(&h.client, &h.say, 9, MK_H2_END_STREAM, ":method: GET\n:scheme: http\n:path: /early\n");
    h2_send_request(&h.client, &h.say, 11, "POST", "/sink", false, "content-length: 99999999\n");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 414, NULL);
    h2_conn_expect(&h, 3, 400, NULL);
    h2_conn_expect(&h, 5, 417, NULL);
    h2_conn_expect(&h, 7, 200, NULL);
    h2_conn_expect(&h, 9, 400, NULL);
    h2_conn_expect(&h, 11, 413, NULL);
    assert_int_equal(h.conn.n_records, 6);
}

static void h2_malformed_requests_are_reset(void **state)
{
    (void)state;
    static const char *const bad[] = {
        ":method: GET\n:path: /\n",
        ":method: GET\n:scheme: http\n:path: /\nX-Upper: x\n",
        ":method: GET\n:scheme: http\n:path: /\nconnection: close\n",
        ":method: GET\n:scheme: http\n:path: /\nte: gzip\n",
        ":method: GET\n:scheme: http\n:path: /\nhost: a\n:authority: a\n",
        ":method: GET\n:scheme: http\n:path: /\n:status: 200\n",
        ":method: GET\n:scheme: http\n:path: /\n:authority: a\ncontent-length: 5\n",
    };
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(bad); i++)
        h2_send_headers(&h.client, &h.say, 1 + 2 * i, MK_H2_END_STREAM, bad[i]);
    h2_conn_get(&h, 101, "/early");
    h2_conn_run(&h);
    for (uint32_t i = 0; i < MK_LEN(bad); i++)
        if (i != 1) /* h2_pack() would convert upper case to lower case */
            h2_conn_expect_reset(&h, 1 + 2 * i, MK_H2_PROTOCOL_ERROR);
    h2_conn_expect(&h, 101, 200, "early\n");
    assert_int_equal(h.conn.n_records, MK_LEN(bad) + 1);
    h2_conn_expect_idle(&h);
}

static void h2_head_may_span_continuation_frames(void **state)
{
    (void)state;
    struct mk_buf block = mk_buf_growing(1 << 16);
    h2_pack(&block, ":method: GET\n:scheme: http\n:authority: a\n:path: /early\nx-a: b\n");
    h2_conn_open(&h);
    h2_expect(&h.client, 1);
    for (size_t i = 0; i < block.len; i += 4) {
        mk_str piece = mk_str_first(mk_str_skip(mk_buf_str(&block), i), 4);
        h2_send_frame(&h.say, i ? MK_H2_CONTINUATION : MK_H2_HEADERS,
                      (i ? 0 : MK_H2_END_STREAM) | (i + 4 >= block.len ? MK_H2_END_HEADERS : 0), 1, piece);
        h2_conn_run(&h);
    }
    h2_conn_expect(&h, 1, 200, "early\n");
    /* Sends an empty HEADERS and an empty CONTINUATION frame, then all fields in a second CONTINUATION. */
    h2_expect(&h.client, 3);
    h2_send_frame(&h.say, MK_H2_HEADERS, MK_H2_END_STREAM, 3, MK_STR(""));
    h2_send_frame(&h.say, MK_H2_CONTINUATION, 0, 3, MK_STR(""));
    h2_send_frame(&h.say, MK_H2_CONTINUATION, MK_H2_END_HEADERS, 3, mk_buf_str(&block));
    h2_conn_run(&h);
    h2_conn_expect(&h, 3, 200, "early\n");
    h2_conn_expect_idle(&h);
    mk_buf_free(&block);
}

static void h2_padding_and_old_priorities_are_skipped(void **state)
{
    (void)state;
    struct mk_buf block = mk_buf_growing(1 << 16);
    mk_buf_add(&block, mk_str_of("\x05\0\0\0\x03\x10", 6));
    h2_pack(&block, ":method: POST\n:scheme: http\n:authority: a\n:path: /echo\n");
    mk_buf_add(&block, mk_str_of("\0\0\0\0\0", 5));
    h2_conn_open(&h);
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, MK_H2_END_HEADERS | MK_H2_PADDED | MK_H2_WITH_PRIORITY, 1,
                  mk_buf_str(&block));
    h2_send_frame(&h.say, MK_H2_DATA, MK_H2_PADDED, 1, mk_str_of("\x02one\0\0", 6));
    h2_send_frame(&h.say, MK_H2_DATA, MK_H2_PADDED, 1, mk_str_of("\x03\0\0\0", 4));
    h2_send_frame(&h.say, MK_H2_DATA, MK_H2_PADDED | MK_H2_END_STREAM, 1, mk_str_of("\0two", 4));
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "onetwo");
    h2_conn_expect_idle(&h);
    mk_buf_free(&block);
}

/* ---- Connection-level frames ---- */

static void h2_ping_is_acknowledged(void **state)
{
    (void)state;
    h2_conn_open(&h);
    mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
    h2_conn_run(&h);
    assert_int_equal(h.client.n_pongs, 1);
    assert_memory_equal(h.client.ping, "12345678", 8);
    mk_h2_frame_emit_ping(&h.say, true, MK_STR("12345678")); /* unsolicited */
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
}

static void h2_unknown_frames_and_settings_are_ignored(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_send_frame(&h.say, 0x77, 0xff, 0, MK_STR("whatever"));
    h2_send_frame(&h.say, 0x77, 0xff, 7, MK_STR(""));
    h2_send_setting(&h.client, &h.say, (enum mk_h2_setting)0x4444, 77);
    h2_send_setting(&h.client, &h.say, MK_H2_MAX_FRAME_SIZE, 0xffffff);
    h2_send_frame(&h.say, MK_H2_PRIORITY, MK_H2_PADDED, 3, mk_str_of("\0\0\0\0\x03", 5));
    h2_conn_get(&h, 1, "/source?n=50000");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect_idle(&h);
    assert_int_equal(h.client.n_pending, 0);
}

static void h2_invalid_frames_fail_connection(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, flags;
        uint32_t stream;
        mk_str payload;
        enum mk_h2_error error;
        enum mk_h2_reason why;
    } bad[] = {
        {MK_H2_DATA, 0, 0, MK_STR_INIT("x"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_DATA, 0, 9, MK_STR_INIT("x"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_DATA, MK_H2_PADDED, 1, MK_STR_INIT("\5x"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_DATA, MK_H2_PADDED, 1, MK_STR_INIT(""), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_HEADERS, 4, 2, MK_STR_INIT("\x82"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_HEADERS, 4, 9, MK_STR_INIT("\xff"), MK_H2_COMPRESSION_ERROR, MK_H2_BAD_COMPRESSION},
        {MK_H2_HEADERS, 0x24, 9, MK_STR_INIT("\0\0\0\x09\x01\x82"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_HEADERS, 0x24, 9, MK_STR_INIT("\0\0\0"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PRIORITY, 0, 1, MK_STR_INIT("\0\0\0"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_PRIORITY, 0, 7, MK_STR_INIT("\0\0\0\x07\x01"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_RST_STREAM, 0, 9, MK_STR_INIT("\0\0\0\x08"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_RST_STREAM, 0, 1, MK_STR_INIT("\0"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_SETTINGS, 0, 1, MK_STR_INIT(""), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_SETTINGS, 0, 0, MK_STR_INIT("xxxxx"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_SETTINGS, 1, 0, MK_STR_INIT("xxxxxx"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_SETTINGS, 0, 0, MK_STR_INIT("\0\2\0\0\0\2"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_SETTINGS, 0, 0, MK_STR_INIT("\0\4\x80\0\0\0"), MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW},
        {MK_H2_SETTINGS, 0, 0, MK_STR_INIT("\0\5\0\0\x3f\xff"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_SETTINGS, 0, 0, MK_STR_INIT("\0\5\1\0\0\0"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PUSH_PROMISE, 4, 1, MK_STR_INIT("\0\0\0\2"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PING, 0, 1, MK_STR_INIT("12345678"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PING, 0, 0, MK_STR_INIT("1234567"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_GOAWAY, 0, 0, MK_STR_INIT("1234567"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
        {MK_H2_WINDOW_UPDATE, 0, 0, MK_STR_INIT("\0\0\0\0"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_WINDOW_UPDATE, 0, 9, MK_STR_INIT("\0\0\1\1"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_WINDOW_UPDATE, 0, 0, MK_STR_INIT("\x7f\xff\xff\xff"), MK_H2_FLOW_CONTROL_ERROR,
         MK_H2_BAD_FLOW},
        {MK_H2_CONTINUATION, 4, 1, MK_STR_INIT("\x82"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PRIORITY_UPDATE, 0, 0, MK_STR_INIT("\0\0\0\0u=1"), MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL},
        {MK_H2_PRIORITY_UPDATE, 0, 0, MK_STR_INIT("\0\0\0"), MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE},
    };
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        memset(&h.conn.counters, 0, sizeof h.conn.counters);
        h.conn.n_records = 0;
        h2_conn_open(&h);
        h2_conn_post(&h, 1, "/sink", "");
        h2_conn_run(&h);
        h2_send_frame(&h.say, bad[i].type, bad[i].flags, bad[i].stream, bad[i].payload);
        h2_conn_get(&h, 11, "/early"); /* the server no longer reads */
        h2_conn_run(&h);
        h2_conn_expect_failed(&h, bad[i].error, bad[i].why);
        assert_int_equal(h.conn.outcomes[0], MK_OUTCOME_REJECTED);
        assert_true(h.conn.n_records <= 2);
        assert_int_equal(h2_find(&h.client, 11)->status, 0);
    }
}

static void h2_oversized_frame_fails_connection_at_once(void **state)
{
    (void)state;
    h2_conn_open(&h);
    mk_buf_add(&h.say, mk_str_of("\0\x40\x01\0\0\0\0\0\x01", 9));
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_FRAME_SIZE_ERROR, MK_H2_BAD_FRAME_SIZE);
}

static void h2_continuation_of_other_stream_fails_connection(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, MK_H2_END_STREAM, 1, MK_STR("\x82"));
    h2_send_frame(&h.say, MK_H2_CONTINUATION, MK_H2_END_HEADERS, 3, MK_STR("\x86"));
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
}

static void h2_frame_between_continuations_fails_connection(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_expect(&h.client, 1);
    h2_send_frame(&h.say, MK_H2_HEADERS, MK_H2_END_STREAM, 1, MK_STR("\x82"));
    mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
    assert_int_equal(h.conn.n_records, 0);
}

/* ---- Closed streams ---- */

static void h2_frame_after_end_stream_resets_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_run(&h);
    h2_conn_data(&h, 1, "x", false);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_STREAM_CLOSED);
    h2_conn_expect_records(&h, 1, 0, MK_OUTCOME_REJECTED);
    h2_conn_get(&h, 3, "/early");
    h2_conn_run(&h);
    h2_conn_data(&h, 3, "x", true);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
    h2_conn_get(&h, 5, "/early");
    h2_conn_run(&h);
    h2_conn_get(&h, 5, "/early");
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_STREAM_CLOSED, MK_H2_STREAM_ENDED);
}

/* The client had sent these frames before it received our RST_STREAM. */
static void h2_frames_after_our_reset_are_ignored(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/never", "content-length: 3\n");
    h2_conn_data(&h, 1, "xxxx", false); /* more bytes than announced */
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_PROTOCOL_ERROR);
    unsigned n_before = h.client.n_log;
    h2_conn_data(&h, 1, "yyy", false);
    mk_h2_frame_emit_window_update(&h.say, 1, 1000);
    h2_send_headers(&h.client, &h.say, 1, MK_H2_END_STREAM, "x-trailer: x\n");
    h2_send_reset(&h.client, &h.say, 1, MK_H2_CANCEL);
    h2_conn_run(&h);
    assert_int_equal(h.client.n_log, n_before);
    h2_conn_expect_idle(&h);
    h2_conn_expect_records(&h, 1, 0, MK_OUTCOME_REJECTED);
}

static void h2_client_reset_cancels_request(void **state)
{
    (void)state;
    static const char *const targets[] = {"/never", "/slow?ms=5", "/drip?ms=5", "/source?n=10000000",
                                          "/thread"};
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(targets); i++)
        h2_conn_get(&h, 1 + 2 * i, targets[i]);
    h2_conn_post(&h, 21, "/sink", "");
    h2_conn_post(&h, 23, "/echo", "");
    h2_conn_run(&h);
    assert_int_equal(h.conn.n_records, 0);
    for (uint32_t i = 0; i < MK_LEN(targets); i++)
        h2_send_reset(&h.client, &h.say, 1 + 2 * i, MK_H2_CANCEL);
    h2_send_reset(&h.client, &h.say, 21, MK_H2_CANCEL);
    h2_send_reset(&h.client, &h.say, 23, MK_H2_CANCEL);
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
    h2_conn_expect_records(&h, MK_LEN(targets) + 2, 200, MK_OUTCOME_CLIENT_ABORTED);
    h2_conn_run_for(&h, 50); /* lets late timers fire and late threads finish */
    h2_conn_expect_idle(&h);
}

/* A client may skip stream IDs; the skipped streams are closed. */
static void h2_stream_ids_may_be_skipped(void **state)
{
    (void)state;
    static const uint32_t ids[] = {1, 33, 65, 1001, MK_H2_STREAM_MAX - 32, MK_H2_STREAM_MAX};
    h2_conn_open(&h);
    for (size_t i = 0; i < MK_LEN(ids); i++)
        h2_conn_post(&h, ids[i], "/echo", "");
    h2_conn_run(&h);
    for (size_t i = 0; i < MK_LEN(ids); i++)
        h2_conn_data(&h, ids[i], i % 2 ? "odd" : "even", true);
    h2_conn_run(&h);
    for (size_t i = 0; i < MK_LEN(ids); i++)
        h2_conn_expect(&h, ids[i], 200, i % 2 ? "odd" : "even");
    h2_conn_expect_idle(&h);
    mk_h2_frame_emit_window_update(&h.say, 35, 100); /* stream 35 is closed, not idle */
    h2_conn_run(&h);
    h2_conn_expect_idle(&h);
}

static enum mk_verdict handle_with_delay(struct mk_request *request, struct mk_response *response, void *data)
{
    unsigned *turns = mk_request_data(request);
    (void)data;
    if (!turns && (turns = mk_request_alloc(request, sizeof *turns))) {
        *turns = 20;
        mk_request_set_data(request, turns);
    }
    if (!turns || --*turns == 0)
        return handlers_respond(response, MK_STR("well\n"));
    mk_request_resume(request);
    return MK_WAIT;
}

static void h2_handler_may_yield(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "hesitate", .handle = handle_with_delay};
    h2_conn_route(&h, &handler);
    h.conn.limits.request.handler_ms = 1;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 10; id += 2)
        h2_conn_get(&h, id, "/");
    h2_conn_send(&h);
    conn_run_server(&h.conn);
    assert_int_equal(h.conn.n_records, 0);
    for (int i = 0; i < 20; i++)
        h2_conn_run(&h);
    for (uint32_t id = 1; id < 10; id += 2)
        h2_conn_expect(&h, id, 200, "well\n");
    h2_conn_expect_idle(&h);
}

/* ---- Too many streams ---- */

static void h2_streams_over_limit_are_refused(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_get(&h, id, "/never");
    h2_conn_get(&h, 101, "/early");
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 101, MK_H2_REFUSED_STREAM);
    h2_send_reset(&h.client, &h.say, 1, MK_H2_CANCEL);
    h2_conn_get(&h, 103, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 103, 200, "early\n");
    assert_int_equal(h.conn.n_records, 2);
}

/* A client may send requests before it has received the stream limit. */
static void h2_refused_streams_may_have_body(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_get(&h, id, "/never");
    for (uint32_t id = 101; id < 101 + 2 * 8; id += 2) {
        h2_conn_post(&h, id, "/sink", "");
        for (int i = 0; i < 4; i++)
            h2_conn_data(&h, id, "some of it", false);
        h2_send_headers(&h.client, &h.say, id, MK_H2_END_STREAM, "x-trailer: x\n");
    }
    h2_conn_run(&h);
    for (uint32_t id = 101; id < 101 + 2 * 8; id += 2)
        h2_conn_expect_reset(&h, id, MK_H2_REFUSED_STREAM);
    assert_int_equal(h.client.n_goaways, 0);
    assert_int_equal(h.conn.n_records, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_preface_exchanges_settings, setup),
        fixture_test(h2_preface_may_arrive_byte_by_byte, setup),
        fixture_test(h2_preface_and_requests_may_arrive_at_once, setup),
        fixture_test(h2_preface_malformed_fails_connection, setup),
        fixture_test(h2_off_responds_505, setup),
        fixture_test(h2_preface_without_settings_fails_connection, setup),
        fixture_test(h2_many_requests_in_one_piece_are_served, setup),
        fixture_test(h2_waiting_stream_does_not_block_others, setup),
        fixture_test(h2_responses_without_body_end_stream, setup),
        fixture_test(h2_invalid_requests_get_error_responses, setup),
        fixture_test(h2_malformed_requests_are_reset, setup),
        fixture_test(h2_head_may_span_continuation_frames, setup),
        fixture_test(h2_padding_and_old_priorities_are_skipped, setup),
        fixture_test(h2_ping_is_acknowledged, setup),
        fixture_test(h2_unknown_frames_and_settings_are_ignored, setup),
        fixture_test(h2_invalid_frames_fail_connection, setup),
        fixture_test(h2_oversized_frame_fails_connection_at_once, setup),
        fixture_test(h2_continuation_of_other_stream_fails_connection, setup),
        fixture_test(h2_frame_between_continuations_fails_connection, setup),
        fixture_test(h2_frame_after_end_stream_resets_stream, setup),
        fixture_test(h2_frames_after_our_reset_are_ignored, setup),
        fixture_test(h2_client_reset_cancels_request, setup),
        fixture_test(h2_stream_ids_may_be_skipped, setup),
        fixture_test(h2_handler_may_yield, setup),
        fixture_test(h2_streams_over_limit_are_refused, setup),
        fixture_test(h2_refused_streams_may_have_body, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
