/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 request bodies: read on demand, flow-controlled, limited, and discarded if the handler does not
 * read them. */
#include "unit/http2/h2_conn_case.h"

enum { WIDE = 256 * 1024 };

static const char *sum_of(size_t n, char buffer[64])
{
    struct handlers_sum s = {0};
    for (size_t i = 0; i < n; i++)
        handlers_add(&s, "x", 1);
    snprintf(buffer, 64, "%llu %llu\n", (unsigned long long)s.n, (unsigned long long)s.sum);
    return buffer;
}

static struct h2_stream *open_post(uint32_t id, const char *target, const char *fields)
{
    struct h2_stream *s = h2_conn_post(&h, id, target, fields);
    h2_conn_run(&h);
    return s;
}

/* ---- Reading ---- */

static void h2_body_of_any_length_is_read(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, MK_H2_FRAME_MAX, MK_H2_WINDOW, MK_H2_WINDOW + 1, 1000000};
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(sizes) * 2; i++) {
        char buffer[64], fields[64] = "";
        if (i % 2)
            snprintf(fields, sizeof fields, "content-length: %zu\n", sizes[i / 2]);
        open_post(1 + 2 * i, "/sink", fields);
        assert_true(h2_conn_upload(&h, 1 + 2 * i, sizes[i / 2], true));
        h2_conn_expect(&h, 1 + 2 * i, 200, sum_of(sizes[i / 2], buffer));
        h2_conn_expect_idle(&h);
    }
}

static void h2_body_may_arrive_byte_by_byte(void **state)
{
    (void)state;
    char buffer[64];
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_data(&h, 1, "xxx", false);
    h2_conn_data(&h, 1, "xx", true);
    for (size_t i = 0; i < h.say.len; i++) {
        conn_send_bytes(&h.conn, mk_str_of(h.say.p + i, 1));
        conn_run_server(&h.conn);
    }
    mk_buf_clear(&h.say);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, sum_of(5, buffer));
}

static void h2_body_concurrent_uploads_succeed(void **state)
{
    (void)state;
    char buffer[64];
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_post(&h, id, "/sink", "");
    h2_conn_run(&h);
    for (int round = 0; round < 20; round++)
        for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
            assert_true(h2_conn_upload(&h, id, 10000, round == 19));
    for (uint32_t id = 1; id < 2 * H2_CONN_STREAMS; id += 2)
        h2_conn_expect(&h, id, 200, sum_of(200000, buffer));
    h2_conn_expect_idle(&h);
}

static void h2_body_is_echoed_as_it_arrives(void **state)
{
    (void)state;
    h2_conn_open(&h);
    struct h2_stream *s = open_post(1, "/echo", "");
    assert_int_equal(s->status, 200);
    h2_conn_data(&h, 1, "one", false);
    h2_conn_run(&h);
    assert_str(mk_buf_str(&s->content), "one");
    h2_conn_data(&h, 1, "two", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "onetwo");
    open_post(3, "/echo", "content-length: 200000\n");
    assert_true(h2_conn_upload(&h, 3, 60000, false));
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_send_window_update(&h.client, &h.say, 3, 1000000);
    assert_true(h2_conn_upload(&h, 3, 140000, true));
    h2_conn_expect(&h, 3, 200, NULL);
    h2_conn_expect_idle(&h);
}

/* ---- Flow control ---- */

/* The server buffers an unread body until its stream window is used up; the connection window stays open. */
static void h2_body_unread_closes_only_its_stream_window(void **state)
{
    (void)state;
    char buffer[64];
    h2_conn_open(&h);
    struct h2_stream *idle = open_post(1, "/never", "");
    assert_false(h2_conn_upload(&h, 1, 200000, false));
    assert_int_equal(idle->upload, 0);
    assert_true(h.client.upload > 900000);
    open_post(3, "/sink", "");
    assert_true(h2_conn_upload(&h, 3, 1000000, true));
    h2_conn_expect(&h, 3, 200, sum_of(1000000, buffer));
    assert_int_equal(idle->upload, 0);
    h2_conn_expect_open(&h, 1);
}

/* The client does not read the echoed body: the server stops reading as well, and buffers a bounded
 * amount. */
