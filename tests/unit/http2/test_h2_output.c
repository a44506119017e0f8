/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 responses: flow control by windows and socket, priorities, and failed responses. */

#include "unit/http2/h2_conn_case.h"
#include "unit/wrap_page_cache.h"

/* Asserts that the body consists of the first n bytes of the source. */
static void expect_source(uint32_t id, size_t n)
{
    const struct h2_stream *s = h2_find(&h.client, id);
    assert_int_equal(s->content.len, n);
    for (size_t i = 0; i < n; i++)
        if (s->content.p[i] != handlers_byte(i))
            fail_msg("byte %zu of stream %u is wrong", i, id);
}

static void open_windows(uint32_t id, uint32_t by)
{
    h2_send_window_update(&h.client, &h.say, 0, by);
    h2_send_window_update(&h.client, &h.say, id, by);
}

/* Returns the stream IDs of the DATA frames received from index `from` on. */
static unsigned data_order(unsigned from, uint32_t order[], unsigned max)
{
    unsigned n = 0;
    for (unsigned i = from; i < h.client.n_log && n < max; i++)
        if (h.client.log[i].type == MK_H2_DATA)
            order[n++] = h.client.log[i].stream;
    return n;
}

/* ---- Flow control ---- */

static void h2_output_stream_waits_for_its_window(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    struct h2_stream *s = h2_conn_get(&h, 1, "/source?n=300000");
    h2_conn_get(&h, 3, "/early");
    h2_conn_run(&h);
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    h2_conn_expect(&h, 3, 200, "early\n"); /* a closed stream window blocks no other stream */
    h2_send_window_update(&h.client, &h.say, 1, 1);
    h2_conn_run(&h);
    assert_int_equal(s->content.len, MK_H2_WINDOW + 1);
    h2_send_window_update(&h.client, &h.say, 1, 300000);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    expect_source(1, 300000);
    h2_conn_expect_idle(&h);
    h2_conn_expect_records(&h, 2, 200, MK_OUTCOME_OK);
    assert_int_equal(h.conn.content_sent[1], 300000);
}

static void h2_output_all_streams_wait_for_connection_window(void **state)
{
    (void)state;
    h2_conn_open(&h);
    struct h2_stream *s = h2_conn_get(&h, 1, "/source?n=70000"), *last = h2_conn_get(&h, 3, "/early");
    h2_send_window_update(&h.client, &h.say, 1, 100000);
    h2_conn_run(&h);
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    assert_int_equal(last->status, 200); /* heads need no window */
    h2_conn_expect_open(&h, 3);
    h2_send_window_update(&h.client, &h.say, 0, 10000);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect(&h, 3, 200, "early\n");
    h2_conn_expect_idle(&h);
}

/* The client has closed its side and can open no windows: streams that wait for a window end, and the server
 * sends everything else. */
static void h2_output_half_closed_client_ends_blocked_streams(void **state)
{
    static const uint32_t widened[] = {
        0, 1}; /* 0: the connection window is wide, and the stream window closes; 1: vice versa */
    (void)state;
    for (size_t i = 0; i < MK_LEN(widened); i++) {
        h.conn.n_records = 0;
        h2_conn_open(&h);
        struct h2_stream *s = h2_conn_get(&h, 1, "/source?n=300000");
        h2_send_window_update(&h.client, &h.say, widened[i], 10000);
        h2_conn_run(&h);
        assert_int_equal(s->content.len, MK_H2_WINDOW);
        h2_conn_get(&h, 3, "/slow");
        h2_conn_run(&h);
        shutdown(h.conn.fd, SHUT_WR);
        conn_run(&h.conn);
        h2_conn_expect_records(&h, 1, 200, MK_OUTCOME_CLIENT_ABORTED);
        for (int n = 0; n < 4000 && !h.conn.ended && !h.conn.reset; n++)
            h2_conn_run_for(&h, 5);
        assert_true(h.conn.ended);
        assert_int_equal(h.conn.n_records, 2);
    }
}

