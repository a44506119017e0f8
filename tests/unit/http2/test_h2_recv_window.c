/* SPDX-License-Identifier: Apache-2.0 */
/* How much request body data an HTTP/2 connection buffers; streams with unread bodies must leave enough
 * space for the others. */
#include "unit/http2/h2_conn_case.h"

enum { UNREAD_MAX = 256 * 1024, LAST = 2 * H2_CONN_STREAMS - 1 };

static void setup_tight(void)
{
    setup();
    h.conn.limits.h2.unread_max = UNREAD_MAX;
}

static void post(uint32_t id, const char *target, const char *fields)
{
    h2_conn_post(&h, id, target, fields);
    h2_conn_run(&h);
}

/* Sends as much as the windows allow. Returns the number of bytes. */
static size_t fill(uint32_t id)
{
    static char piece[MK_H2_FRAME_MAX];
    size_t sum = 0;
    for (;;) {
        struct h2_stream *s = h2_find(&h.client, id);
        int64_t window = s->upload < h.client.upload ? s->upload : h.client.upload;
        if (window <= 0)
            return sum;
        size_t n = mk_min((size_t)window, sizeof piece);
        h2_send_data(&h.client, &h.say, id, mk_str_of(piece, n), false);
        h2_conn_run(&h);
        sum += n;
    }
}

static void acknowledge(void)
{
    h2_send_frame(&h.say, MK_H2_SETTINGS, MK_H2_ACK, 0, MK_STR(""));
    h2_conn_run(&h);
}

static void expect_upload(uint32_t id, size_t n)
{
    post(id, "/sink", "");
    assert_true(h2_conn_upload(&h, id, n, true));
    h2_conn_expect(&h, id, 200, NULL);
}

/* Expects that nothing is buffered and that the windows are open again, except for amounts not worth a
 * WINDOW_UPDATE. */
static void expect_windows_restored(void)
{
    const struct mk_h2 *h2 = h.conn.conn->h2;
    h2_conn_expect_idle(&h);
    assert_int_equal(h2->held, 0);
    assert_int_equal(h2->spare + h2->share * H2_CONN_STREAMS, UNREAD_MAX - MK_H2_WINDOW);
    assert_int_equal(h.client.upload, h2->receive_window);
    assert_true(h.client.upload > UNREAD_MAX - MK_H2_FRAME_MAX);
}

/* ---- Streams with unread bodies ---- */

static void recv_window_unread_bodies_are_bounded(void **state)
{
    (void)state;
    size_t sum = 0;
    h2_conn_open(&h);
    for (uint32_t id = 1; id <= LAST; id += 2) {
        post(id, "/never", "");
        sum += fill(id);
    }
    assert_true(sum > 0 && sum <= UNREAD_MAX);
    assert_int_equal(h.conn.conn->h2->held, sum);
    for (uint32_t id = 1; id <= LAST; id += 2)
        h2_send_reset(&h.client, &h.say, id, MK_H2_CANCEL);
    h2_conn_run(&h);
    expect_windows_restored();
}

static void recv_window_unread_streams_do_not_block_another(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < LAST; id += 2) {
        post(id, "/never", "");
        fill(id);
    }
    expect_upload(LAST, 1000000);
    for (uint32_t id = 1; id < LAST; id += 2)
        h2_conn_expect_open(&h, id);
}

/* The handlers stop reading the bodies because the client does not read their responses. */
static void recv_window_stalled_echoes_do_not_block_another(void **state)
{
    (void)state;
    size_t sum = 0;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < LAST; id += 2) {
        post(id, "/echo", "");
        sum += fill(id);
    }
    assert_true(sum <= UNREAD_MAX + MK_H2_WINDOW); /* the sum includes bytes that the echo has written */
    assert_true(h.conn.conn->h2->held > UNREAD_MAX / 2 && h.conn.conn->h2->held <= UNREAD_MAX);
    post(LAST, "/sink", "");
    assert_true(h2_conn_upload(&h, LAST, 1000000, true));
    h2_send_window_update(&h.client, &h.say, 0, 10000000);
    h2_conn_run(&h);
    h2_conn_expect(&h, LAST, 200, NULL);
    for (uint32_t id = 1; id < LAST; id += 2) {
        h2_send_window_update(&h.client, &h.say, id, 1000000);
        h2_conn_data(&h, id, "", true);
        h2_conn_run(&h);
        h2_conn_expect(&h, id, 200, NULL);
    }
    expect_windows_restored();
}