static void h2_body_slow_echo_is_bounded(void **state)
{
    (void)state;
    h.conn.limits.request.content_max = UINT64_MAX;
    h2_conn_open(&h);
    struct h2_stream *s = open_post(1, "/echo", "");
    assert_false(h2_conn_upload(&h, 1, 2000000, false));
    size_t sent = (size_t)(MK_H2_WINDOW + WIDE);
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    assert_true(s->upload == 0 && s->content.len <= sent);
    h2_send_window_update(&h.client, &h.say, 0, 10000000);
    h2_send_window_update(&h.client, &h.say, 1, 10000000);
    h2_conn_run(&h);
    assert_true(s->content.len > MK_H2_WINDOW && s->content.len <= sent);
    assert_true(h2_conn_upload(&h, 1, 1000000, true));
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect_idle(&h);
}

static void h2_body_beyond_window_resets_stream(void **state)
{
    (void)state;
    static char piece[MK_H2_FRAME_MAX];
    h2_conn_open(&h);
    open_post(1, "/never", "");
    for (int i = 0; i < 5; i++)
        h2_send_data(&h.client, &h.say, 1, mk_str_of(piece, sizeof piece), false);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_FLOW_CONTROL_ERROR);
    h2_conn_expect_records(&h, 1, 0, MK_OUTCOME_REJECTED);
    h2_conn_expect_idle(&h);
}

/* Padding counts toward flow control. */
static void h2_body_padding_is_returned_to_window(void **state)
{
    (void)state;
    static char padded[10000];
    padded[0] = (char)255;
    padded[10000 - 256] = 'x';
    h2_conn_open(&h);
    struct h2_stream *s = open_post(1, "/sink", "");
    for (int i = 0; i < 100; i++) {
        h2_send_frame(&h.say, MK_H2_DATA, MK_H2_PADDED, 1, mk_str_of(padded, 257));
        s->upload -= 257;
        h.client.upload -= 257;
        h2_conn_run(&h);
        assert_true(s->upload > 0 && h.client.upload > 0);
    }
    assert_true(s->upload > MK_H2_WINDOW);
    h2_conn_data(&h, 1, "", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
}

/* ---- Lengths ---- */

static void h2_body_length_mismatch_resets_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    open_post(1, "/sink", "content-length: 3\n");
    h2_conn_data(&h, 1, "xxxx", true);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_PROTOCOL_ERROR);
    open_post(3, "/sink", "content-length: 3\n");
    h2_conn_data(&h, 3, "xx", true);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 3, MK_H2_PROTOCOL_ERROR);
    open_post(5, "/early", "content-length: 3\n"); /* this request already has its response */
    h2_conn_data(&h, 5, "xxxx", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 5, 200, "early\n");
    assert_int_equal(h.conn.n_records, 3);
    h2_conn_expect_idle(&h);
}

static void h2_body_over_limit_gets_413(void **state)
{
    (void)state;
    char buffer[64];
    h.conn.limits.request.content_max = 1000;
    h2_conn_open(&h);
    open_post(1, "/sink", "content-length: 1001\n");
    h2_conn_expect(&h, 1, 413, NULL);
    open_post(3, "/sink", "");
    h2_conn_upload(&h, 3, 1001, true);
    h2_conn_expect(&h, 3, 413, NULL);
    open_post(5, "/sink", "content-length: 1000\n");
    h2_conn_upload(&h, 5, 1000, true);
    h2_conn_expect(&h, 5, 200, sum_of(1000, buffer));
    open_post(7, "/sink", "content-length: 18446744073709551615\n");
    h2_conn_expect(&h, 7, 413, NULL);
    h.conn.limits.request_max = 100;
    h2_conn_get(&h, 9, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 9, 413, NULL);
    assert_int_equal(h.conn.n_records, 5);
}

/* The server drains a moderate remainder, because some clients read the response only after their upload. */
static void h2_body_over_limit_is_drained(void **state)
{
    (void)state;
    h.conn.limits.request.content_max = 60000;
    h2_conn_open(&h);
    open_post(1, "/sink", "");
    assert_true(h2_conn_upload(&h, 1, 60000, false));
    h2_conn_expect_open(&h, 1);
    assert_true(h2_conn_upload(&h, 1, 30000, true));
    h2_conn_expect(&h, 1, 413, NULL);
    assert_false(h2_find(&h.client, 1)->reset);
    h2_conn_expect_idle(&h);
    open_post(3, "/sink", "");
    h2_conn_upload(&h, 3, 500000, true);
    h2_conn_expect(&h, 3, 413, NULL);
    h2_conn_expect_reset(&h, 3, MK_H2_NO_ERROR);
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 2);
}