static void h2_output_initial_window_may_be_zero(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 0);
    struct h2_stream *s = h2_conn_get(&h, 1, "/early");
    h2_send_request(&h.client, &h.say, 3, "HEAD", "/early", true, "");
    h2_conn_get(&h, 5, "/source?n=0"); /* an empty body needs no window */
    h2_conn_run(&h);
    assert_int_equal(s->status, 200);
    h2_conn_expect_open(&h, 1);
    h2_conn_expect(&h, 3, 200, "");
    h2_conn_expect(&h, 5, 200, "");
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 3);
    h2_conn_run(&h);
    assert_str(mk_buf_str(&s->content), "ear");
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 100);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "early\n");
}

static void h2_output_window_may_become_negative(void **state)
{
    (void)state;
    h2_conn_open(&h);
    struct h2_stream *s = h2_conn_get(&h, 1, "/source?n=100000");
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_conn_run(&h);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 1000);
    h2_send_window_update(&h.client, &h.say, 1, MK_H2_WINDOW - 1000);
    h2_conn_run(&h);
    assert_int_equal(s->window, 0);
    assert_int_equal(s->content.len, MK_H2_WINDOW);
    h2_send_window_update(&h.client, &h.say, 1, 5);
    h2_conn_run(&h);
    assert_int_equal(s->content.len, MK_H2_WINDOW + 5);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 0);
    h2_conn_run(&h);
    assert_int_equal(s->window, -1000);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 100000);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    expect_source(1, 100000);
}

static void h2_output_window_overflow_is_an_error(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    h2_conn_get(&h, 3, "/never");
    mk_h2_frame_emit_window_update(&h.say, 1, MK_H2_WINDOW_MAX);
    h2_send_window_update(&h.client, &h.say, 3, MK_H2_WINDOW_MAX - MK_H2_WINDOW);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_FLOW_CONTROL_ERROR);
    h2_conn_expect_open(&h, 3);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, MK_H2_WINDOW + 1);
    h2_conn_run(&h);
    h2_conn_expect_failed(&h, MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW);
}

static void h2_output_zero_window_update_resets_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/never");
    mk_h2_frame_emit_window_update(&h.say, 1, 0);
    h2_conn_run(&h);
    h2_conn_expect_reset(&h, 1, MK_H2_PROTOCOL_ERROR);
    h2_conn_expect_idle(&h);
}

/* ---- Failed responses ---- */

static void h2_output_failed_body_resets_stream(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 1000000);
    h2_conn_get(&h, 1, "/broken?n=0&unknown=1"); /* fails immediately */
    h2_conn_get(&h, 3, "/broken?n=200000");      /* fails after a part of the body has been sent */
    h2_conn_get(&h, 5, "/liar?n=1000&has=600");
    h2_conn_get(&h, 7, "/liar?n=1000&has=2000");
    h2_conn_get(&h, 9, "/broken?n=100&unknown=1");
    h2_conn_get(&h, 11, "/broken?n=1&status=502"); /* the handler has chosen this status */
    h2_conn_get(&h, 13, "/broken?n=100&unknown=1&status=413");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 500, NULL);
    h2_conn_expect_reset(&h, 3, MK_H2_INTERNAL_ERROR);
    h2_conn_expect(&h, 5, 500, NULL); /* the server had not sent anything yet */
    h2_conn_expect(&h, 7, 200, NULL);
    expect_source(7, 1000);
    h2_conn_expect(&h, 9, 500, NULL);
    h2_conn_expect(&h, 11, 502, NULL);
    h2_conn_expect(&h, 13, 413, NULL);
    assert_true(h2_find(&h.client, 13)->content.len > 200);
    h2_conn_expect_idle(&h);
    h2_conn_expect_records(&h, 7, 413, MK_OUTCOME_OK);
}