/* The handlers time out, and the server discards their buffered bodies. */
static void recv_window_timeouts_return_window(void **state)
{
    (void)state;
    h.conn.limits.request.handler_ms = 50;
    h2_conn_open(&h);
    for (uint32_t id = 1; id <= LAST; id += 2) {
        post(id, "/never", "");
        fill(id);
    }
    for (int i = 0; i < 100 && h.conn.conn->h2->held; i++)
        h2_conn_run_for(&h, 10);
    for (uint32_t id = 1; id <= LAST; id += 2) {
        h2_conn_expect(&h, id, 504, NULL);
        h2_conn_data(&h, id, "", true);
    }
    h2_conn_run(&h);
    expect_windows_restored();
}

/* ---- Bodies that are not buffered ---- */

static void recv_window_closed_streams_return_window(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 200; id += 2) {
        post(id, "/early", "");
        h2_conn_upload(&h, id, 100000, true); /* the body is too large, so the server resets the stream */
        h2_conn_expect(&h, id, 200, "early\n");
        h2_conn_expect_reset(&h, id, MK_H2_NO_ERROR);
        if (h.client.upload >= 10000) { /* the client sends these bytes before it has received the reset */
            static const char late[10000];
            h2_find(&h.client, id)->upload = 0;
            h2_send_data(&h.client, &h.say, id, mk_str_of(late, sizeof late), false);
            h2_conn_run(&h);
        }
        expect_windows_restored();
    }
}

static void recv_window_uploads_return_window(void **state)
{
    (void)state;
    static const char *const fields[] = {"", "content-length: 300000\n"};
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 40; id += 2) {
        post(id, "/sink", fields[id / 2 % 2]);
        assert_true(h2_conn_upload(&h, id, 300000, true));
        h2_conn_expect(&h, id, 200, NULL);
        expect_windows_restored();
    }
}

/* A stream with a Content-Length takes from the spare window only the bytes beyond its share. */
static void recv_window_is_limited_to_content_length(void **state)
{
    (void)state;
    h2_conn_open(&h);
    uint32_t spare = h.conn.conn->h2->spare, share = h.conn.conn->h2->share;
    char fields[64];
    snprintf(fields, sizeof fields, "content-length: %u\n", share + 1000);
    post(1, "/sink", "content-length: 5\n");
    assert_int_equal(h.conn.conn->h2->spare, spare);
    post(3, "/sink", fields);
    assert_int_equal(h.conn.conn->h2->spare, spare - 1000);
    post(5, "/sink", "");
    assert_int_equal(h.conn.conn->h2->spare, spare - 1000 - (spare - 1000) / 2);
    assert_true(h2_conn_upload(&h, 3, share + 1000, true));
    h2_conn_expect(&h, 3, 200, NULL);
    h2_send_reset(&h.client, &h.say, 5, MK_H2_CANCEL);
    h2_conn_run(&h);
    assert_int_equal(h.conn.conn->h2->spare, spare);
}

static enum mk_verdict read_and_wait(struct mk_request *request, struct mk_response *response, void *data)
{
    char buffer[100];
    (void)response;
    (void)data;
    while (mk_request_read(request, buffer, sizeof buffer) > 0)
        ;
    return MK_WAIT;
}

/* The handler has read the whole body, but continues: other streams may use the window. */
static void recv_window_consumed_body_returns_window(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "read_and_wait", .handle = read_and_wait};
    h2_conn_route(&h, &handler);
    h2_conn_open(&h);
    uint32_t spare = h.conn.conn->h2->spare;
    post(1, "/", "");
    assert_true(h.conn.conn->h2->spare < spare);
    h2_conn_data(&h, 1, "x", true);
    h2_conn_run(&h);
    h2_conn_expect_open(&h, 1);
    assert_int_equal(h.conn.conn->h2->spare, spare);
}

/* ---- Clients that have not yet received SETTINGS ---- */

static void early(uint32_t id, size_t n)
{
    static const char content[MK_H2_FRAME_MAX];
    for (size_t part; n > 0; n -= part) {
        part = mk_min(n, sizeof content);
        h2_send_data(&h.client, &h.say, id, mk_str_of(content, part), false);
    }
    h2_conn_run(&h);
}

static void recv_window_early_client_has_initial_window(void **state)
{
    (void)state;
    h2_conn_open(&h);
    assert_true(h.conn.conn->h2->share < 20000);
    h2_conn_post(&h, 1, "/never", "");
    early(1, MK_H2_WINDOW);
    h2_conn_expect_open(&h, 1);
    acknowledge();
    h2_conn_expect_open(&h, 1);
    expect_upload(3, 1000000);
    h2_send_data(&h.client, &h.say, 1, MK_STR("x"), false);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_FLOW_CONTROL_ERROR);
}