/* ---- Expect ---- */

static void h2_body_read_sends_100_continue(void **state)
{
    (void)state;
    static const char *const targets[] = {"/sink", "/echo", "/sip"};
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(targets); i++) {
        uint32_t id = 1 + 2 * i;
        struct h2_stream *s = open_post(id, targets[i], "content-length: 3\nexpect: 100-continue\n");
        assert_int_equal(s->n_interim, 1);
        h2_conn_data(&h, id, "xxx", true);
        h2_conn_run(&h);
        h2_conn_expect(&h, id, 200, NULL);
        assert_int_equal(s->n_interim, 1);
    }
    h2_conn_expect_idle(&h);
}

static void h2_body_unread_sends_no_100_continue(void **state)
{
    (void)state;
    h2_conn_open(&h);
    open_post(1, "/early", "content-length: 3\nexpect: 100-continue\n");
    open_post(3, "/nothing", "expect: 100-continue\n");
    open_post(5, "/sink", "content-length: 99999999\nexpect: 100-continue\n");
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect(&h, 3, 405, NULL);
    h2_conn_expect(&h, 5, 413, NULL);
    /* this client does not wait for the 100 response */
    h2_conn_post(&h, 7, "/sink", "content-length: 3\nexpect: 100-continue\n");
    h2_conn_data(&h, 7, "xxx", true);
    h2_conn_run(&h);
    for (uint32_t id = 1; id <= 5; id += 2)
        assert_int_equal(h2_find(&h.client, id)->n_interim, 0);
    h2_conn_expect(&h, 7, 200, NULL);
}

/* ---- Unread bodies ---- */

static void h2_body_small_unread_rest_is_drained(void **state)
{
    (void)state;
    h2_conn_open(&h);
    open_post(1, "/early", "");
    h2_conn_expect(&h, 1, 200, "early\n");
    assert_int_equal(h.conn.n_records, 1); /* the request completes with the response */
    assert_true(h2_conn_upload(&h, 1, 60000, true));
    assert_false(h2_find(&h.client, 1)->reset);
    open_post(5, "/slow?ms=20", "");
    /* buffered until the server knows that no handler reads it */
    assert_true(h2_conn_upload(&h, 5, 60000, false));
    h2_conn_run_for(&h, 60);
    h2_conn_expect(&h, 5, 200, "slow\n");
    assert_true(h2_conn_upload(&h, 5, 60000, true));
    assert_false(h2_find(&h.client, 5)->reset);
    open_post(7, "/sip?n=100", "content-length: 70000\n");
    assert_true(h2_conn_upload(&h, 7, 50000, false));
    h2_conn_expect(&h, 7, 200, "sip\n");
    assert_true(h2_conn_upload(&h, 7, 20000, true)); /* the handler read only a part of the announced body */
    assert_int_equal(h.conn.n_records, 3);
    h2_conn_expect_idle(&h);
}

static void h2_body_large_unread_rest_resets_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    open_post(1, "/early", "content-length: 70000\n");
    h2_conn_expect(&h, 1, 200, "early\n");
    h2_conn_expect_reset(&h, 1, MK_H2_NO_ERROR);
    open_post(3, "/early", "");
    h2_conn_upload(&h, 3, 200000, true);
    h2_conn_expect(&h, 3, 200, "early\n");
    h2_conn_expect_reset(&h, 3, MK_H2_NO_ERROR);
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 2);
    assert_int_equal(h.conn.outcomes[1], MK_OUTCOME_OK);
}

static void h2_body_partly_read_is_drained(void **state)
{
    (void)state;
    h2_conn_open(&h);
    open_post(1, "/sip?n=100000", "");
    assert_true(h2_conn_upload(&h, 1, 120000, true));
    h2_conn_expect(&h, 1, 200, "sip\n");
    h2_conn_expect_idle(&h);
}

/* ---- Trailers and half-close ---- */