/* A retracted response does not use up the windows. */
static void h2_output_retracted_response_restores_windows(void **state)
{
    (void)state;
    char target[64];
    size_t pages = 0;
    h2_conn_open(&h);
    for (uint32_t id = 1; id < 41; id += 2) {
        h2_conn_get(&h, id, "/liar?n=20000&has=16000");
        h2_conn_run(&h);
        h2_conn_expect(&h, id, 500, NULL);
        pages += h2_find(&h.client, id)->content.len;
    }
    snprintf(target, sizeof target, "/source?n=%zu", 65535 - pages);
    h2_conn_get(&h, 41, target);
    h2_conn_run(&h);
    h2_conn_expect(&h, 41, 200, NULL);
    h2_conn_expect_idle(&h);
}

/* ---- Priorities ---- */

static void request_with_priority(uint32_t id, const char *target, const char *priority)
{
    char fields[64];
    snprintf(fields, sizeof fields, "priority: %s\n", priority);
    h2_send_request(&h.client, &h.say, id, "GET", target, true, fields);
}

static void h2_output_most_urgent_stream_is_sent_first(void **state)
{
    (void)state;
    static const uint32_t expected[] = {7, 5, 1, 9, 3};
    uint32_t order[16];
    h2_conn_open(&h);
    request_with_priority(1, "/source?n=10000", "u=3");
    request_with_priority(3, "/source?n=10000", "u=7");
    request_with_priority(5, "/source?n=10000", "u=1");
    request_with_priority(7, "/source?n=10000", "u=0");
    request_with_priority(9, "/source?n=10000", "u=nonsense");
    h2_conn_run(&h);
    assert_int_equal(data_order(0, order, 16), 5);
    assert_memory_equal(order, expected, sizeof expected);
}

static void h2_output_incremental_streams_alternate(void **state)
{
    (void)state;
    static const uint32_t expected[] = {1, 1, 1, 3, 3, 3, 5, 7, 5, 7, 5, 7};
    uint32_t order[32];
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    request_with_priority(1, "/source?n=40000", "u=3");
    request_with_priority(3, "/source?n=40000", "u=3");
    request_with_priority(5, "/source?n=40000", "u=4, i");
    request_with_priority(7, "/source?n=40000", "u=4, i");
    h2_conn_run(&h);
    unsigned n = 0, seen = 0;
    uint32_t turns[32];
    n = data_order(0, order, 32);
    for (unsigned i = 0; i < n; i++)
        turns[seen++] = order[i];
    assert_true(seen >= MK_LEN(expected));
    unsigned changes = 0;
    for (unsigned i = 1; i < seen; i++)
        changes += turns[i] != turns[i - 1];
    assert_int_equal(turns[0], 1);
    assert_in_range(changes, 5, 12);
    for (unsigned i = 1; i < seen; i++) /* stream 3 follows when stream 1 is complete */
        assert_false(turns[i] == 1 && turns[i - 1] != 1);
}

static void send_priority(uint32_t id, const char *text)
{
    mk_h2_frame_emit_head(&h.say, 4 + (uint32_t)strlen(text), MK_H2_PRIORITY_UPDATE, 0, 0);
    mk_h2_frame_emit_u32(&h.say, id);
    mk_buf_add(&h.say, mk_str_from_c(text));
}

static void h2_output_priority_update_reorders_streams(void **state)
{
    (void)state;
    uint32_t order[16];
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/source?n=100000");
    h2_conn_get(&h, 3, "/source?n=20000");
    h2_send_window_update(&h.client, &h.say, 1, 100000);
    h2_send_window_update(&h.client, &h.say, 3, 100000);
    h2_conn_get(&h, 5, "/never");
    h2_conn_run(&h);
    unsigned from = h.client.n_log;
    send_priority(3, "u=1");
    send_priority(5, "u=0");
    send_priority(99, "u=0"); /* a stream that does not exist */
    h2_send_window_update(&h.client, &h.say, 0, 20000);
    h2_conn_run(&h);
    assert_true(data_order(from, order, 16) > 0);
    assert_int_equal(order[0], 3);
    h2_conn_expect(&h, 3, 200, NULL);
    h2_conn_expect_open(&h, 5);
}