/* The stream's window is negative by now, but an empty frame needs none (RFC 9113, section 6.9.1). */
static void recv_window_early_client_may_end_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/never", "");
    early(1, MK_H2_WINDOW);
    acknowledge();
    h2_send_data(&h.client, &h.say, 1, MK_STR(""), true);
    h2_conn_run(&h);
    h2_conn_expect_open(&h, 1);
}

/* One stream has used up the initial window, and the others have used all of the remaining window except for
 * one share. */
static void recv_window_last_share_is_enough(void **state)
{
    (void)state;
    h.conn.limits.h2.unread_max = UNREAD_MAX / 2;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/never", "");
    early(1, MK_H2_WINDOW);
    acknowledge();
    for (uint32_t id = 3; id < LAST; id += 2) {
        post(id, "/echo", "");
        fill(id);
    }
    post(LAST, "/sink", "");
    assert_true(h.client.upload < MK_H2_FRAME_MAX);
    assert_true(h2_conn_upload(&h, LAST, 1000000, true));
}

/* Shares do not limit a client that has not yet received SETTINGS, but the connection window does. */
static void recv_window_early_bodies_are_bounded(void **state)
{
    (void)state;
    h2_conn_open(&h);
    for (uint32_t id = 1; id <= 9; id += 2) {
        post(id, "/never", "");
        early(id, id < 9 ? MK_H2_WINDOW : UNREAD_MAX - 4 * MK_H2_WINDOW);
        h2_conn_expect_open(&h, id);
    }
    assert_int_equal(h.conn.conn->h2->held, UNREAD_MAX);
    post(11, "/never", "");
    early(11, 1);
    h2_conn_expect_failed(&h, MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW);
}

static void recv_window_early_upload_continues(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    early(1, 60000);
    acknowledge();
    assert_true(h2_conn_upload(&h, 1, 900000, true));
    h2_conn_expect(&h, 1, 200, NULL);
    expect_windows_restored();
}

static void recv_window_exceeding_share_after_ack_is_an_error(void **state)
{
    (void)state;
    h2_conn_open(&h);
    acknowledge();
    post(1, "/never", "");
    early(1, h.conn.conn->h2->share + 1);
    h2_conn_expect_reset(&h, 1, MK_H2_FLOW_CONTROL_ERROR);
}

/* ---- Small frames ---- */

/* The server combines small frames into larger buffers, and must keep their bytes in order. */
static void recv_window_frames_of_any_size_are_read_in_order(void **state)
{
    (void)state;
    h2_conn_open(&h);
    post(1, "/echo", "");
    struct mk_buf frames = mk_buf_growing(1 << 20);
    for (size_t i = 0; i < 400; i++) {
        char piece[2000];
        size_t n = i * 997 % sizeof piece;
        for (size_t k = 0; k < n; k++)
            piece[k] = (char)('a' + (frames.len + k) % 23);
        while (h2_find(&h.client, 1)->upload < (int64_t)n) {
            h2_send_window_update(&h.client, &h.say, 0, 10000);
            h2_send_window_update(&h.client, &h.say, 1, 10000);
            h2_conn_run(&h);
        }
        mk_buf_add(&frames, mk_str_of(piece, n));
        h2_send_data(&h.client, &h.say, 1, mk_str_of(piece, n), false);
        if (i % 7 == 0)
            h2_conn_run(&h);
    }
    h2_conn_data(&h, 1, "", true);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_send_window_update(&h.client, &h.say, 1, 1000000);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    struct h2_stream *s = h2_find(&h.client, 1);
    assert_true(mk_str_eq(mk_buf_str(&s->content), mk_buf_str(&frames)));
    mk_buf_free(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(recv_window_unread_bodies_are_bounded, setup_tight),
        fixture_test(recv_window_unread_streams_do_not_block_another, setup_tight),
        fixture_test(recv_window_stalled_echoes_do_not_block_another, setup_tight),
        fixture_test(recv_window_timeouts_return_window, setup_tight),
        fixture_test(recv_window_closed_streams_return_window, setup_tight),
        fixture_test(recv_window_uploads_return_window, setup_tight),
        fixture_test(recv_window_is_limited_to_content_length, setup_tight),
        fixture_test(recv_window_consumed_body_returns_window, setup_tight),
        fixture_test(recv_window_early_client_has_initial_window, setup_tight),
        fixture_test(recv_window_early_client_may_end_stream, setup_tight),
        fixture_test(recv_window_last_share_is_enough, setup_tight),
        fixture_test(recv_window_early_bodies_are_bounded, setup_tight),
        fixture_test(recv_window_early_upload_continues, setup_tight),
        fixture_test(recv_window_exceeding_share_after_ack_is_an_error, setup_tight),
        fixture_test(recv_window_frames_of_any_size_are_read_in_order, setup_tight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