static void h2_body_trailers_end_body(void **state)
{
    (void)state;
    char buffer[64];
    h2_conn_open(&h);
    open_post(1, "/sink", "");
    h2_conn_data(&h, 1, "xxx", false);
    h2_send_headers(&h.client, &h.say, 1, MK_H2_END_STREAM, "x-trailer: x\ncontent-length: 5\n");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, sum_of(3, buffer));
    open_post(3, "/sink", "content-length: 3\n");
    h2_conn_data(&h, 3, "xx", false);
    h2_send_headers(&h.client, &h.say, 3, MK_H2_END_STREAM, "x-trailer: x\n");
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 3, MK_H2_PROTOCOL_ERROR);
    open_post(5, "/sink", "");
    h2_send_headers(&h.client, &h.say, 5, 0, "x-trailer: x\n");
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 5, MK_H2_PROTOCOL_ERROR);
    open_post(7, "/early", ""); /* the server only discards this body, including its trailers */
    h2_send_headers(&h.client, &h.say, 7, MK_H2_END_STREAM, "x-trailer: x\n");
    h2_conn_run(&h);
    h2_conn_expect(&h, 7, 200, "early\n");
    h2_conn_expect_idle(&h);
    assert_int_equal(h.conn.n_records, 4);
}

static void h2_body_cut_off_fails_request(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_post(&h, 1, "/sink", "");
    h2_conn_post(&h, 3, "/echo", "");
    h2_conn_post(&h, 5, "/early", "");
    h2_conn_get(&h, 7, "/slow?ms=20");
    h2_conn_data(&h, 1, "xxx", false);
    h2_conn_data(&h, 3, "xxx", false);
    h2_conn_run(&h);
    shutdown(h.conn.fd, SHUT_WR);
    for (int i = 0; i < 100 && !h.conn.ended && !h.conn.reset; i++)
        h2_conn_run_for(&h, 5);
    assert_true(h.conn.ended);
    h2_conn_expect(&h, 1, 400, NULL);
    h2_conn_expect_reset(&h, 3, MK_H2_INTERNAL_ERROR);
    h2_conn_expect(&h, 5, 200, "early\n");
    h2_conn_expect(&h, 7, 200, "slow\n"); /* a client that has closed its side may still read responses */
    assert_int_equal(h.conn.n_records, 4);
    unsigned n_gone = 0;
    for (unsigned i = 0; i < 4; i++)
        n_gone += h.conn.outcomes[i] == MK_OUTCOME_CLIENT_ABORTED;
    assert_int_equal(n_gone, 2);
}

static enum mk_verdict follow(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)response;
    (void)data;
    mk_request_cancel_on_disconnect(request);
    return MK_WAIT;
}

static void h2_body_handler_following_client_is_aborted(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "follow", .handle = follow};
    h2_conn_route(&h, &handler);
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/");
    h2_conn_run(&h);
    shutdown(h.conn.fd, SHUT_WR);
    conn_run(&h.conn);
    assert_true(h.conn.ended);
    h2_conn_expect_records(&h, 1, 0, MK_OUTCOME_CLIENT_ABORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_body_of_any_length_is_read, setup),
        fixture_test(h2_body_may_arrive_byte_by_byte, setup),
        fixture_test(h2_body_concurrent_uploads_succeed, setup),
        fixture_test(h2_body_is_echoed_as_it_arrives, setup),
        fixture_test(h2_body_unread_closes_only_its_stream_window, setup),
        fixture_test(h2_body_slow_echo_is_bounded, setup),
        fixture_test(h2_body_beyond_window_resets_stream, setup),
        fixture_test(h2_body_padding_is_returned_to_window, setup),
        fixture_test(h2_body_length_mismatch_resets_stream, setup),
        fixture_test(h2_body_over_limit_gets_413, setup),
        fixture_test(h2_body_over_limit_is_drained, setup),
        fixture_test(h2_body_read_sends_100_continue, setup),
        fixture_test(h2_body_unread_sends_no_100_continue, setup),
        fixture_test(h2_body_small_unread_rest_is_drained, setup),
        fixture_test(h2_body_large_unread_rest_resets_stream, setup),
        fixture_test(h2_body_partly_read_is_drained, setup),
        fixture_test(h2_body_trailers_end_body, setup),
        fixture_test(h2_body_cut_off_fails_request, setup),
        fixture_test(h2_body_handler_following_client_is_aborted, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