struct worker {
    struct mk_request *request;
    unsigned turns;
};

/* Yields on each call, like a source that computes for a long time. */
static ssize_t pull_slowly(void *ctx, char *buffer, size_t cap)
{
    struct worker *w = ctx;
    (void)cap;
    if (w->turns == 0)
        return 0;
    mk_request_resume(w->request);
    if (--w->turns % 2)
        return -EAGAIN;
    buffer[0] = 'w';
    return 1;
}

static enum mk_verdict work(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_slowly};
    struct worker *w = mk_request_alloc(request, sizeof *w);
    (void)data;
    if (!w)
        return handlers_refuse(response, 503);
    *w = (struct worker){request, (unsigned)handlers_number(request, "turns", 200)};
    return mk_response_set_body_source(response, &ops, w, MK_LENGTH_UNKNOWN) ? MK_ERROR : MK_DONE;
}

static void h2_output_busy_stream_does_not_block_others(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "work", .handle = work};
    h2_conn_route(&h, &handler);
    h2_conn_open(&h);
    request_with_priority(1, "/?turns=4000", "u=0");
    request_with_priority(3, "/?turns=0", "u=7");
    request_with_priority(5, "/?turns=4", "u=7");
    h2_conn_send(&h);
    for (int i = 0; i < 30; i++)
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 0), 0);
    while (conn_receive(&h.conn))
        continue;
    h2_conn_receive(&h);
    h2_conn_expect_open(&h, 1);
    h2_conn_expect(&h, 3, 200, "");
    h2_conn_expect(&h, 5, 200, "ww");
    for (int i = 0; i < 5000 && h.conn.n_records < 3; i++)
        h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    assert_int_equal(h2_find(&h.client, 1)->content.len, 2000);
}

/* ---- Full socket buffer ---- */

static void h2_output_slow_socket_gets_everything(void **state)
{
    (void)state;
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=200000");
    open_windows(1, 1000000);
    h2_conn_get(&h, 3, "/mad?n=20000");
    h2_conn_get(&h, 5, "/early");
    h2_conn_get(&h, 7, "/source?n=60000&unknown=1");
    h2_conn_send(&h);
    for (int i = 0; i < 3000 && h.conn.n_records < 4; i++) {
        char piece[700];
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 0), 0);
        ssize_t n = recv(h.conn.fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n > 0)
            mk_buf_add(&h.conn.received, mk_str_of(piece, (size_t)n));
        h2_conn_receive(&h);
    }
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    expect_source(1, 200000);
    h2_conn_expect(&h, 3, 200, "mad\n");
    h2_conn_expect(&h, 5, 200, "early\n");
    h2_conn_expect(&h, 7, 200, NULL);
    h2_conn_expect_idle(&h);
}

/* The server stops reading from a client that does not read, so that output does not pile up. */
static void h2_output_client_not_reading_is_not_read(void **state)
{
    (void)state;
    h.conn.limits.h2.abuse_budget = 1000000;
    h2_conn_open(&h);
    conn_set_send_buffer(&h.conn, 1);
    h2_conn_get(&h, 1, "/source?n=60000");
    h2_conn_send(&h);
    conn_run_server(&h.conn);
    size_t sent = 0;
    for (int quiet = 0; quiet < 10;) {
        for (int i = 0; i < 500; i++)
            mk_h2_frame_emit_ping(&h.say, false, MK_STR("12345678"));
        ssize_t n = send(h.conn.fd, h.say.p, h.say.len - h.say.len % 17, MSG_DONTWAIT | MSG_NOSIGNAL);
        mk_buf_clear(&h.say);
        sent += n > 0 ? (size_t)n : 0;
        quiet = n > 0 ? 0 : quiet + 1;
        assert_true(n <= 0 || n % 17 == 0);
        conn_run_server(&h.conn);
        if (sent > 30000000)
            fail_msg("the stream accepts everything");
    }
    assert_true(h.conn.conn->timeout == MK_TIMEOUT_RATE);
    h2_conn_run(&h);
    assert_int_equal(h.client.n_pongs, sent / 17);
    h2_conn_expect(&h, 1, 200, NULL);
    h2_conn_expect_idle(&h);
}

static struct {
    size_t n;
    const struct mk_stream_ops *plain;
    struct mk_stream_ops ops;
} hole;

static ssize_t discard_write(struct mk_stream *s, mk_str bytes, bool more)
{
    (void)s;
    (void)more;
    hole.n += bytes.len;
    return (ssize_t)bytes.len;
}

static void h2_output_long_response_yields_to_other_connections(void **state)
{
    (void)state;
    enum { MUCH = 100000000, ITERATION = 8 * 1024 * 1024 };
    h2_conn_open(&h);
    struct mk_conn *c = h.conn.conn;
    hole.n = 0;
    hole.plain = c->stream.ops;
    hole.ops = *hole.plain;
    hole.ops.write = discard_write;
    c->stream.ops = &hole.ops;
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, MK_H2_WINDOW_MAX);
    h2_send_window_update(&h.client, &h.say, 0, MK_H2_WINDOW_MAX - MK_H2_WINDOW);
    h2_conn_get(&h, 1, "/source?n=100000000");
    h2_conn_send(&h);
    for (size_t turns = 0; h.conn.n_records == 0; turns++) {
        size_t before = hole.n;
        assert_int_equal(mk_loop_run_once(&h.conn.loop, 0), 0);
        assert_in_range(hole.n - before, 1, ITERATION * 2);
        assert_true(turns < MUCH / ITERATION + 2);
    }
    assert_true(hole.n > MUCH);
    c->stream.ops = hole.plain;
}

static void h2_output_large_response_yields(void **state)
{
    (void)state;
    struct conn_fixture *t = &h.conn;
    h2_conn_open(&h);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, MK_H2_WINDOW_MAX);
    h2_send_window_update(&h.client, &h.say, 0, MK_H2_WINDOW_MAX - MK_H2_WINDOW);
    int bytes = 64 << 20;
    (void)setsockopt(t->conn->stream.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    h2_conn_get(&h, 1, "/source?n=12000000");
    h2_conn_send(&h);
    for (int i = 0; i < 1000 && h.conn.n_records < 1; i++) {
        assert_int_equal(mk_loop_run_once(&t->loop, 0), 0);
        while (conn_receive(t))
            continue;
        h2_conn_receive(&h);
    }
    h2_conn_expect(&h, 1, 200, NULL);
    assert_int_equal(h2_find(&h.client, 1)->content.len, 12000000);
}

/* ---- Files ---- */

static void h2_output_files_are_sent(void **state)
{
    (void)state;
    static char large[300000];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = handlers_byte(i);
    site_add(&h.conn.site, "large.bin", mk_str_of(large, sizeof large));
    site_add(&h.conn.site, "small.txt", MK_STR("small"));
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 1000000);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 1000000);
    h2_conn_get(&h, 1, "/large.bin");
    h2_conn_get(&h, 3, "/small.txt");
    h2_send_request(&h.client, &h.say, 5, "GET", "/large.bin", true, "range: bytes=10-19,30-39\n");
    h2_send_request(&h.client, &h.say, 7, "GET", "/large.bin", true, "range: bytes=23-45\n");
    for (int i = 0; i < 100 && h.conn.n_records < 4; i++)
        h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    expect_source(1, sizeof large);
    h2_conn_expect(&h, 3, 200, "small");
    h2_conn_expect(&h, 5, 206, NULL);
    h2_conn_expect(&h, 7, 206, "abcdefghijklmnopqrstuvw");
    h2_conn_expect_idle(&h);
}

static void h2_output_cold_file_does_not_block_others(void **state)
{
    (void)state;
    static char large[3000000];
    site_add(&h.conn.site, "cold.bin", mk_str_of(large, sizeof large));
    page_cache_miss_next();
    h2_conn_open(&h);
    h2_send_window_update(&h.client, &h.say, 0, 10000000);
    h2_send_setting(&h.client, &h.say, MK_H2_INITIAL_WINDOW_SIZE, 10000000);
    h2_conn_get(&h, 1, "/cold.bin");
    h2_conn_get(&h, 3, "/early");
    h2_conn_get(&h, 5, "/cold.bin");
    h2_conn_run(&h);
    h2_conn_expect(&h, 3, 200, "early\n");
    /* resets the stream, possibly while a thread reads for it */
    h2_send_reset(&h.client, &h.say, 5, MK_H2_CANCEL);
    for (int i = 0; i < 1000 && h.conn.n_records < 3; i++)
        h2_conn_run_for(&h, 2);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, NULL);
    assert_int_equal(h2_find(&h.client, 1)->content.len, sizeof large);
    assert_true(h.conn.counters.cold_reads > 0);
    h2_conn_expect_idle(&h);
}

/* ---- Re-entrance ---- */

static void resume_it(void *request)
{
    mk_request_resume(request);
}

static enum mk_verdict keep_until_end(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (mk_request_add_cleanup(request, resume_it, request))
        return handlers_refuse(response, 503);
    return handlers_number(request, "wait", 0) ? MK_WAIT : handlers_respond(response, MK_STR("end\n"));
}

/* A handler notified of the end of a request may still try to resume it. */
static void h2_output_resume_at_request_end_is_harmless(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "cling", .handle = keep_until_end};
    h2_conn_route(&h, &handler);
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/");
    h2_conn_get(&h, 3, "/?wait=1");
    h2_conn_get(&h, 5, "/?wait=1");
    h2_conn_post(&h, 7, "/", "");
    h2_conn_run(&h);
    h2_send_reset(&h.client, &h.say, 3, MK_H2_CANCEL);
    h2_conn_data(&h, 7, "", true);
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "end\n");
    h2_conn_expect(&h, 7, 200, "end\n");
    assert_int_equal(h.conn.conn->h2->n_streams, 1);
    mk_fd_close(&h.conn.fd);
    conn_run_server(&h.conn);
    assert_int_equal(h.conn.n_records, 4);
    assert_int_equal(h.conn.manager.n_conns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_output_stream_waits_for_its_window, setup),
        fixture_test(h2_output_all_streams_wait_for_connection_window, setup),
        fixture_test(h2_output_half_closed_client_ends_blocked_streams, setup),
        fixture_test(h2_output_initial_window_may_be_zero, setup),
        fixture_test(h2_output_window_may_become_negative, setup),
        fixture_test(h2_output_window_overflow_is_an_error, setup),
        fixture_test(h2_output_zero_window_update_resets_stream, setup),
        fixture_test(h2_output_failed_body_resets_stream, setup),
        fixture_test(h2_output_retracted_response_restores_windows, setup),
        fixture_test(h2_output_most_urgent_stream_is_sent_first, setup),
        fixture_test(h2_output_incremental_streams_alternate, setup),
        fixture_test(h2_output_priority_update_reorders_streams, setup),
        fixture_test(h2_output_busy_stream_does_not_block_others, setup),
        fixture_test(h2_output_slow_socket_gets_everything, setup),
        fixture_test(h2_output_client_not_reading_is_not_read, setup),
        fixture_test(h2_output_long_response_yields_to_other_connections, setup),
        fixture_test(h2_output_large_response_yields, setup),
        fixture_test(h2_output_files_are_sent, setup),
        fixture_test(h2_output_cold_file_does_not_block_others, setup),
        fixture_test(h2_output_resume_at_request_end_is_harmless, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
